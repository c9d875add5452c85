package gitbench

import (
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/measure"
)

// Work does an operation in a directory, and says what it took or, if it is
// watched, what memory it had.
type Work func(b *testing.B, dir string, watched bool) (measure.Cost, measure.Memory)

// Compare compares work with the plain git program. Each time a directory is made
// for it: a copy of a checkout, or a path for a clone.
func (f *Forge) Compare(b *testing.B, o Operation, ours Work) {
	plain := func(b *testing.B, dir string, watched bool) (measure.Cost, measure.Memory) {
		return program(b, f.plain(o, dir), watched)
	}
	measure.Comparison{
		Plain: func() measure.Cost { return f.cost(b, o, plain) },
		Ours:  func() measure.Cost { return f.cost(b, o, ours) },

		PlainMemory: func() measure.Memory { return f.memory(b, o, plain) },
		OurMemory:   func() measure.Memory { return f.memory(b, o, ours) },
	}.Run(b)
}

func program(b *testing.B, cmd *exec.Cmd, watched bool) (cost measure.Cost, memory measure.Memory) {
	var err error
	if watched {
		memory, err = measure.ProgramMemory(cmd)
	} else {
		cost, err = measure.Program(cmd)
	}
	if err != nil {
		b.Fatal(err)
	}
	return cost, memory
}

func (f *Forge) cost(b *testing.B, o Operation, do Work) (cost measure.Cost) {
	f.prepared(b, o, func(dir string) { cost, _ = do(b, dir, false) })
	return cost
}

func (f *Forge) memory(b *testing.B, o Operation, do Work) (memory measure.Memory) {
	f.prepared(b, o, func(dir string) { _, memory = do(b, dir, true) })
	return memory
}

// prepared has work done in a directory made for it. All that was written before
// is on disk by then, for the work waits for its own writes.
func (f *Forge) prepared(b *testing.B, o Operation, do func(dir string)) {
	dir := f.path()
	if o.checkout != "" {
		if err := os.CopyFS(dir, os.DirFS(o.checkout)); err != nil {
			b.Fatal(err)
		}
	}
	syscall.Sync()
	do(dir)
	if err := os.RemoveAll(dir); err != nil {
		b.Fatal(err)
	}
}
