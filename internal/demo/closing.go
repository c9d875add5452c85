package demo

import (
	"fmt"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast/internal/standalone"
	"github.com/holdfast-dev/holdfast/internal/temporalserver"
)

// together adds up the ledgers of all stories, in the order of their first use.
func together(all []told) []ledger {
	var sum []ledger
	for _, t := range all {
		for _, l := range t.ledgers {
			i := slices.IndexFunc(sum, func(s ledger) bool { return s.Name == l.Name })
			if i < 0 {
				i, sum = len(sum), append(sum, ledger{Name: l.Name})
			}
			sum[i].Requests = append(sum[i].Requests, l.Requests...)
			sum[i].Effects = append(sum[i].Effects, l.Effects...)
		}
	}
	return sum
}

// sums counts a ledger in words.
func sums(l ledger) string {
	s := plural(len(l.Requests), "request")
	kinds := map[string]int{}
	for _, e := range l.Effects {
		kinds[e.Kind]++
	}
	for _, k := range slices.Sorted(maps.Keys(kinds)) {
		s += ", " + plural(kinds[k], k)
	}
	switch n := len(doubled(l.Effects)); {
	case n > 0:
		return s + fmt.Sprintf(", %d DOUBLED", n)
	case len(l.Effects) > 0:
		return s + ", none doubled"
	}
	return s
}

// workflowURL is the page of a workflow in the web UI.
func workflowURL(base, namespace, id string) string {
	return fmt.Sprintf("%s/namespaces/%s/workflows/%s", strings.TrimSuffix(base, "/"), url.PathEscape(namespace), url.PathEscape(id))
}

// next are commands that work while the demo stays up.
func (s *stage) next() []string {
	starter := "go run ./cmd/starter "
	remote := starter
	if s.ready.Address != temporalserver.DefaultListen {
		remote += "--address " + s.ready.Address + " "
	}
	commands := []string{
		remote + fmt.Sprintf("send --channel discord --account %s --to %s --text hello", standalone.SimAccount, discordChannel),
		remote + "run --prompt 'What is left to do?'",
	}
	if s.checkout != "" {
		commands = append(commands, remote+"git fetch --dir "+nearby(s.checkout))
	}
	if s.review != nil && s.review.Key != "" {
		commands = append(commands, remote+"review list", remote+"review settle "+s.review.Key+" --receipt "+s.lastMessage())
	}
	return append(commands, starter+"explain error --surface telegram --operation send --code ECONNRESET")
}

// nearby is a path as seen from the working directory, where that is shorter.
func nearby(path string) string {
	here, err := os.Getwd()
	if err != nil {
		return path
	}
	if rel, err := filepath.Rel(here, path); err == nil && len(rel) < len(path) {
		return rel
	}
	return path
}

// lastMessage is the id of the message that Telegram's answer did not tell.
func (s *stage) lastMessage() string {
	all := s.ready.World.Telegram.Messages(telegramChat)
	return fmt.Sprint(all[len(all)-1].ID)
}

// plural counts things.
func plural(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// quoted is the start of a text on one line.
func quoted(s string) string { return strings.Join(strings.Fields(s), " ") }

func shorten(s string, limit int) string {
	r := []rune(s)
	if len(r) <= limit {
		return s
	}
	return string(r[:limit-3]) + "..."
}
