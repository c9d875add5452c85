// Package discord simulates the part of Discord's REST API that bots send with:
// messages with their nonce, edits, deletes, reactions, pins, typing and reads.
//
// What it takes from Discord's public documentation: ids are snowflakes; lists
// come newest first; a create with enforce_nonce that repeats the nonce of the
// same author within a few minutes returns the message that exists already (and
// fails with Unknown Message where that was deleted); a nonce has at most 25
// characters and is not told by reads; content has at most 2,000 code points;
// every answer carries rate-limit headers and a 429 carries the wait in its body
// and in Retry-After. A channel whose history may not be read answers a list with
// nothing rather than with an error.
//
// Any version of the API and any channel id is accepted, unless the channel was
// declared missing or forbidden.
package discord
