// Package policies decides. Given the facts of a failed request it says what
// they mean (a reason, an effect, a floor) and what may follow (wait, repeat,
// fail over, stop).
//
// Everything here is pure: no I/O, no clock, no randomness and no Temporal.
// Time and random numbers are arguments, so the same code runs inside
// workflows, inside activities, in "starter explain" and in tests.
//
// A failed request is described by a [Fault]; [Judge] turns it into a
// [Verdict] by the rules of its [Surface]. Delays come from an [Envelope], or,
// for model calls, from [Recovery], which owns the budget of one outage.
package policies
