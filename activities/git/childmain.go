package git

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/internal/attempt"
)

// childVariable marks a process as a child for Git work. It says how many files
// it inherits before the one by which it learns of its parent's end.
const childVariable = "HOLDFAST_GIT_CHILD"

// A child is whatever program this package is linked into, workers and tests
// alike: it never gets as far as that program's main.
func init() {
	files, ok := os.LookupEnv(childVariable)
	if !ok {
		return
	}
	os.Unsetenv(childVariable) // it is for us and not for what we start
	os.Exit(childMain(files, os.Stdin, os.Stdout))
}

// Exit statuses of a child that could not say how it ended.
const (
	exitTalk   = 85
	exitMemory = 86
)

// childMain does what is asked for on in and says on out how it went.
func childMain(files string, in io.Reader, out io.Writer) int {
	n, err := strconv.Atoi(files)
	if err != nil {
		return exitTalk
	}
	go dieWithParent(uintptr(3 + n))
	var q childRequest
	if err := json.NewDecoder(in).Decode(&q); err != nil {
		return exitTalk
	}
	limitMemory(q.Limits.Memory)
	w := &childWork{childRequest: q, out: out, progress: &progress{}, rec: attempt.New()}
	stop := make(chan struct{})
	var reporting sync.WaitGroup
	reporting.Go(func() { w.report(stop) })
	end := w.do(attempt.With(context.Background(), w.rec))
	close(stop)
	reporting.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := say(out, end); err != nil {
		return exitTalk
	}
	return 0
}

// limitMemory bounds what this process holds. The collector works harder near the
// limit; past it the process ends. Where the system can, it keeps what no look at
// the clock would see in time: a single huge allocation.
func limitMemory(limit int64) {
	if limit <= 0 {
		return
	}
	debug.SetMemoryLimit(limit - limit/8)
	limitData(2*limit + 256<<20)
	go func() {
		samples := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
		for {
			metrics.Read(samples)
			if held := samples[0].Value.Uint64() - samples[1].Value.Uint64(); held > uint64(limit) {
				os.Exit(exitMemory)
			}
			time.Sleep(10 * time.Millisecond)
		}
	}()
}

// childWork is what one child does.
type childWork struct {
	childRequest
	progress *progress
	rec      *attempt.Record

	mu  sync.Mutex
	out io.Writer
}

// reportEvery is the time between two words on the progress.
const reportEvery = 100 * time.Millisecond

// report tells how far the work is, also when it has ended.
func (w *childWork) report(stop <-chan struct{}) {
	ticker := time.NewTicker(reportEvery)
	defer ticker.Stop()
	var last childProgress
	for ended := false; !ended; {
		select {
		case <-stop:
			ended = true
		case <-ticker.C:
		}
		p := w.progress
		now := childProgress{Phase: p.phase.Load(), Objects: p.objects.Load(), Done: p.done.Load(), Bytes: p.bytes.Load()}
		if now != last {
			w.say(childMessage{Progress: &now})
			last = now
		}
	}
}

// say tells the parent something on the way. A parent that does not hear is gone.
func (w *childWork) say(m childMessage) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if say(w.out, m) != nil {
		os.Exit(exitTalk)
	}
}

func (w *childWork) do(ctx context.Context) childMessage {
	end, err := w.work(ctx)
	if err != nil {
		return w.failure(err)
	}
	end.Done = true
	return end
}

func (w *childWork) work(ctx context.Context) (end childMessage, err error) {
	l := limits{memory: w.Limits.Memory, disk: w.Limits.Disk, objects: w.Limits.Objects}
	g := newGoGit(newTransport(w.ConnectTimeout), w.ConnectTimeout, l)
	r := &remote{GitURL: w.Remote, url: w.URL, creds: w.Credentials, progress: w.progress}
	if w.Op == childClone {
		p := w.Clone
		end.Head, err = g.clone(ctx, r, w.Dir, cloneSpec{ref: p.Ref, depth: p.Depth, singleBranch: p.SingleBranch, noTags: p.NoTags, sparse: p.Sparse})
		return end, err
	}
	c, err := openDirs(w.Common, w.GitDir, l.memory)
	if err != nil {
		return end, err
	}
	c.worktree = w.Worktree
	begins := func() { w.say(childMessage{Begun: true}) }
	switch w.Op {
	case childFetch:
		end.Updates, err = g.fetch(ctx, r, c, w.Ref)
	case childPush:
		err = g.pushBegun(ctx, r, c, w.Intent, begins)
	case childLocate:
		end.Located, err = g.locate(ctx, r, c, w.Ref, w.Ours)
	case childDescends:
		end.Yes, err = g.descends(ctx, c, w.To, w.From)
	case childAdvance:
		err = g.advanceBegun(ctx, c, w.progress, w.From, w.To, begins)
	default:
		err = errChildWords
	}
	return end, err
}

// failure is an error in a form that can be told.
func (w *childWork) failure(err error) (end childMessage) {
	var unsent *unsentError
	end.Unsent = errors.As(err, &unsent)
	err = unwrap(err)
	var local *localError
	if !errors.As(err, &local) {
		local = localFault(err)
	}
	if local != nil {
		end.Local = &childLocal{Reason: local.reason, Rule: local.rule, Retry: local.retry, Message: local.message}
		return end
	}
	fault := faultOf(w.rec, err)
	end.Fault = &fault
	return end
}
