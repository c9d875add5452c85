package policies

import (
	"net/http"
	"testing"
)

// P4.13: every reason has its own row, and the rows hang together.
func TestDispositionOf(t *testing.T) {
	t.Parallel()
	tests := map[Reason]Disposition{
		ReasonRateLimit:         {RetryBudget, FailoverYes, false, BlameEndpointProfileModel, UntilProviderTiming},
		ReasonOverloaded:        {RetryBudget, FailoverYes, false, BlameEndpointModel, UntilProviderTiming},
		ReasonServerError:       {RetryBudget, FailoverBudgetSpent, false, BlameNothing, UntilNothing},
		ReasonTimeout:           {RetryBudget, FailoverBudgetSpent, false, BlameNothing, UntilNothing},
		ReasonStreamInterrupted: {RetryBudget, FailoverBudgetSpent, false, BlameNothing, UntilNothing},
		ReasonMalformedStream:   {RetryBudget, FailoverBudgetSpent, false, BlameNothing, UntilNothing},
		ReasonDegenerateOutput:  {RetryBudget, FailoverBudgetSpent, false, BlameNothing, UntilNothing},
		ReasonEmptyResponse:     {RetryTwice, FailoverYes, false, BlameNothing, UntilNothing},
		ReasonWorkerLost:        {RetryUncharged, FailoverNever, false, BlameNothing, UntilNothing},
		ReasonOutputLimit:       {RetryContinue, FailoverNever, false, BlameNothing, UntilNothing},
		ReasonQuotaExhausted:    {RetryNever, FailoverAtOnce, false, BlameAuthProfile, UntilReset},
		ReasonBilling:           {RetryNever, FailoverOtherPayer, true, BlameAuthProfile, UntilBilling},
		ReasonAuth:              {RetryAfterRefresh, FailoverAtOnce, false, BlameAuthProfile, UntilAuth},
		ReasonAuthPermanent:     {RetryNever, FailoverAtOnce, true, BlameAuthProfile, UntilBlock},
		ReasonPermission:        {RetryNever, FailoverAtOnce, true, BlameAuthProfileModel, UntilBlock},
		ReasonSessionExpired:    {RetryAfterRefresh, FailoverAtOnce, false, BlameAuthProfile, UntilRefresh},
		ReasonModelNotFound:     {RetryNever, FailoverAtOnce, true, BlameEndpointModel, UntilModelGone},
		ReasonRequestTooLarge:   {RetryNever, FailoverLargerWindow, true, BlameNothing, UntilNothing},
		ReasonContextOverflow:   {RetryNever, FailoverLargerWindow, true, BlameNothing, UntilNothing},
		ReasonRefusal:           {RetryNever, FailoverOptIn, true, BlameNothing, UntilNothing},
		ReasonFormat:            {RetryNever, FailoverNever, true, BlameNothing, UntilNothing},
		ReasonTLS:               {RetryNever, FailoverNever, true, BlameNothing, UntilNothing},
		ReasonUnclassified:      {RetryNever, FailoverReplaySafe, false, BlameNothing, UntilNothing},
		ReasonCancelled:         {RetryNever, FailoverNever, false, BlameNothing, UntilNothing},
		ReasonDeadline:          {RetryNever, FailoverNever, false, BlameNothing, UntilNothing},
		Reason("not a reason"):  {RetryNever, FailoverReplaySafe, false, BlameNothing, UntilNothing},
	}
	if len(tests) != len(modelReasons)+1 {
		t.Errorf("%d rows for %d reasons", len(tests)-1, len(modelReasons))
	}
	for reason, want := range tests {
		if got := DispositionOf(reason); got != want {
			t.Errorf("%s: %+v, want %+v", reason, got, want)
		}
	}
}

// P7: the guard beyond the vectors.
func TestSDKWaitGuard(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name      string
		status    int
		header    http.Header
		body, env string
		want      bool
	}{
		{"exactly the cap", 429, http.Header{"Retry-After": {"60"}}, "", "", false},
		{"just above in ms", 503, http.Header{"Retry-After-Ms": {"60001"}}, "", "", true},
		{"409", 409, http.Header{"Retry-After": {"61"}}, "", "", true},
		{"400 never", 400, http.Header{"Retry-After": {"6100"}}, "weekly rate limit", "", false},
		{"600 never", 600, http.Header{"Retry-After": {"6100"}}, "", "", false},
		{"malformed on 503", 503, http.Header{"Retry-After": {"soon"}}, "", "", false},
		{"malformed beside a good one", 429, http.Header{"Retry-After": {"7"}, "Retry-After-Ms": {"soon"}}, "", "", false},
		{"decimals beside nothing", 429, http.Header{"Retry-After-Ms": {"12.5"}}, "", "", true},
		{"unsafe on 503", 503, http.Header{"Retry-After": {"9007199254740993"}}, "", "", true},
		{"past date", 429, http.Header{"Retry-After": {"Sun, 20 Sep 2026 11:00:00 GMT"}}, "", "", false},
		{"nothing", 429, nil, "", "", false},
		{"long window in JSON", 429, nil, `{"error":{"message":"Weekly/Monthly Limit Exhausted"}}`, "", true},
		{"short unit", 429, nil, "daily greetings: rate limit of 5 requests per minute", "", false},
		{"long window on 503", 503, nil, "weekly rate limit", "", false},
		{"raised cap", 429, http.Header{"Retry-After": {"239"}}, "", " 300 ", false},
		{"off, in capitals", 429, http.Header{"Retry-After": {"soon"}}, "", "OFF", false},
		{"unsafe cap is ignored", 429, http.Header{"Retry-After": {"61"}}, "", "99999999999999999999", true},
		{"negative cap is ignored", 429, http.Header{"Retry-After": {"61"}}, "", "-1", true},
	}
	for _, tt := range tests {
		if got := SDKWaitGuard(tt.status, tt.header, tt.body, tt.env, testNow); got != tt.want {
			t.Errorf("%s: guard = %v, want %v", tt.name, got, tt.want)
		}
	}
}
