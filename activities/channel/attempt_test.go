package channel

import (
	"bytes"
	"context"
	"log/slog"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/contract"
	"github.com/holdfast-dev/holdfast/internal/activitytest"
	"github.com/holdfast-dev/holdfast/policies"
)

// failOnce makes one attempt that is refused for floor, and returns what it
// logged.
func failOnce(t *testing.T, floor time.Duration, in contract.MessageInput) string {
	t.Helper()
	var logs bytes.Buffer
	attempt := func(ctx context.Context, in contract.MessageInput) (contract.MessageResult, error) {
		a := Begin(ctx, in, Attempt{
			Surface: policies.SurfaceDiscord, Operation: policies.OpCreate, Envelope: policies.EnvelopeDiscordSend,
		})
		return contract.MessageResult{}, a.Fail(ctx, &policies.Fault{Surface: policies.SurfaceDiscord, Status: 429}, policies.Verdict{
			Reason: policies.ReasonRateLimit, RetrySame: true, Effect: policies.EffectNotSent, Rule: "C3/test",
			Floor: policies.Floor{Wait: floor, Source: policies.FloorRetryAfter},
		}, "slow down")
	}
	var result contract.MessageResult
	if _, err := activitytest.Run(t, activitytest.Attempt{Log: slog.NewTextHandler(&logs, nil)}, attempt, in, &result); err == nil {
		t.Fatal("the attempt did not fail")
	}
	return logs.String()
}

// I5: one line per scheduled retry, where the server is to make it, and no
// error line beside it. A wait that the workflow holds is the workflow's to
// tell, and the last attempt schedules nothing.
func TestOneLinePerRetry(t *testing.T) {
	t.Parallel()
	logs := failOnce(t, 700*time.Millisecond, contract.MessageInput{})
	want := regexp.MustCompile(`level=WARN msg="\[RETRY\] discord attempt=2/3 reason=rate_limit floor=700ms next_in=7\d\dms".* rule=C3/test`)
	if !want.MatchString(logs) || strings.Count(logs, "[RETRY]") != 1 || strings.Contains(logs, "level=ERROR") {
		t.Errorf("logged:\n%s", logs)
	}
	for name, logs := range map[string]string{
		"a floor for the workflow": failOnce(t, 2*time.Minute, contract.MessageInput{}),
		"the last attempt":         failOnce(t, time.Second, contract.MessageInput{Used: policies.EnvelopeDiscordSend.Attempts - 1}),
	} {
		if strings.Contains(logs, "[RETRY]") || strings.Contains(logs, "level=ERROR") {
			t.Errorf("%s: logged:\n%s", name, logs)
		}
	}
}
