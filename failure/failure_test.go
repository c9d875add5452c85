package failure_test

import (
	"errors"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"

	"github.com/holdfast-dev/holdfast/contract"
	"github.com/holdfast-dev/holdfast/failure"
	"github.com/holdfast-dev/holdfast/policies"
)

// P3, P4: what a verdict says survives the journey through an error, the floor
// to the millisecond and never rounded down.
func TestVerdictTravels(t *testing.T) {
	t.Parallel()
	fault := &policies.Fault{Surface: policies.SurfaceModel, Status: 429, Phase: policies.PhaseHeaders}
	verdict := policies.Verdict{
		Reason: policies.ReasonRateLimit, RetrySame: true, Failover: true, Effect: policies.EffectNone,
		Floor: policies.Floor{Wait: 1500*time.Millisecond + time.Microsecond, Source: policies.FloorRetryAfter},
		Rule:  "P4.1/rate_limit",
	}
	got := failure.From(failure.New(failure.FromVerdict(fault, verdict, "slow down"), failure.Options{}))
	back := failure.ToVerdict(got)
	if back.Floor.Wait < verdict.Floor.Wait {
		t.Errorf("floor %v came back as %v, undercut", verdict.Floor.Wait, back.Floor.Wait)
	}
	back.Floor.Wait = verdict.Floor.Wait
	if diff := cmp.Diff(verdict, back); diff != "" {
		t.Errorf("verdict changed on its way (-sent +received):\n%s", diff)
	}
	if got.Status != 429 || got.Phase != "headers" || got.Message != "slow down" {
		t.Errorf("facts lost: %+v", got)
	}
}

// G8: the exit code of a git program survives the journey; an engine without one
// has none.
func TestExitCodeTravels(t *testing.T) {
	t.Parallel()
	code := 128
	for _, tc := range []struct {
		code *int
		want int
	}{{&code, 128}, {nil, 0}} {
		fault := &policies.Fault{Surface: policies.SurfaceGit, Operation: policies.OpFetch, Stderr: "fatal: early EOF", ExitCode: tc.code}
		got := failure.From(failure.New(failure.FromVerdict(fault, policies.JudgeGit(fault), "lost"), failure.Options{}))
		if got.ExitCode != tc.want || !got.RetrySame {
			t.Errorf("exit code %d, retried %v, want %d and a retry", got.ExitCode, got.RetrySame, tc.want)
		}
	}
}

func TestNewSetsWhatTheServerReads(t *testing.T) {
	t.Parallel()
	f := contract.Failure{Reason: "rate_limit", Effect: "not_sent"}

	var app *temporal.ApplicationError
	if err := failure.New(f, failure.Options{Retry: true, Delay: 0}); !errors.As(err, &app) {
		t.Fatalf("New returned %T, want *temporal.ApplicationError", err)
	}
	if app.NonRetryable() || app.NextRetryDelay() != time.Millisecond || app.Type() != "rate_limit" {
		t.Errorf("retry now: non-retryable %v, delay %v, type %q; want false, 1ms, rate_limit",
			app.NonRetryable(), app.NextRetryDelay(), app.Type())
	}
	if app.Category() != temporal.ApplicationErrorCategoryBenign {
		t.Error("I5: a failure that is reported by us must be benign to the SDK, which logs an error otherwise")
	}
	if err := failure.New(f, failure.Options{Delay: time.Minute}); !errors.As(err, &app) || !app.NonRetryable() {
		t.Error("a failure without Retry must be non-retryable")
	}
}

// C2.8: a worker that vanished is worker_lost and its effect is unknown.
func TestFromForeignErrors(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name   string
		err    error
		reason string
	}{
		{"heartbeat", temporal.NewHeartbeatTimeoutError(), "worker_lost"},
		{"start to close", temporal.NewTimeoutError(enumspb.TIMEOUT_TYPE_START_TO_CLOSE, nil), "worker_lost"},
		{"schedule to close", temporal.NewTimeoutError(enumspb.TIMEOUT_TYPE_SCHEDULE_TO_CLOSE, nil), "deadline"},
		{"cancelled", temporal.NewCanceledError(), "cancelled"},
		{"plain", errors.New("boom"), "unclassified"},
		{"foreign application error", temporal.NewApplicationError("x", "Other"), "unclassified"},
	} {
		if got := failure.From(tc.err); got.Reason != tc.reason || got.Effect != "unknown" {
			t.Errorf("%s: reason %q effect %q, want %q and unknown", tc.name, got.Reason, got.Effect, tc.reason)
		}
	}
	if got := failure.From(nil); got.Reason != "" {
		t.Errorf("From(nil) = %+v", got)
	}
}

func TestShortenKeepsRunesWhole(t *testing.T) {
	t.Parallel()
	s := failure.Shorten(strings.Repeat("é", failure.MaxMessage))
	if len(s) > failure.MaxMessage || !utf8.ValidString(s) {
		t.Errorf("%d bytes, valid UTF-8 %v", len(s), utf8.ValidString(s))
	}
}
