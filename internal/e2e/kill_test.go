package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	enumspb "go.temporal.io/api/enums/v1"

	"github.com/holdfast-dev/holdfast/contract"
	"github.com/holdfast-dev/holdfast/simulator"
	"github.com/holdfast-dev/holdfast/simulator/discord"
	"github.com/holdfast-dev/holdfast/simulator/openai"
	"github.com/holdfast-dev/holdfast/simulator/telegram"
)

// killHeld waits until a request is held at the gate, kills the worker that made
// it, and starts another.
func (s *stage) killHeld(worker *roleProcess, server *simulator.Server, gate string) {
	s.t.Helper()
	n, err := server.Gate(gate).WaitHeld(s.ctx)
	if err != nil {
		s.t.Fatal(err)
	}
	worker.kill()
	// The effect is decided before the other worker begins.
	s.poll("end of the killed worker's connection", func() bool {
		r, _ := server.Ledger().Request(n)
		return !r.GoneAt.IsZero()
	})
	s.worker()
}

// C2.1, C2.8: the worker is killed with SIGKILL while part 2 of 3 is in flight,
// and another is started: Discord has three messages, once each, whether the
// worker died before the effect or after it and before the answer.
func TestDiscordWorkerKilled(t *testing.T) {
	t.Parallel()
	for name, step := range map[string]simulator.Step{
		"before the effect": simulator.HoldBefore("part 2"),
		"after the effect":  simulator.HoldAfter("part 2"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			s.world.Discord.Script(simulator.Pass().On(discord.OpCreateMessage), step.On(discord.OpCreateMessage))
			worker := s.worker()
			text := prose(5000)
			h := s.send("killed", contract.SendInput{Channel: "discord", Text: text})
			s.killHeld(worker, s.world.Discord.Server, "part 2")
			wantOutcome(t, finish(s, h), contract.OutcomeDelivered, 3)
			got := contents(s.world.Discord.Server, discord.EffectMessage)
			if len(got) != 3 || joined(got) != joined([]string{text}) {
				t.Errorf("%d messages, want 3 that make up the text in order:\n%s", len(got), strings.Join(got, "\n---\n"))
			}
			wantRequests(t, s.world.Discord.Server, discord.OpCreateMessage, 4)
		})
	}
}

// C2.8, C4: the same for Telegram, which has neither key nor reads: part 1 is
// delivered and stays so, part 2 is asked about, and part 3 waits.
func TestTelegramWorkerKilled(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.world.Telegram.Script(simulator.Pass().On(telegram.OpSendMessage), simulator.HoldBefore("part 2").On(telegram.OpSendMessage))
	worker := s.worker()
	h := s.send("killed", contract.SendInput{Channel: "telegram", Text: prose(10_000)})
	s.killHeld(worker, s.world.Telegram.Server, "part 2")
	result := finish(s, h)
	s.track("review/killed")
	wantOutcome(t, result, contract.OutcomeNeedsReview, 1)
	if result.Review == nil || result.Review.Part != 2 || result.Error.Reason != "worker_lost" {
		t.Errorf("review %+v, error %+v, want one of part 2 for worker_lost", result.Review, result.Error)
	}
	wantRequests(t, s.world.Telegram.Server, telegram.OpSendMessage, 2)
	if n := len(contents(s.world.Telegram.Server, telegram.EffectMessage)); n != 1 {
		t.Errorf("%d messages, want 1", n)
	}
}

// M3.17: a worker killed in the middle of a model's stream is worker_lost: the
// run goes on with the same candidate, uncharged and at once.
func TestModelWorkerKilled(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.world.OpenAI.Script(simulator.StallEvents(5).On(openai.OpResponses))
	worker := s.worker()
	h := s.run("killed", contract.RunInput{})
	s.streaming(s.world.OpenAI.Server)
	worker.kill()
	s.worker()
	result := finish(s, h)
	wantAnswer(t, result)
	wantAttempts(t, result, "openai/gpt-5.1 worker_lost", "openai/gpt-5.1")
	history := s.history(h.ID())
	names := summaries(history, enumspb.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED)
	if len(names) != 2 || names[0] != names[1] || !strings.Contains(names[0], "attempt 1 of") {
		t.Errorf("attempts %q, want the first of the budget twice", names)
	}
	if waits := summaries(history, enumspb.EVENT_TYPE_TIMER_STARTED); len(waits) > 0 {
		t.Errorf("the run waited: %q", waits)
	}
	s.keep("run-worker-lost", h.ID())
}

