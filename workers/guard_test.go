package workers

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"

	"github.com/holdfast-dev/holdfast/contract"
	"github.com/holdfast-dev/holdfast/failure"
)

// guardedRun runs fn as an activity behind the guard, and returns the error the
// server would get and what the guard logged.
func guardedRun(t *testing.T, fn func(context.Context) error) (error, string) {
	t.Helper()
	var logs bytes.Buffer
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestActivityEnvironment()
	env.SetWorkerOptions(worker.Options{Interceptors: []interceptor.WorkerInterceptor{
		NewErrorGuard(slog.New(slog.NewTextHandler(&logs, nil))),
	}})
	env.RegisterActivityWithOptions(fn, activity.RegisterOptions{Name: "test.fails"})
	_, err := env.ExecuteActivity("test.fails")
	return err, logs.String()
}

// P4.14: what nobody judged leaves as an unclassified failure of unknown effect
// that is not retried, and its text, which could hold a secret, stays behind.
func TestGuardStopsWhatNobodyJudged(t *testing.T) {
	t.Parallel()
	judged := failure.New(contract.Failure{Reason: "rate_limit"}, failure.Options{Retry: true})
	for name, fn := range map[string]func(context.Context) error{
		"plain":   func(context.Context) error { return errors.New("token s3cr3t") },
		"wrapped": func(context.Context) error { return fmt.Errorf("token s3cr3t: %w", judged) },
		"panic":   func(context.Context) error { panic("out of range") },
	} {
		err, logs := guardedRun(t, fn)
		var app *temporal.ApplicationError
		if !errors.As(err, &app) || !app.NonRetryable() {
			t.Errorf("%s: %v, want a non-retryable application error", name, err)
			continue
		}
		f := failure.From(err)
		if f.Reason != "unclassified" || f.Effect != "unknown" || f.Rule != "P4.14/unexplained" || !f.Permanent {
			t.Errorf("%s: %+v", name, f)
		}
		if strings.Contains(err.Error(), "s3cr3t") || strings.Contains(logs, "s3cr3t") {
			t.Errorf("%s: the error's text leaves: %v, %s", name, err, logs)
		}
		if strings.Count(logs, "level=ERROR") != 1 || !strings.Contains(logs, "test.fails") {
			t.Errorf("%s: logged %q, want one error that names the activity", name, logs)
		}
	}
}

// A judged failure, a cancellation and success pass as they are.
func TestGuardLeavesTheRest(t *testing.T) {
	t.Parallel()
	err, logs := guardedRun(t, func(context.Context) error {
		return failure.New(contract.Failure{Reason: "rate_limit", Message: "slow down"}, failure.Options{Retry: true})
	})
	var app *temporal.ApplicationError
	if !errors.As(err, &app) || app.NonRetryable() || app.Type() != "rate_limit" || failure.From(err).Message != "slow down" || logs != "" {
		t.Errorf("a judged failure became %v, logged %q", err, logs)
	}
	err, logs = guardedRun(t, func(context.Context) error { return temporal.NewCanceledError() })
	if !temporal.IsCanceledError(err) || logs != "" {
		t.Errorf("a cancellation became %v, logged %q", err, logs)
	}
	if err, logs = guardedRun(t, func(context.Context) error { return nil }); err != nil || logs != "" {
		t.Errorf("success became %v, logged %q", err, logs)
	}
}
