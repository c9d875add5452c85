// Package model makes single model attempts: one HTTP request to one candidate,
// streamed, watched and classified.
//
// A [Dialect] knows one wire; it turns frames into events and its transcript
// into a request. Everything else is common to all dialects and lives here: the
// recorder that keeps status and headers whatever the client library does, the
// watchdog that finds a stream gone silent, the sink that live text leaves
// through, and the verdict. Retrying is not done here: the workflow owns the
// budget, so that every wait is a visible timer.
package model