// Q2: the server is killed with SIGKILL, and started again on its file, while a
// run waits for its floor and a send for its retry. Both go on and end well, and
// no floor is undercut.
func TestServerKilledUnderWaits(t *testing.T) {
	t.Parallel()
	s := newOutside(t)
	dir := t.TempDir()
	server, address := startServer(t, dir, "127.0.0.1:0")
	s.connect(address)
	s.work()
	s.world.OpenAI.Script(openai.RateLimited(4).On(openai.OpResponses))
	s.world.Discord.Script(discord.RateLimited(4, false).On(discord.OpCreateMessage))
	run := s.run("server-killed", contract.RunInput{})
	send := s.send("server-killed", contract.SendInput{Channel: "discord", Text: "once"})
	awaitEvent(t, s.temporal, s.temporal.GetWorkflow(s.ctx, run.ID(), ""), "TimerStarted")
	s.until(send.ID(), "second attempt", attempt(2))

	server.kill()
	if _, again := startServer(t, dir, address); again != address {
		t.Fatalf("restarted on %s, want %s", again, address)
	}
	wantAnswer(t, finish(s, run))
	wantOutcome(t, finish(s, send), contract.OutcomeDelivered, 1)
	wantContents(t, s.world.Discord.Server, "once")
	wantRequests(t, s.world.Discord.Server, discord.OpCreateMessage, 2)
	wantRequests(t, s.world.OpenAI.Server, openai.OpResponses, 2)
	for _, server := range s.world.Servers() {
		if early := server.Ledger().Early(0); len(early) > 0 {
			t.Errorf("requests before their floor: %+v", early)
		}
	}
	s.examine() // while the second server is there
}

// Two worker processes share the work: of sends that are started until both have
// had a part, each is done once.
func TestTwoWorkersShare(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.worker()
	s.worker()
	took := map[string]int{}
	sent := 0
	for len(took) < 2 && s.ctx.Err() == nil {
		h := s.send(fmt.Sprintf("shared-%d", sent), contract.SendInput{Channel: "discord", Text: fmt.Sprintf("message %d", sent)})
		wantOutcome(t, finish(s, h), contract.OutcomeDelivered, 1)
		sent++
		for _, e := range s.history(h.ID()).GetEvents() {
			if a := e.GetActivityTaskStartedEventAttributes(); a != nil {
				took[a.GetIdentity()]++
			}
		}
	}
	if len(took) != 2 {
		t.Errorf("the sends were done by %v, want two processes", took)
	}
	var want []string
	for i := range sent {
		want = append(want, fmt.Sprintf("message %d", i))
	}
	if diff := cmp.Diff(want, contents(s.world.Discord.Server, discord.EffectMessage)); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
}

// I1: --queues: a process serves only what it was asked to.
func TestWorkersByQueue(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	p := s.worker("telegram", "workflows")
	telegramSend := s.send("telegram", contract.SendInput{Channel: "telegram", Text: "by the first"})
	discordSend := s.send("discord", contract.SendInput{Channel: "discord", Text: "by the second"})
	wantOutcome(t, finish(s, telegramSend), contract.OutcomeDelivered, 1)
	wantContents(t, s.world.Discord.Server)
	s.worker("discord")
	wantOutcome(t, finish(s, discordSend), contract.OutcomeDelivered, 1)
	// SIGTERM drains and ends well.
	if status := p.terminate(); status != contract.ExitOK {
		t.Errorf("the drained worker's exit status is %d, want 0; errors:\n%s", status, p.stderr.String())
	}
}
