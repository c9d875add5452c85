// Package attempt says what happened to one request on the wire.
//
// Every client library loses something: the status of a cut 429, the headers
// of an HTML 502, whether a reset came before or after the request was
// written. So the facts are kept below them. An activity makes a [Record],
// hands it down in the context ([With]) and sends through a [Transport]; when
// the library is done, [Record.Fault] is the truth about that request, whatever
// the library made of it.
//
// # Not sent
//
// A request is proved not sent when the transport asked for a connection
// (httptrace GetConn) and never got one (GotConn): DNS, dialling, a proxy's
// CONNECT and TLS all happen in between, and no byte of the request is written
// before (C2). Error types prove nothing: a reset during the handshake and a
// reset after the request look the same. A context that was done before a
// connection was asked for is neither not sent nor started; it is a
// cancellation.
//
// # One request
//
// net/http repeats requests by itself: on reused connections, more eagerly
// with an Idempotency-Key header, and over HTTP/2. [Options.Fresh] rules all of
// that out, redirects are never followed by [NewClient], and
// [Record.Requests] counts what net/http really did.
package attempt
