// Package demo is the guided run of "standalone --demo" (I1): four stories, each
// one piece of work that meets faults of the simulated outside, told as a
// timeline.
//
// stories.go says what is sent, which faults the outside is told to have, and
// what must be true at the end. Everything printed about the course of a story
// comes from two witnesses: the workflow's history in Temporal (history.go),
// which holds each attempt with the rule that judged its failure, and the
// ledger of the simulator, which holds each request and effect that really
// happened. timeline.go joins the two; print.go writes them.
package demo
