// Package explain answers "what would Holdfast do with this?" without any
// server (I2): what a failure means, when a model call would be tried again, and
// which numbers a policy profile is made of. Everything it says comes from
// package policies, so an answer here is what a worker would do.
package explain
