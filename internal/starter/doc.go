// Package starter is what cmd/starter does: it starts, watches and steers work
// on a Temporal namespace, and says in text, in JSON and in its exit status how
// the work ended (I1).
package starter
