package demo

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast/contract"
	"github.com/holdfast-dev/holdfast/internal/standalone"
	"github.com/holdfast-dev/holdfast/simulator"
	"github.com/holdfast-dev/holdfast/simulator/discord"
	"github.com/holdfast-dev/holdfast/simulator/githttp"
	"github.com/holdfast-dev/holdfast/simulator/openai"
	"github.com/holdfast-dev/holdfast/simulator/telegram"
)

// Where the stories write.
const (
	discordChannel = "4001"
	telegramChat   = 5001
	repository     = "handbook.git"
)

// story is one piece of work and the faults that it meets.
type story struct {
	title string
	play  func(context.Context, *stage) (told, error)
}

func stories() []story {
	return []story{
		{"A message of three parts to Discord, through a 429 and a lost answer", toDiscord},
		{"A prompt to " + standalone.SimModel + ", through an outage and on to " + standalone.SimFallback, prompt},
		{"A Git fetch, through a 503", fetch},
		{"A message of two parts to Telegram, whose last answer is lost", toTelegram},
	}
}

// told is how a story went.
type told struct {
	id      string
	lines   []line
	ledgers []ledger
	outcome contract.Outcome
	// summary follows the outcome; notes are lines of their own.
	summary string
	notes   []note
	// broken are the promises that were not kept.
	broken []string
}

type note struct{ label, text string }

func (t *told) expect(ok bool, format string, args ...any) {
	if !ok {
		t.broken = append(t.broken, fmt.Sprintf(format, args...))
	}
}

func toDiscord(ctx context.Context, s *stage) (told, error) {
	world := s.ready.World.Discord
	world.Script(
		simulator.Pass().On(discord.OpCreateMessage).ForKey(discordChannel),
		discord.RateLimited(0.7, false).On(discord.OpCreateMessage).ForKey(discordChannel).As("429, retry after 0.7 s"),
		simulator.Pass().On(discord.OpCreateMessage).ForKey(discordChannel),
		simulator.EffectThenReset().On(discord.OpCreateMessage).ForKey(discordChannel).As("connection reset, no answer"),
	)
	text := report("shift log", 84)
	from := s.mark()
	h, err := s.client.Send(ctx, s.key("discord"), contract.SendInput{
		Channel: "discord", Account: standalone.SimAccount, To: discordChannel, Text: text,
	})
	result, t, err := follow(ctx, s, from, h, err, "discord")
	if err != nil {
		return t, err
	}
	t.outcome = result.Outcome
	t.expect(result.Outcome == contract.OutcomeDelivered, "the send ended as %s", result.Outcome)
	t.expect(len(world.Remaining()) == 0, "a fault of the script was never met")
	var arrived []string
	for _, m := range world.Messages(discordChannel) {
		arrived = append(arrived, m.Content)
	}
	checkMessages(&t, text, arrived, len(result.Receipts))
	for _, r := range result.Receipts {
		known := slices.ContainsFunc(t.ledgers[0].Effects, func(e simulator.Effect) bool { return e.ID == r.MessageID })
		t.expect(known, "the receipt of part %d names no message that was written", r.Part)
	}
	t.summary = sums(t.ledgers[0]) + ", " + plural(len(result.Receipts), "receipt")
	return t, nil
}

func toTelegram(ctx context.Context, s *stage) (told, error) {
	world := s.ready.World.Telegram
	chat := fmt.Sprint(telegramChat)
	world.Script(
		simulator.Pass().On(telegram.OpSendMessage).ForKey(chat),
		simulator.EffectThenReset().On(telegram.OpSendMessage).ForKey(chat).As("connection reset, no answer"),
	)
	text := report("night watch", 80)
	from := s.mark()
	h, err := s.client.Send(ctx, s.key("telegram"), contract.SendInput{
		Channel: "telegram", Account: standalone.SimAccount, To: chat, Text: text,
	})
	result, t, err := follow(ctx, s, from, h, err, "telegram")
	if err != nil {
		return t, err
	}
	t.outcome = result.Outcome
	t.expect(result.Outcome == contract.OutcomeNeedsReview && result.Review != nil, "the send ended as %s", result.Outcome)
	t.expect(len(world.Remaining()) == 0, "a fault of the script was never met")
	var arrived []string
	for _, m := range world.Messages(telegramChat) {
		arrived = append(arrived, m.Text)
	}
	checkMessages(&t, text, arrived, len(arrived))
	t.summary = sums(t.ledgers[0]) + ", " + plural(len(result.Receipts), "receipt")
	if r := result.Review; r != nil {
		s.review = r
		t.summary += "; a person decides"
		for _, d := range r.Delivered {
			t.notes = append(t.notes, note{fmt.Sprintf("part %d is message %s:", d.Part, d.MessageID), d.Text})
		}
		doubt := fmt.Sprintf("part %d is in doubt:", r.Part)
		if len(arrived) >= r.Part {
			doubt = fmt.Sprintf("part %d is in doubt (it arrived, but nobody told):", r.Part)
		}
		t.notes = append(t.notes, note{doubt, r.Text})
	}
	return t, nil
}

