// Package workers wires Holdfast: which workflows and activities run on which
// task queue, with which options, and how a worker process starts and drains.
//
// Work runs on the queue of the outside it touches, workflow and activities
// alike, so that an activity starts eagerly on the worker that scheduled it. A
// process serves the queues it is asked to; adding processes scales it.
package workers
