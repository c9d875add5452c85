// Package sse reads server-sent events, for every model dialect.
//
// It differs from a browser's reader where a durable caller needs to know more:
// comments are delivered, because a ping is a sign of life; a stream that ends
// inside a frame is an error of its own, because the frame is lost; and a frame
// of fields without data is delivered with nil Data. Lines may be 32 MiB long;
// a longer one is a named error, never a silent end (M2.4).
//
// [Sniff] tells what a body really is when its Content-Type may be wrong.
package sse