func prompt(ctx context.Context, s *stage) (told, error) {
	world := s.ready.World
	world.OpenAI.Script(
		openai.Overloaded().On(openai.OpResponses).As("503, overloaded"),
		simulator.CutFraction(0.4).On(openai.OpResponses).As("200, stream cut after 40 %"),
		openai.QuotaExhausted().On(openai.OpResponses).As("429, monthly quota is spent"),
	)
	from := s.mark()
	h, err := s.client.Run(ctx, s.key("prompt"), contract.RunInput{
		Agent: "main", Prompt: "What must be done before the next release?",
	})
	result, t, err := follow(ctx, s, from, h, err, "openai", "backup")
	if err != nil {
		return t, err
	}
	t.outcome = result.Outcome
	t.expect(result.Outcome == contract.OutcomeCompleted, "the run ended as %s", result.Outcome)
	t.expect(result.Served == standalone.SimFallback, "the answer came from %q", result.Served)
	t.expect(len(world.OpenAI.Remaining()) == 0, "a fault of the script was never met")
	answers := t.ledgers[1].Effects
	t.expect(len(answers) == 1 && answers[0].Content == result.Text, "the text is not the one whole answer that was given")
	t.summary = fmt.Sprintf("%s asked, %s served, %d input and %d output tokens",
		result.Requested, result.Served, result.Usage.InputTokens, result.Usage.OutputTokens)
	t.notes = append(t.notes, note{"answer:", result.Text})
	return t, nil
}

func fetch(ctx context.Context, s *stage) (told, error) {
	world := s.ready.World.Git
	dir, err := checkout(ctx, world, s.ready.Checkouts, "demo-"+s.id)
	if err != nil {
		return told{}, err
	}
	s.ready.OnStop(func() { removeCheckout(dir) })
	if err := world.Commit(repository, "main", 2); err != nil {
		return told{}, err
	}
	world.Script(githttp.Unavailable().ForKey(repository).As("503, unavailable"))
	from := s.mark()
	h, err := s.client.GitFetch(ctx, s.key("fetch"), contract.GitFetchInput{Dir: dir, Host: s.ready.GitHost})
	result, t, err := follow(ctx, s, from, h, err, "git")
	if err != nil {
		return t, err
	}
	t.outcome = result.Outcome
	t.expect(result.Outcome == contract.OutcomeFetched, "the fetch ended as %s", result.Outcome)
	t.expect(len(world.Remaining()) == 0, "a fault of the script was never met")
	want := world.Refs(repository)["refs/heads/main"]
	have, err := refOf(ctx, dir, "refs/remotes/origin/main")
	t.expect(err == nil && have == want, "the checkout has %s where the remote has %s", have, want)
	for _, u := range result.Updated {
		t.notes = append(t.notes, note{"moved:", fmt.Sprintf("%s from %.10s to %.10s", u.Ref, u.Old, u.New)})
	}
	t.summary = sums(t.ledgers[0]) + fmt.Sprintf(", %s moved in the checkout", plural(len(result.Updated), "ref"))
	s.checkout = dir
	return t, nil
}

// checkMessages compares what arrived with the text that was to be sent.
func checkMessages(t *told, text string, arrived []string, parts int) {
	for _, e := range doubled(t.ledgers[0].Effects) {
		t.expect(false, "message %s was written twice", e.ID)
	}
	t.expect(len(arrived) == parts, "%d messages arrived for %d parts", len(arrived), parts)
	same := strings.Join(strings.Fields(strings.Join(arrived, "\n")), " ") == strings.Join(strings.Fields(text), " ")
	t.expect(same, "the messages together are not the text that was sent")
}

// report is a text of numbered lines, each different from all others, so that a
// lost or doubled piece shows.
func report(name string, lines int) string {
	var b strings.Builder
	for i := range lines {
		fmt.Fprintf(&b, "%02d:%02d %s, entry %d: all doors checked, nothing to report.\n", i/4, i%4*15, name, i+1)
	}
	return b.String()
}

var errNoWorld = errors.New("the demo needs the simulators")
