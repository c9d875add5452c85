package e2e

import (
	"context"
	"net"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast/contract"
	"github.com/holdfast-dev/holdfast/internal/starter"
	"github.com/holdfast-dev/holdfast/simulator"
	"github.com/holdfast-dev/holdfast/simulator/discord"
	"github.com/holdfast-dev/holdfast/simulator/openai"
)

// I1: exit statuses and, with --json, exactly one object in every case. 3 is
// shown by TestTelegramEffectThenReset, 1 for runs by TestModelFails.
func TestExitStatuses(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.work()
	s.world.Discord.Missing("404")
	s.world.Discord.Script(discord.RateLimited(40, false).On(discord.OpCreateMessage).ForKey("slow").Always())
	send := []string{"send", "--channel", "discord", "--account", "main", "--text", "hello"}
	for _, tc := range []struct {
		name    string
		args    []string
		status  int
		outcome string
	}{
		{"delivered", append(send, "--to", channelID, "--key", "status-0"), contract.ExitOK, "delivered"},
		{"started", append(send, "--to", channelID, "--key", "status-0", "--no-wait"), contract.ExitOK, "started"},
		{"wait timeout", append(send, "--to", "slow", "--key", "status-timeout", "--wait-timeout", "100ms"), contract.ExitOK, "started"},
		{"rejected", append(send, "--to", "404", "--key", "status-1"), contract.ExitFailed, "rejected"},
		{"unknown account", []string{"send", "--channel", "discord", "--account", "nobody", "--to", "1", "--text", "x", "--key", "status-account"},
			contract.ExitFailed, "rejected"},
		{"bad ttl", append(send, "--to", "1", "--key", "status-ttl", "--ttl", "soon"), contract.ExitUsage, "usage_error"},
		{"the key is still free", append(send, "--to", channelID, "--key", "status-ttl", "--ttl", "5m"), contract.ExitOK, "delivered"},
		{"empty key", append(send, "--to", channelID, "--key", ""), contract.ExitUsage, "usage_error"},
		{"key beyond ASCII", append(send, "--to", channelID, "--key", "straße"), contract.ExitUsage, "usage_error"},
		{"bad flag", []string{"send", "--chanel", "discord"}, contract.ExitUsage, "usage_error"},
		{"missing flag", []string{"send", "--channel", "discord"}, contract.ExitUsage, "usage_error"},
		{"no verb", nil, contract.ExitUsage, "usage_error"},
		{"no such work", []string{"cancel", "send/nobody"}, contract.ExitUsage, "usage_error"},
		{"no such work to watch", []string{"watch", "send/nobody"}, contract.ExitUsage, "usage_error"},
		{"no such namespace", append(send, "--to", "1", "--namespace", "nowhere"), contract.ExitUsage, "usage_error"},
		{"no such file", append(send, "--to", "1", "--config", "/nonexistent/holdfast.yaml"), contract.ExitUsage, "usage_error"},
		{"watched", []string{"watch", "send/status-0"}, contract.ExitOK, "delivered"},
		{"set up", []string{"setup"}, contract.ExitOK, "completed"},
		{"version", []string{"version"}, contract.ExitOK, "completed"},
	} {
		// In order: some cases need the work of those before.
		plain := s.starter(tc.args...)
		if plain.status != tc.status {
			t.Errorf("%s: exit status %d, want %d; errors: %s", tc.name, plain.status, tc.status, plain.errors)
		}
		if tc.status == contract.ExitUsage && (plain.out != "" && !strings.Contains(plain.out, "Usage:") || plain.errors == "") {
			t.Errorf("%s: output %q and errors %q, want the errors on standard error", tc.name, plain.out, plain.errors)
		}
		a := s.starter(append(tc.args, "--json")...)
		object := s.object(a)
		if diff := cmp.Diff([]any{tc.status, tc.outcome}, []any{a.status, object["outcome"]}); diff != "" {
			t.Errorf("%s with --json (-want +got):\n%s", tc.name, diff)
		}
		failed, _ := object["error"].(map[string]any)
		for _, field := range []string{"reason", "message", "attempts"} {
			if _, ok := failed[field]; !ok && tc.status != contract.ExitOK {
				t.Errorf("%s: the error has no %s: %v", tc.name, field, object)
			}
		}
	}
	for _, key := range []string{"status-0", "status-timeout", "status-1", "status-account", "status-ttl"} {
		s.track("send/" + key)
	}
	s.keep("send-rejected", "send/status-1")
}

