// Package workflows says in what order things happen. It is deterministic: it
// asks package policies what to decide and activities, by name, to touch the
// outside. A workflow of Holdfast returns how its work ended as a value and
// fails only for faults of its own.
//
// Waiting is always a timer with a summary, so that it is visible in the
// Temporal web UI and ends when the work is cancelled.
package workflows
