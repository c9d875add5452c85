package git

import (
	"testing"

	"github.com/holdfast-dev/holdfast/contract"
	"github.com/holdfast-dev/holdfast/internal/gitbench"
	"github.com/holdfast-dev/holdfast/internal/measure"
	"github.com/holdfast-dev/holdfast/policies"
)

// BenchmarkGit compares each engine, inside its activity, with the plain git
// program (Q4) on a repository of 20,000 commits. Every measured operation has a
// process of its own. "x-plain" is of the time; "MB" is of the largest process,
// "together-MB" of all at once, "more-MB" what of that the worker did not have
// before. Run it with -benchtime 15x.
func BenchmarkGit(b *testing.B) {
	f := gitbench.Start(b)
	compareAll(b, f, f.Commits(b))
}

func compareAll(b *testing.B, f *gitbench.Forge, operations []gitbench.Operation) {
	for _, o := range operations {
		for _, engine := range gitbench.Engines {
			b.Run(o.Name+"/"+engine, func(b *testing.B) {
				f.Compare(b, o, func(b *testing.B, dir string, watched bool) (measure.Cost, measure.Memory) {
					return inWorker(b, orderOf(f, engine, o, dir), o.Outcome, watched)
				})
			})
		}
	}
}

func orderOf(f *gitbench.Forge, engine string, o gitbench.Operation, dir string) benchOrder {
	request := contract.GitRequest{LimitMS: benchLimit.Milliseconds()}
	if o.Kind != policies.OpFetch {
		request.URL = f.URL()
	}
	if o.Kind != policies.OpLsRemote {
		request.Dir = dir
	}
	return benchOrder{Engine: engine, Operation: o.Kind, Request: request, WarmUp: f.SmallURL()}
}

// inWorker does one operation in a worker's process of its own.
func inWorker(b *testing.B, order benchOrder, want contract.Outcome, watched bool) (measure.Cost, measure.Memory) {
	w := startBenchWorker(b, order)
	stop := func() measure.Memory { return measure.Memory{} }
	if watched {
		stop = measure.Watch(w.cmd.Process.Pid)
	}
	done := w.do(b)
	memory := stop()
	w.end(b)
	if done.Outcome != want {
		b.Fatalf("%s by %s ended as %q, want %q: %+v", order.Operation, order.Engine, done.Outcome, want, done.Failure)
	}
	return done.Cost, memory
}
