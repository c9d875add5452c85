package pack

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/holdfast-dev/holdfast/activities/git/internal/packtest"
)

type bomb struct {
	data  []byte
	limit string
}

// bombs are packs that take more than they seem to.
func bombs() map[string]bomb {
	var delta packtest.Pack
	base := delta.Add(plumbing.BlobObject, 1<<20, nil, packtest.Zeros(1<<20))
	delta.Delta(base, packtest.Copies(1<<20, 64<<10)) // 64 GiB

	var lying packtest.Pack // about what its delta makes
	base = lying.Whole(plumbing.BlobObject, []byte("x"))
	lying.Delta(base, append(append(packtest.Size(1), packtest.Size(1<<62)...), 0x90, 1))

	var zip packtest.Pack
	zip.Add(plumbing.BlobObject, 64<<20, nil, packtest.Zeros(64<<20))

	var tree packtest.Pack
	tree.Add(plumbing.TreeObject, 16<<20, nil, packtest.Zeros(16<<20))

	var long packtest.Pack // a delta that is itself too long
	base = long.Whole(plumbing.BlobObject, []byte("x"))
	long.LongDelta(base, 16<<20, packtest.Zeros(16<<20))

	var large packtest.Pack // a base that may only pass through
	base = large.Add(plumbing.BlobObject, 16<<20, nil, packtest.Zeros(16<<20))
	large.Delta(base, packtest.Copies(16<<20-1, 0))

	var noise packtest.Pack
	for i := range 48 {
		noise.Add(plumbing.BlobObject, 1<<20, nil, io.LimitReader(rand.NewChaCha8([32]byte{byte(i)}), 1<<20))
	}
	claim := func(n uint32) []byte { return new(packtest.Pack).Claiming(n) }
	return map[string]bomb{
		"delta bomb":                {delta.Bytes(), LimitMemory},
		"delta that lies":           {lying.Bytes(), LimitMemory},
		"zlib bomb":                 {zip.Bytes(), LimitDisk},
		"tree of zeros":             {tree.Bytes(), LimitMemory},
		"long delta":                {long.Bytes(), LimitMemory},
		"base that is too large":    {large.Bytes(), LimitMemory},
		"long pack":                 {noise.Bytes(), LimitDisk},
		"many objects":              {claim(1_000_001), LimitObjects},
		"more than fit into memory": {claim(900_000), LimitMemory},
		"all that can be said":      {claim(1<<32 - 1), LimitObjects},
	}
}

// G12: a pack that would take more memory, disk or objects than it may is
// refused before it does.
func TestBombsAreRefused(t *testing.T) {
	limits := Limits{Memory: 32 << 20, Disk: 48 << 20, Objects: 1_000_000}
	for name, bomb := range bombs() {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		_, err := receive(t, bytes.NewReader(bomb.data), Options{Limits: limits})
		runtime.ReadMemStats(&after)
		var limit *LimitError
		if !errors.As(err, &limit) || limit.Limit != bomb.limit {
			t.Errorf("%s: %v, want the limit of %s", name, err, bomb.limit)
		}
		if took := after.TotalAlloc - before.TotalAlloc; took > 16<<20 {
			t.Errorf("%s took %d bytes", name, took)
		}
	}
}

// G12: blobs only pass through, whatever their size; deltas that expand to much
// more than the memory, one after the other, do so within it.
func TestMuchPassesThrough(t *testing.T) {
	var p packtest.Pack
	p.Add(plumbing.BlobObject, 64<<20, nil, packtest.Zeros(64<<20))
	base := p.Whole(plumbing.BlobObject, []byte(strings.Repeat("y", 1<<20)))
	for range 12 { // a chain that grows and shrinks, and leaves at each step
		longer := p.Delta(base, packtest.Copies(1<<20, 4))
		p.Delta(longer, append(append(packtest.Size(4<<20), packtest.Size(5)...), 5, 'a', 'b', 'c', 'd', 'e'))
		base = p.Delta(longer, append(append(packtest.Size(4<<20), packtest.Size(1<<20)...), 0xf0, 0, 0, 0x10))
	}
	var peak uint64
	got, err := receive(t, bytes.NewReader(p.Bytes()), Options{Limits: Limits{Memory: 24 << 20, Disk: 128 << 20, Objects: 1000}, Resolved: func() {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		peak = max(peak, m.HeapAlloc)
	}})
	if err != nil || got.Objects != 38 {
		t.Fatalf("%+v, %v", got, err)
	}
	if peak > 40<<20 {
		t.Errorf("%d bytes were held", peak)
	}
}

