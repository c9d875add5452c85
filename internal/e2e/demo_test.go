package e2e

import (
	"bytes"
	"context"
	"io"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast/contract"
	"github.com/holdfast-dev/holdfast/internal/demo"
	"github.com/holdfast-dev/holdfast/internal/standalone"
)

// I1: the demo shows a message, a prompt and a fetch through their faults, and
// every effect is in the ledgers exactly once.
func TestDemo(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	effects := map[string]int{}
	var checkouts string
	err := standalone.Run(t.Context(), standalone.Options{
		Data: t.TempDir(), Ephemeral: true, Listen: "127.0.0.1:0", NoUI: false, UIListen: "127.0.0.1:0",
		Simulate: true, Exit: true, Env: func(string) (string, bool) { return "", false },
		Out: &out, Err: io.Discard, Started: time.Now(), Version: "e2e",
		Guide: func(ctx context.Context, r *standalone.Ready) error {
			checkouts = r.Checkouts
			err := demo.Run(ctx, r)
			for name, s := range r.World.Servers() {
				effects[name] = len(s.Ledger().Effects(""))
			}
			effects["backup"] = len(r.World.Backup.Ledger().Effects(""))
			return err
		},
	})
	if err != nil {
		t.Fatalf("%v; the demo said:\n%s", err, out.String())
	}
	want := map[string]int{"discord": 3, "telegram": 2, "openai": 1, "backup": 1, "git": 0}
	if diff := cmp.Diff(want, effects); diff != "" {
		t.Errorf("effects (-want +got):\n%s", diff)
	}
	checkDemoOutput(t, out.String())
	if _, err := os.Stat(checkouts); !os.IsNotExist(err) {
		t.Errorf("the checkouts of an ephemeral process were left at %s (%v)", checkouts, err)
	}
}

func checkDemoOutput(t *testing.T, said string) {
	t.Helper()
	for _, pattern := range []string{
		`discord part 2/3 +429, retry after 0.7 s +no change\n +> rate_limit, rule C2\.1/rate_limit; waited [\d.]+ s \(at least 0\.70 s was asked for\)`,
		`discord part 3/3 +connection reset, no answer +\+1 message\n +> timeout, rule C2\.1/\S+ waited`,
		`discord part 3/3, again +200 +no change`,
		`= ` + string(contract.OutcomeDelivered) + `: 5 requests, 3 messages, none doubled, 3 receipts`,
		`> overloaded, rule P4\.`,
		`stream cut after 40 % +\+1 response\n +> stream_interrupted, rule P4\.`,
		`> quota_exhausted, rule P4\.\S+ waited [\d.]+ s\n +waiting cannot help, so on to ` + standalone.SimFallback,
		`= ` + string(contract.OutcomeCompleted) + `: ` + standalone.SimModel + ` asked, ` + standalone.SimFallback + ` served`,
		`git fetch, attempt 1 of 2 +503, unavailable`,
		`= ` + string(contract.OutcomeFetched) + `: 4 requests, 1 ref moved`,
		`= ` + string(contract.OutcomeNeedsReview) + `: 2 requests, 2 messages, none doubled, 1 receipt`,
		`http://127\.0\.0\.1:\d+/namespaces/default/workflows/send%2Fdemo-\w+-discord\n`,
		`go run ./cmd/starter --address 127\.0\.0\.1:\d+ review settle demo-\w+-telegram --receipt 2`,
	} {
		if !regexp.MustCompile(pattern).MatchString(said) {
			t.Errorf("the output lacks %s", pattern)
		}
	}
	for line := range strings.Lines(said) {
		if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > 100 && !strings.Contains(line, "go run") {
			t.Errorf("a line of %d characters: %s", n, line)
		}
	}
	if strings.ContainsRune(said, '\x1b') {
		t.Error("an escape sequence was written to what is no terminal")
	}
	if t.Failed() {
		t.Logf("the demo said:\n%s", said)
	}
}
