// Package simulator speaks the wire of the outside systems that a gateway
// writes to, and misbehaves on request. It exists so that a test can say "the
// first create was written and its answer lost, the second got a 429: one
// message, three requests" and have that proved by what arrived on a socket.
//
// # Parts
//
// A [Platform] is one outside system: it names requests and does what they ask.
// The platforms live in the packages beside this one (discord, telegram, openai,
// githttp); a gateway may write its own. A [Server] puts a platform on a
// loopback port and applies the fault script. The [Ledger] holds every request
// and every effect. Package all starts the four platforms at once.
//
// # The fault script
//
// A script is an ordered list of [Step] values. A request takes the first step
// of the list that matches it and is not used up; a request that no step
// matches is served as the platform would. So
//
//	srv.Script(
//		simulator.Pass().On(discord.OpCreateMessage),
//		discord.RateLimited(0.7, false).On(discord.OpCreateMessage).Times(2),
//		simulator.EffectThenReset().On(discord.OpCreateMessage),
//	)
//
// serves the first create, throttles the second and the third, loses the answer
// of the fourth, and serves the rest.
//
// Each request goes through the same stations, and a step may interfere at each:
//
//	arrive → read body → hold/delay → effect → hold/delay → answer → end
//
// The effect may be left out or happen twice; the answer may be replaced, paced,
// spliced or cut after so many bytes, events or a fraction; the connection may
// end with FIN, with RST, or in silence. Whatever happens to the answer, the
// effect is in the ledger if and only if it happened.
//
// Refused connections never reach a server, so they cannot be steps counted by
// it: see [Server.Refuse], [Server.RefuseDials] and Step.RefuseFor.
//
// # Gates
//
// A step made by [HoldBefore] or [HoldAfter] stops a request at a named [Gate]
// until the test opens it or the connection dies. [Gate.WaitHeld] tells when the
// request is there, which is the moment to kill the process that sent it.
//
// # Other processes
//
// What can be scripted in Go can be scripted over HTTP on the same port, under
// /_sim/; see admin.go and the names of its paths there. The endpoints have no
// authentication: a simulator belongs on loopback or in a closed test network.
//
// # Secrets
//
// The ledger never holds an Authorization header or a token in a path. It tells
// accounts apart by labels ("account-1") given in order of appearance.
package simulator
