//go:build !unix

package git

// dieWithParent has nothing to do where no child is ever started.
func dieWithParent(uintptr) {}
