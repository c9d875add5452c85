package git

import (
	"context"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/attempt"
	"github.com/holdfast-dev/holdfast/policies"
	"github.com/holdfast-dev/holdfast/simulator/githttp"
)

// Q4: what the engine costs over the plain program, in pairs of runs that take
// turns: clone of 20,000 commits, fetch of 2,000 and of none. "ratio" is of the
// medians; the absolute figures are in milliseconds.
func BenchmarkProgram(b *testing.B) {
	server, err := githttp.Start(githttp.Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { server.Close() })
	if err := server.Create("r.git", 20_000); err != nil {
		b.Fatal(err)
	}
	g, err := newProgram(programConfig{transport: attempt.NewTransport(attempt.Options{Fresh: true})})
	if err != nil {
		b.Fatal(err)
	}
	plain := func(dir string, args ...string) {
		cmd := exec.Command("git", args...)
		cmd.Dir = dir
		cmd.Env = append(cmd.Environ(), "LC_ALL=C", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			b.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	url := server.RepoURL("r.git")
	r := &remote{GitURL: policies.GitURL{Transport: policies.GitHTTP, Host: "127.0.0.1"}, url: url}
	clone := func(ctx context.Context, dir string) {
		r.progress = &progress{}
		if _, err := g.clone(ctx, r, dir, cloneSpec{}); err != nil {
			b.Fatal(err)
		}
	}
	fetch := func(ctx context.Context, dir string) {
		c, err := openCheckout(dir, nil)
		if err != nil {
			b.Fatal(err)
		}
		r.progress = &progress{}
		if _, err := g.fetch(ctx, r, c, ""); err != nil {
			b.Fatal(err)
		}
	}
	base := filepath.Join(b.TempDir(), "base")
	plain("/", "clone", "-q", url, base)
	behind := filepath.Join(b.TempDir(), "behind")
	plain("/", "clone", "-q", "--bare", url, behind)
	plain(behind, "update-ref", "refs/heads/main", "main~2000")
	plain("/", "clone", "-q", "--no-local", behind, behind+"-2000")
	plain(behind+"-2000", "remote", "set-url", "origin", url)

	for _, tc := range []struct {
		name string
		from string // copied to dir first
		git  func(dir string)
		ours func(ctx context.Context, dir string)
	}{
		{"clone", "", func(dir string) { plain("/", "clone", "-q", url, dir) }, clone},
		{"fetch-2000", behind + "-2000", func(dir string) { plain(dir, "fetch", "-q", "origin") }, fetch},
		{"fetch-0", base, func(dir string) { plain(dir, "fetch", "-q", "origin") }, fetch},
	} {
		b.Run(tc.name, func(b *testing.B) {
			var git, ours []time.Duration
			prepared := func(name string) string {
				dir := filepath.Join(b.TempDir(), name)
				if tc.from != "" {
					plain("/", "clone", "-q", "--local", tc.from, dir)
					plain(dir, "remote", "set-url", "origin", url)
				}
				return dir
			}
			for i := 0; b.Loop(); i++ {
				pair := []func(){
					func() { git = append(git, timed(prepared("git"), tc.git)) },
					func() {
						ours = append(ours, timed(prepared("ours"), func(dir string) { tc.ours(attempt.With(b.Context(), attempt.New()), dir) }))
					},
				}
				pair[i%2]()
				pair[1-i%2]()
			}
			b.ReportMetric(ms(git), "git-ms")
			b.ReportMetric(ms(ours), "ours-ms")
			b.ReportMetric(ms(ours)/ms(git), "ratio")
		})
	}
}

func timed(dir string, work func(string)) time.Duration {
	began := time.Now()
	work(dir)
	return time.Since(began)
}

func ms(d []time.Duration) float64 {
	slices.Sort(d)
	return float64(d[len(d)/2].Microseconds()) / 1000
}
