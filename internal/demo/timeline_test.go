package demo

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/temporalproto"

	"github.com/holdfast-dev/holdfast/contract"
	"github.com/holdfast-dev/holdfast/simulator"
)

// recorded reads the testdata of a story: the history that a demo left, and the
// ledgers of the simulators, cut down to what the timeline reads.
func recorded(t *testing.T, history string, names ...string) (execution, []ledger) {
	t.Helper()
	var h historypb.History
	if err := (temporalproto.CustomJSONUnmarshalOptions{}).Unmarshal(read(t, history+".history.json"), &h); err != nil {
		t.Fatal(err)
	}
	x, err := readHistory(h.GetEvents())
	if err != nil {
		t.Fatal(err)
	}
	var ledgers []ledger
	for _, name := range names {
		var l simulator.LedgerResponse
		if err := json.Unmarshal(read(t, name+".ledger.json"), &l); err != nil {
			t.Fatal(err)
		}
		ledgers = append(ledgers, ledger{Name: name, Requests: l.Requests, Effects: l.Effects})
	}
	return x, ledgers
}

func read(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// row is what a test compares of a line.
type row struct{ Request, Answer, Effect, Rule, Next, Wait string }

func rows(lines []line) []row {
	var out []row
	for _, l := range lines {
		r := row{Request: l.request, Answer: l.answer, Effect: effectOf(l.effects)}
		if d := l.decision; d != nil {
			r.Rule, r.Next, r.Wait = d.failure.Rule, d.why(), d.wait()
		}
		out = append(out, r)
	}
	return out
}

// I1: request, fault, decision with its rule, wait and effect come from the
// history and the ledger.
func TestTimeline(t *testing.T) {
	t.Parallel()
	const harmless = "nothing that a repeat could double, so once more"
	for _, test := range []struct {
		name    string
		history string
		ledgers []string
		want    []row
	}{
		{"server repeats", "send", []string{"discord"}, []row{
			{"discord part 1/3", "200", "+1 message", "", "", ""},
			{
				"discord part 2/3", "429, retry after 0.7 s", "no change", "C2.1/rate_limit",
				"proved not sent, so the same part once more", "waited 0.98 s (at least 0.70 s was asked for)",
			},
			{"discord part 2/3, again", "200", "+1 message", "", "", ""},
			{
				"discord part 3/3", "connection reset, no answer", "+1 message", "C2.1/transport",
				"it may have been written; its nonce makes a repeat harmless, so once more", "waited 1.00 s",
			},
			{"discord part 3/3, again", "200", "no change", "", "", ""},
		}},
		{"two servers and a failover", "run", []string{"openai", "backup"}, []row{
			{"openai/gpt-5.1 attempt 1 of 9", "503, overloaded", "no change", "P4.2/overloaded", harmless, "waited 1.11 s"},
			{"openai/gpt-5.1 attempt 2 of 9", "200, stream cut after 40 %", "+1 response", "P4.13/stream_interrupted", harmless, "waited 1.09 s"},
			{
				"openai/gpt-5.1 attempt 3 of 9", "429, the month's quota is spent", "no change", "P4.6/long_window",
				"waiting cannot help, so on to backup/gpt-5.1-mini", "waited 0.02 s",
			},
			{"backup/gpt-5.1-mini attempt 1 of 9", "200", "+1 response", "", "", ""},
		}},
		{"several requests in one attempt", "fetch", []string{"git"}, []row{
			{"git fetch, attempt 1 of 2", "503, unavailable", "no change", "G4/http_503", harmless, "waited 1.16 s"},
			{"git fetch, attempt 2 of 2: info/refs", "200", "no change", "", "", ""},
			{"git fetch, attempt 2 of 2: git-upload-pack", "200", "no change", "", "", ""},
		}},
		{"no repeat", "review", []string{"telegram"}, []row{
			{"telegram part 1/2", "200", "+1 message", "", "", ""},
			{
				"telegram part 2/2", "connection reset, no answer", "+1 message", "C2.5/transport",
				"it may have been written, and a repeat could double it, so no repeat", "",
			},
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			x, ledgers := recorded(t, test.history, test.ledgers...)
			lines, strays := timeline(x, ledgers)
			if diff := cmp.Diff(test.want, rows(lines)); diff != "" {
				t.Errorf("timeline (-want +got):\n%s", diff)
			}
			if len(strays) > 0 {
				t.Errorf("strays: %v", strays)
			}
			for _, l := range lines {
				if l.decision.undercut() {
					t.Errorf("%s counts as too early", l.request)
				}
			}
		})
	}
}

// A request that no attempt in the history accounts for is not hidden.
func TestTimelineTellsStrays(t *testing.T) {
	t.Parallel()
	x, ledgers := recorded(t, "send", "discord")
	ledgers[0].Requests = append(ledgers[0].Requests,
		simulator.Request{N: 98, At: x.started.Add(-time.Second)}, simulator.Request{N: 99, At: x.ended.Add(time.Second)})
	if _, strays := timeline(x, ledgers); len(strays) != 2 || strays[0].N != 98 || strays[1].N != 99 {
		t.Errorf("strays %v, want requests 98 and 99", strays)
	}
}

// P2: a floor is never undercut, and the demo would say so.
func TestUndercut(t *testing.T) {
	t.Parallel()
	floor := int64(700)
	for waited, want := range map[time.Duration]bool{699 * time.Millisecond: true, 700 * time.Millisecond: false} {
		d := &decision{failure: contract.Failure{FloorMS: &floor}, again: true, waited: waited}
		if d.undercut() != want {
			t.Errorf("waited %v of 700 ms: undercut %v, want %v", waited, d.undercut(), want)
		}
	}
}

// An effect counts as doubled where the same content came twice to one place.
func TestDoubled(t *testing.T) {
	t.Parallel()
	message := simulator.Effect{Kind: "message", ID: "1", Key: "c", Content: "hello"}
	elsewhere, twin := message, message
	elsewhere.Key, twin.ID = "d", "2"
	if got := doubled([]simulator.Effect{message, elsewhere}); len(got) != 0 {
		t.Errorf("doubled %v, want none", got)
	}
	l := ledger{Effects: []simulator.Effect{message, elsewhere, twin}}
	if got := sums(l); !strings.Contains(got, "1 DOUBLED") {
		t.Errorf("sums say %q, want 1 DOUBLED", got)
	}
}

// Rule 3: a message that arrived twice, or not at all, is a broken promise.
func TestCheckMessages(t *testing.T) {
	t.Parallel()
	effect := func(id, text string) simulator.Effect {
		return simulator.Effect{Kind: "message", ID: id, Key: "c", Content: text}
	}
	for _, test := range []struct {
		name    string
		arrived []string
		broken  int
	}{
		{"kept", []string{"one", "two"}, 0},
		{"doubled", []string{"one", "two", "two"}, 3},
		{"lost", []string{"one"}, 2},
		{"out of order", []string{"two", "one"}, 1},
	} {
		told := told{ledgers: []ledger{{}}}
		for i, text := range test.arrived {
			told.ledgers[0].Effects = append(told.ledgers[0].Effects, effect(string(rune('1'+i)), text))
		}
		checkMessages(&told, "one\ntwo", test.arrived, 2)
		if len(told.broken) != test.broken {
			t.Errorf("%s: %d broken promises %q, want %d", test.name, len(told.broken), told.broken, test.broken)
		}
	}
}
