package model

import (
	"context"
	"errors"
	"time"

	"go.temporal.io/sdk/worker"

	"github.com/holdfast-dev/holdfast/contract"
	"github.com/holdfast-dev/holdfast/failure"
	"github.com/holdfast-dev/holdfast/policies"
)

// failure judges what happened.
func (x *exchange) failure(ctx context.Context, err error) contract.Failure {
	fault := x.record.Fault(policies.SurfaceModel, err, time.Now())
	fault.Provider = x.call.Request.Candidate.Provider
	// The recorder counts bytes; a ping is one and no event (P4.11).
	if fault.Phase == policies.PhaseBody && fault.Status < 300 && x.dog.awaitsFirst() {
		fault.Phase = policies.PhaseFirstEvent
	}
	verdict, message := x.judge(ctx, &fault, err)
	f := failure.FromVerdict(&fault, verdict, message)
	f.Attempts = 1
	return f
}

func (x *exchange) judge(ctx context.Context, fault *policies.Fault, err error) (policies.Verdict, string) {
	var stall *StallError
	var stream *StreamError
	var provider *ProviderError
	var large tooLargeError
	stalled := errors.As(x.stall, &stall)
	switch {
	case stalled && fault.Status < 300:
		fault.Phase = stall.Phase
		fault.Code = policies.EngineCode(policies.ReasonTimeout)
		v := policies.Judge(fault)
		v.Rule = "M2.3/" + WatchdogLabel
		return v, stall.Error()
	case ctx.Err() != nil:
		return cancelled(ctx)
	case errors.As(err, &large):
		return policies.Verdict{
			Reason: policies.ReasonFormat, Permanent: true, Effect: policies.EffectNone, Rule: "M5/answer_too_large",
		}, large.Error()
	case errors.As(err, &stream):
		fault.Code = policies.EngineCode(stream.Reason)
		return policies.Judge(fault), stream.Error()
	case errors.As(err, &provider):
		fault.Type, fault.Code, fault.Syscall = provider.Type, provider.Code, ""
		fault.Message, fault.Body = provider.Message, provider.Body
		return policies.Judge(fault), explainReported(fault)
	}
	if fault.Status >= 300 {
		// Status, headers and body speak, also where the body broke off or never
		// ended (P4); the client's words for the status are not the provider's.
		fault.Code, fault.Syscall, fault.Message = "", "", ""
	}
	return policies.Judge(fault), explain(fault)
}

// ended is the failure of an attempt whose context ended before its request.
func ended(ctx context.Context, provider string) *contract.Failure {
	verdict, message := cancelled(ctx)
	f := failure.FromVerdict(&policies.Fault{Surface: policies.SurfaceModel, Provider: provider}, verdict, message)
	return &f
}

func cancelled(ctx context.Context) (policies.Verdict, string) {
	if errors.Is(context.Cause(ctx), worker.ErrWorkerShutdown) {
		return policies.Verdict{Reason: policies.ReasonWorkerLost, RetrySame: true, Effect: policies.EffectNone, Rule: "M3.17/worker_stopping"},
			"the worker stopped before the answer was complete"
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return policies.Verdict{Reason: policies.ReasonDeadline, Permanent: true, Effect: policies.EffectNone, Rule: "M3.1/deadline"},
			"the run's deadline passed"
	}
	return policies.Verdict{Reason: policies.ReasonCancelled, Permanent: true, Effect: policies.EffectNone, Rule: "M3.13/cancelled"}, "cancelled"
}
