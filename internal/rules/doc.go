// Package rules holds the rules of the repository that no compiler checks, as
// tests: which package may import which, and that each says what it holds.
package rules
