package pack

import (
	"bytes"
	"testing"
)

// Q4: taking in a pack of 2,000 commits.
func BenchmarkReceive(b *testing.B) {
	data := packOf(b, repository(b, 2000), "--delta-base-offset")
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	dir := b.TempDir()
	for b.Loop() {
		p, err := Receive(b.Context(), bytes.NewReader(data), Options{Dir: dir, Limits: Limits{Memory: 512 << 20}})
		if err != nil {
			b.Fatal(err)
		}
		p.Discard()
	}
}
