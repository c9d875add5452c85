//go:build !unix

package git

import "io/fs"

// identity cannot tell a file from another that came into its place.
func identity(fs.FileInfo) string { return "" }

// disk cannot tell file systems apart.
func disk(fs.FileInfo) uint64 { return 0 }
