//go:build !linux && !darwin && !freebsd

package git

import (
	"errors"
	"io/fs"
)

func freeBytes(string) (int64, error) { return 0, errors.ErrUnsupported }

func diskSize(info fs.FileInfo) int64 { return info.Size() }