// Deltas that cannot be resolved are damage: those of each other, of themselves,
// of what is not in the pack, and those that reach beyond their base.
func TestBadDeltas(t *testing.T) {
	t.Parallel()
	copies := packtest.Copies(3, 1)
	byHash := func(p *packtest.Pack, h plumbing.Hash) {
		p.Add(plumbing.REFDeltaObject, int64(len(copies)), h[:], bytes.NewReader(copies))
	}
	abc := plumbing.ComputeHash(plumbing.BlobObject, []byte("abc"))
	for name, make := range map[string]func(p *packtest.Pack){
		"of itself":        func(p *packtest.Pack) { p.Delta(12, copies) },
		"of what follows":  func(p *packtest.Pack) { p.Delta(1000, copies) },
		"of the header":    func(p *packtest.Pack) { p.Whole(plumbing.BlobObject, []byte("abc")); p.Delta(3, copies) },
		"of its own hash":  func(p *packtest.Pack) { byHash(p, abc) },
		"of what is else":  func(p *packtest.Pack) { p.Whole(plumbing.BlobObject, []byte("abd")); byHash(p, abc) },
		"beyond its base":  func(p *packtest.Pack) { p.Delta(p.Whole(plumbing.BlobObject, []byte("abc")), []byte{3, 4, 0x90, 4}) },
		"of another size":  func(p *packtest.Pack) { p.Delta(p.Whole(plumbing.BlobObject, []byte("abcd")), copies) },
		"of a short size":  func(p *packtest.Pack) { p.Delta(p.Whole(plumbing.BlobObject, []byte("abc")), []byte{3, 4, 0x90, 3}) },
		"without a target": func(p *packtest.Pack) { p.Delta(p.Whole(plumbing.BlobObject, []byte("abc")), []byte{3}) },
		"with a zero":      func(p *packtest.Pack) { p.Delta(p.Whole(plumbing.BlobObject, []byte("abc")), []byte{3, 1, 0}) },
		"cut in a copy":    func(p *packtest.Pack) { p.Delta(p.Whole(plumbing.BlobObject, []byte("abc")), []byte{3, 3, 0xff, 0}) },
		"cut in a text":    func(p *packtest.Pack) { p.Delta(p.Whole(plumbing.BlobObject, []byte("abc")), []byte{3, 3, 3, 'a'}) },
		"empty":            func(p *packtest.Pack) { p.Delta(p.Whole(plumbing.BlobObject, []byte("abc")), nil) },
		"of no kind":       func(p *packtest.Pack) { p.Add(5, 0, nil, packtest.Zeros(0)) },
		"size too small":   func(p *packtest.Pack) { p.Add(plumbing.BlobObject, 1, nil, packtest.Zeros(2)) },
		"size too large":   func(p *packtest.Pack) { p.Add(plumbing.BlobObject, 3, nil, packtest.Zeros(2)) },
	} {
		var p packtest.Pack
		make(&p)
		if _, err := receive(t, bytes.NewReader(p.Bytes()), Options{}); !errors.Is(err, ErrDamaged) {
			t.Errorf("delta %s: %v", name, err)
		}
	}
	var twice packtest.Pack // which git allows
	twice.Whole(plumbing.BlobObject, []byte("abc"))
	twice.Whole(plumbing.BlobObject, []byte("abc"))
	byHash(&twice, abc)
	if p, err := receive(t, bytes.NewReader(twice.Bytes()), Options{}); err != nil || p.Objects != 3 {
		t.Errorf("an object that is there twice: %+v, %v", p, err)
	}
}

// G12: no input makes the receiver panic, take much memory, or report anything
// but what it is meant to.
func FuzzReceive(f *testing.F) {
	var p packtest.Pack
	base := p.Whole(plumbing.BlobObject, []byte("abc"))
	p.Delta(base, packtest.Copies(3, 2))
	tree := packtest.Tree(packtest.Entry{Mode: "100644", Name: "a", Hash: plumbing.ComputeHash(plumbing.BlobObject, []byte("abc"))})
	p.Whole(plumbing.TreeObject, tree)
	p.Whole(plumbing.CommitObject, packtest.Commit(plumbing.ComputeHash(plumbing.TreeObject, tree)))
	f.Add(p.Bytes())
	f.Add(new(packtest.Pack).Bytes())
	f.Add([]byte("PACK"))
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := Receive(t.Context(), bytes.NewReader(data), Options{Dir: dir, Limits: Limits{Memory: 1 << 20, Disk: 1 << 20, Objects: 1000}})
		var limit *LimitError
		switch {
		case err == nil:
			got.Discard()
		case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, ErrDamaged), errors.Is(err, ErrIncomplete), errors.As(err, &limit):
		default:
			t.Errorf("an error of another kind: %v", err)
		}
	})
}
