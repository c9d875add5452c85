package failure

import (
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"

	"github.com/holdfast-dev/holdfast/contract"
	"github.com/holdfast-dev/holdfast/policies"
)

// LostWorkerTypes are the error types under which the server reports an attempt
// whose worker vanished. A retry policy that lists them as non-retryable keeps
// such an attempt from being run again blindly (C2.8).
func LostWorkerTypes() []string {
	return []string{"TemporalTimeout:StartToClose", "TemporalTimeout:Heartbeat"}
}

func fromTimeout(t *temporal.TimeoutError) contract.Failure {
	switch t.TimeoutType() {
	case enumspb.TIMEOUT_TYPE_SCHEDULE_TO_CLOSE, enumspb.TIMEOUT_TYPE_SCHEDULE_TO_START:
		return contract.Failure{
			Reason:  string(policies.ReasonDeadline),
			Rule:    "C1/deadline",
			Effect:  string(policies.EffectUnknown),
			Message: "the time allowed for this step passed",
		}
	}
	return contract.Failure{
		Reason:  string(policies.ReasonWorkerLost),
		Rule:    "C2.8/worker_lost",
		Effect:  string(policies.EffectUnknown),
		Message: "the worker vanished while the request may have been under way",
	}
}