// I1: exit status 4 when no Temporal answers, with what to do about it.
func TestTemporalUnreachable(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	l.Close()
	a := starterAt(t.Context(), address, "send", "--channel", "discord", "--to", "1", "--text", "x", "--json")
	object := oneObject(t, a)
	if a.status != contract.ExitUnreachable || object["workflow_id"] != nil || object["outcome"] != "unreachable" {
		t.Errorf("exit status %d, answer %v, want %d and no workflow", a.status, object, contract.ExitUnreachable)
	}
	if first, _, _ := strings.Cut(a.errors, "\n"); !strings.Contains(first, address) || !strings.Contains(first, "--address") {
		t.Errorf("the first line of the errors does not name the address and the flag: %q", first)
	}
}

// I1: Ctrl-C cancels the work, waits for its outcome, and exits with 130.
func TestInterrupt(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.work()
	s.world.OpenAI.Script(openai.RateLimited(50).On(openai.OpResponses).Always())
	ctx, interrupt := context.WithCancel(s.ctx)
	defer interrupt()
	s.track("run/interrupted")
	done := make(chan answer)
	go func() {
		done <- s.starterWith(ctx, "run", "--agent", "main", "--prompt", "Wait", "--key", "interrupted", "--json")
	}()
	s.until("run/interrupted", "run", func(described) bool { return true })
	awaitEvent(t, s.temporal, s.temporal.GetWorkflow(s.ctx, "run/interrupted", ""), "TimerStarted")
	interrupt()
	a := <-done
	if object := s.object(a); a.status != contract.ExitCancelled || object["outcome"] != "cancelled" || object["workflow_id"] != "run/interrupted" {
		t.Errorf("exit status %d, answer %v, want %d and cancelled", a.status, object, contract.ExitCancelled)
	}
}

// I1: an interrupt whose work does not end in time still says so, in one object,
// and exits with 130: a request that has started is not cut (C1).
func TestInterruptWithoutOutcome(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.work()
	s.world.Discord.Script(simulator.HoldAfter("answer").On(discord.OpCreateMessage))
	ctx, interrupt := context.WithCancel(s.ctx)
	defer interrupt()
	s.track("send/interrupted")
	done := make(chan answer)
	go func() {
		done <- s.starterWith(ctx, "send", "--channel", "discord", "--account", "main", "--to", channelID,
			"--text", "x", "--key", "interrupted", "--json")
	}()
	gate := s.world.Discord.Gate("answer")
	if _, err := gate.WaitHeld(s.ctx); err != nil {
		t.Fatal(err)
	}
	interrupt()
	a := <-done
	object := s.object(a)
	if a.status != contract.ExitCancelled || object["workflow_id"] != "send/interrupted" {
		t.Errorf("exit status %d, answer %v, want %d and the id of the work", a.status, object, contract.ExitCancelled)
	}
	// The request was under way, so the send is delivered all the same.
	gate.Release()
	var result contract.SendResult
	if err := s.temporal.GetWorkflow(s.ctx, "send/interrupted", "").Get(s.ctx, &result); err != nil {
		t.Fatal(err)
	}
	wantOutcome(t, result, contract.OutcomeDelivered, 1)
}

// I1: starter cancel asks work to stop, and watch follows it to its end: each
// state once, then the result, with the exit status of its outcome.
func TestCancelAndWatch(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.work()
	s.world.OpenAI.Script(openai.RateLimited(50).On(openai.OpResponses).Always())
	h := s.run("watched", contract.RunInput{})
	awaitEvent(t, s.temporal, s.temporal.GetWorkflow(s.ctx, h.ID(), ""), "TimerStarted")
	var out logBuffer
	done := make(chan int)
	go func() {
		done <- starter.Main(s.ctx, starter.Program{
			Args: []string{"--address", s.address, "watch", h.ID(), "--json"}, In: strings.NewReader(""), Out: &out, Err: &out,
			Env: func(string) (string, bool) { return "", false }, Version: "e2e",
		})
	}()
	s.poll("state of the watched run", func() bool { return strings.Contains(out.String(), "waiting") })
	if a := s.starter("cancel", h.ID(), "--json"); a.status != contract.ExitOK {
		t.Errorf("cancel: exit status %d; errors: %s", a.status, a.errors)
	} else {
		s.object(a)
	}
	if status := <-done; status != contract.ExitCancelled {
		t.Errorf("watch: exit status %d, want %d", status, contract.ExitCancelled)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if object := s.object(answer{out: lines[len(lines)-1]}); object["outcome"] != "cancelled" {
		t.Errorf("the last line of the watch is %v, want the result", object)
	}
}
