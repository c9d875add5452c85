package demo

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast/contract"
)

// I1: a story fits a terminal of 100 columns and says what was broken.
func TestPrintStory(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	p := newPrinter(&out)
	p.legend()
	for _, story := range []struct {
		history string
		ledgers []string
	}{{"send", []string{"discord"}}, {"run", []string{"openai", "backup"}}, {"fetch", []string{"git"}}, {"review", []string{"telegram"}}} {
		x, ledgers := recorded(t, story.history, story.ledgers...)
		lines, _ := timeline(x, ledgers)
		p.story(told{
			lines: lines, outcome: contract.OutcomeDelivered, summary: sums(ledgers[0]),
			notes: []note{{"answer:", strings.Repeat("long text ", 50)}}, broken: []string{"message 1 was written twice"},
		})
	}
	for line := range strings.Lines(out.String()) {
		if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > width {
			t.Errorf("a line of %d characters: %s", n, line)
		}
	}
	if n := strings.Count(out.String(), "BROKEN PROMISE: message 1 was written twice"); n != 4 {
		t.Errorf("the broken promise is told %d times, want 4", n)
	}
	if strings.ContainsRune(out.String(), '\x1b') {
		t.Error("an escape sequence was written to what is no terminal")
	}
}

type broken struct{ writes int }

var errFull = errors.New("disk full")

func (b *broken) Write([]byte) (int, error) { b.writes++; return 0, errFull }

func TestPrinterKeepsTheFirstError(t *testing.T) {
	t.Parallel()
	w := &broken{}
	p := newPrinter(w)
	p.legend()
	p.title(1, "title")
	if !errors.Is(p.err, errFull) || w.writes != 1 {
		t.Errorf("error %v after %d writes, want %v after 1", p.err, w.writes, errFull)
	}
}

// I1: links that the web UI opens: the slash of a workflow id is escaped.
func TestWorkflowURL(t *testing.T) {
	t.Parallel()
	const want = "http://127.0.0.1:8233/namespaces/default/workflows/send%2Fdemo-a-discord"
	if got := workflowURL("http://127.0.0.1:8233/", "default", "send/demo-a-discord"); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// I5: retries and failovers are told as they happen; what the timeline tells is
// left out, and other trouble is not hidden.
func TestLogger(t *testing.T) {
	t.Parallel()
	var out, rest bytes.Buffer
	log := Logger(&out, slog.NewTextHandler(&rest, &slog.HandlerOptions{
		Level: slog.LevelWarn,
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		},
	})).With("Namespace", "default")
	log.Warn("[RETRY] openai/gpt-5.1 attempt=2/9 reason=overloaded next_in=1s", "rule", "P1.7/transient", "RunID", "x")
	log.Warn("git retry", "operation", "fetch", "attempt", 2, "max_attempts", 2, "delay", "1s", "exit_code", 1)
	log.Error("Activity error.", "Error", "429")
	log.Error("disk full")
	log.Info("nothing to say")
	want := "  [RETRY] openai/gpt-5.1 attempt=2/9 reason=overloaded next_in=1s rule=P1.7/transient\n" +
		"  git retry operation=fetch attempt=2 max_attempts=2 delay=1s\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("notices (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff("level=ERROR msg=\"disk full\" Namespace=default\n", rest.String()); diff != "" {
		t.Errorf("the rest (-want +got):\n%s", diff)
	}
}

func TestStyled(t *testing.T) {
	t.Parallel()
	none := func(string) string { return "" }
	if styled(io.Discard, none) {
		t.Error("what is no file counts as a terminal")
	}
}
