package policies_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/holdfast-dev/holdfast/policies"
)

func healthFailure(reason policies.Reason, now time.Time) policies.HealthFailure {
	return policies.HealthFailure{Reason: reason, Started: true, Now: now}
}

func healthTimed(f policies.HealthFailure, wait time.Duration) policies.HealthFailure {
	f.Floor = policies.Floor{Wait: wait, Source: policies.FloorRetryAfter}
	return f
}

// P6, P4.13: the ladders of both generations.
func TestHealthLadders(t *testing.T) {
	t.Parallel()
	minutes := func(n ...int) []time.Duration {
		out := make([]time.Duration, len(n))
		for i, m := range n {
			out[i] = time.Duration(m) * time.Minute
		}
		return out
	}
	half := []time.Duration{30 * time.Second, time.Minute, 5 * time.Minute, 5 * time.Minute}
	tests := []struct {
		profile string
		reason  policies.Reason
		want    []time.Duration
	}{
		{"default", policies.ReasonRateLimit, minutes(0, 0, 0)},
		{"default", policies.ReasonAuth, half},
		{"default", policies.ReasonBilling, minutes(10, 20, 40, 80, 160, 320, 640, 1280, 1440, 1440)},
		{"default", policies.ReasonAuthPermanent, minutes(10, 20, 40, 60, 60)},
		{"default", policies.ReasonPermission, minutes(10, 20, 40, 60, 60)},
		{"default", policies.ReasonQuotaExhausted, minutes(60, 60)},
		{"default", policies.ReasonModelNotFound, minutes(60, 60)},
		{"default", policies.ReasonFormat, minutes(0)},
		{"openclaw-classic", policies.ReasonRateLimit, minutes(1, 5, 25, 60, 60)},
		{"openclaw-classic", policies.ReasonBilling, minutes(300, 600, 1200, 1440, 1440)},
		{"openclaw-classic", policies.ReasonAuth, minutes(300, 600, 1200, 1440, 1440)},
	}
	for _, tt := range tests {
		p := recoveryPolicy(t, tt.profile).Health
		var got []time.Duration
		for n := range tt.want {
			got = append(got, p.Cooldown(tt.reason, n+1))
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s %s (-want +got):\n%s", tt.profile, tt.reason, diff)
		}
	}
}

// P4.13: what each reason is remembered against; P6: a rate limit in default
// only with provider timing.
func TestHealthBlames(t *testing.T) {
	t.Parallel()
	p, classic := recoveryPolicy(t, "default").Health, recoveryPolicy(t, "openclaw-classic").Health
	tests := []struct {
		f                policies.HealthFailure
		newest, previous policies.Blame
	}{
		{healthFailure(policies.ReasonRateLimit, recoveryEpoch), "", policies.BlameEndpointProfileModel},
		{healthTimed(healthFailure(policies.ReasonRateLimit, recoveryEpoch), time.Second), policies.BlameEndpointProfileModel, policies.BlameEndpointProfileModel},
		{healthTimed(healthFailure(policies.ReasonOverloaded, recoveryEpoch), time.Second), policies.BlameEndpointModel, policies.BlameEndpointModel},
		{healthFailure(policies.ReasonTimeout, recoveryEpoch), "", policies.BlameEndpointProfileModel},
		{policies.HealthFailure{Reason: policies.ReasonTimeout}, "", ""},
		{healthFailure(policies.ReasonBilling, recoveryEpoch), policies.BlameAuthProfile, policies.BlameAuthProfile},
		{policies.HealthFailure{Reason: policies.ReasonPermission, Model: "m"}, policies.BlameAuthProfileModel, policies.BlameAuthProfileModel},
		{policies.HealthFailure{Reason: policies.ReasonQuotaExhausted}, policies.BlameAuthProfile, policies.BlameAuthProfile},
		{policies.HealthFailure{Reason: policies.ReasonModelNotFound}, policies.BlameEndpointModel, policies.BlameEndpointModel},
		{policies.HealthFailure{Reason: policies.ReasonServerError}, "", ""},
		{policies.HealthFailure{Reason: policies.ReasonEmptyResponse}, "", ""},
	}
	for _, tt := range tests {
		if got := p.Blames(tt.f); got != tt.newest {
			t.Errorf("default, %s: %q, want %q", tt.f.Reason, got, tt.newest)
		}
		if got := classic.Blames(tt.f); got != tt.previous {
			t.Errorf("openclaw-classic, %s: %q, want %q", tt.f.Reason, got, tt.previous)
		}
	}
}

// P6: a running window is neither extended by repeats nor shortened by a weaker
// reason; a stronger one replaces it; the count still grows.
func TestHealthRunningWindow(t *testing.T) {
	t.Parallel()
	p := recoveryPolicy(t, "default").Health
	h := policies.Health{}.After(p, healthFailure(policies.ReasonBilling, recoveryEpoch))
	until := recoveryEpoch.Add(10 * time.Minute)
	later := recoveryEpoch.Add(time.Minute)
	for _, f := range []policies.HealthFailure{
		healthFailure(policies.ReasonBilling, later),
		healthFailure(policies.ReasonAuth, later),
		healthTimed(healthFailure(policies.ReasonRateLimit, later), time.Hour),
	} {
		if h = h.After(p, f); !h.Until.Equal(until) || h.Reason != policies.ReasonBilling {
			t.Errorf("%s moved the window to %s (%s)", f.Reason, h.Until, h.Reason)
		}
	}
	if h.Counts[policies.ReasonBilling] != 2 {
		t.Errorf("counted %d billing failures, want 2", h.Counts[policies.ReasonBilling])
	}

	h = policies.Health{}.After(p, healthTimed(healthFailure(policies.ReasonRateLimit, recoveryEpoch), 20*time.Second))
	h = h.After(p, healthFailure(policies.ReasonBilling, recoveryEpoch.Add(time.Second)))
	if h.Reason != policies.ReasonBilling || !h.Until.Equal(recoveryEpoch.Add(time.Second+10*time.Minute)) {
		t.Errorf("a stronger reason did not replace the window: %+v", h)
	}
	h = policies.Health{}.After(p, healthTimed(healthFailure(policies.ReasonRateLimit, recoveryEpoch), time.Hour))
	h = h.After(p, healthFailure(policies.ReasonBilling, recoveryEpoch))
	if !h.Until.Equal(recoveryEpoch.Add(time.Hour)) {
		t.Errorf("the longer window was shortened to %s", h.Until)
	}
}

// P4.13: provider timing is the whole answer for a throttle and a quota; a
// refused credential or an empty account keeps its ladder.
func TestHealthProviderTiming(t *testing.T) {
	t.Parallel()
	p := recoveryPolicy(t, "default").Health
	for _, tt := range []struct {
		reason policies.Reason
		wait   time.Duration
		want   time.Duration
		timed  bool
	}{
		{policies.ReasonRateLimit, 20 * time.Second, 20 * time.Second, true},
		{policies.ReasonQuotaExhausted, 5 * time.Minute, 5 * time.Minute, true},
		{policies.ReasonBilling, time.Second, 10 * time.Minute, false},
		{policies.ReasonAuth, time.Hour, time.Hour, false},
	} {
		h := policies.Health{}.After(p, healthTimed(healthFailure(tt.reason, recoveryEpoch), tt.wait))
		if got := h.Until.Sub(recoveryEpoch); got != tt.want || h.Timed != tt.timed {
			t.Errorf("%s: %s, timed %t", tt.reason, got, h.Timed)
		}
	}
}

// P6: After leaves the value it was called on alone.
func TestHealthIsAValue(t *testing.T) {
	t.Parallel()
	p := recoveryPolicy(t, "openclaw-classic").Health
	h := policies.Health{}.After(p, healthFailure(policies.ReasonTimeout, recoveryEpoch))
	h.After(p, healthFailure(policies.ReasonTimeout, recoveryEpoch))
	if h.Counts[policies.ReasonTimeout] != 1 {
		t.Errorf("the count of the original is %d", h.Counts[policies.ReasonTimeout])
	}
}

// P6: a model's window leaves other models ready; it is over at its end.
func TestHealthReady(t *testing.T) {
	t.Parallel()
	h := policies.Health{Until: recoveryEpoch.Add(time.Second), Model: "m"}
	for _, tt := range []struct {
		model string
		at    time.Duration
		want  bool
	}{{"m", 0, false}, {"other", 0, true}, {"m", time.Second, true}} {
		if got := h.Ready(tt.model, recoveryEpoch.Add(tt.at)); got != tt.want {
			t.Errorf("%s after %s: %t", tt.model, tt.at, got)
		}
	}
}

// P6: no probe where the other side named the time.
func TestHealthProbe(t *testing.T) {
	t.Parallel()
	p := recoveryPolicy(t, "default").Health
	timed := policies.Health{Until: recoveryEpoch.Add(time.Hour), Reason: policies.ReasonRateLimit, Timed: true}
	if timed.Probe(p, recoveryEpoch) {
		t.Error("probes a window with provider timing")
	}
	timed.Timed = false
	if !timed.Probe(p, recoveryEpoch) {
		t.Error("does not probe a window without provider timing")
	}
}

// P6: saturation lasts until one minute after the latest floor.
func TestSaturatedUntil(t *testing.T) {
	t.Parallel()
	first := policies.SaturatedUntil(time.Time{}, recoveryEpoch, policies.Floor{Wait: 30 * time.Second})
	if want := recoveryEpoch.Add(90 * time.Second); !first.Equal(want) {
		t.Errorf("until %s, want %s", first, want)
	}
	if got := policies.SaturatedUntil(first, recoveryEpoch.Add(time.Second), policies.Floor{}); !got.Equal(first) {
		t.Errorf("shortened to %s", got)
	}
}

// P6: pin, else usable before cooled, OAuth before API key, least recently used.
func TestSelectAuthProfiles(t *testing.T) {
	t.Parallel()
	ago := func(n int) time.Time { return recoveryEpoch.Add(-time.Duration(n) * time.Minute) }
	all := []policies.AuthProfileState{
		{Name: "key-new", LastUsed: ago(1), Account: "x"},
		{Name: "key-old", LastUsed: ago(9), Account: "y"},
		{Name: "cooled-late", OAuth: true, CooledUntil: recoveryEpoch.Add(2 * time.Hour)},
		{Name: "cooled-soon", CooledUntil: recoveryEpoch.Add(time.Hour), Account: "x"},
		{Name: "oauth", OAuth: true, LastUsed: ago(0)},
	}
	plan := append([]policies.AuthProfileState{{Name: "plan", OAuth: true, Subscription: true, Account: "x", LastUsed: ago(5)}}, all...)
	tests := []struct {
		name     string
		profiles []policies.AuthProfileState
		rules    policies.AuthProfileRules
		want     []string
	}{
		{"order", all, policies.AuthProfileRules{}, []string{"oauth", "key-old", "key-new", "cooled-soon", "cooled-late"}},
		{"pinned", all, policies.AuthProfileRules{Pin: "cooled-late"}, []string{"cooled-late"}},
		{"a subscription keeps to its account", plan, policies.AuthProfileRules{}, []string{"plan", "oauth", "key-new", "cooled-soon", "cooled-late"}},
		{"unless allowed", plan, policies.AuthProfileRules{AllowOtherAccount: true}, []string{"plan", "oauth", "key-old", "key-new", "cooled-soon", "cooled-late"}},
	}
	for _, tt := range tests {
		var got []string
		for _, p := range policies.SelectAuthProfiles(tt.profiles, tt.rules, recoveryEpoch) {
			got = append(got, p.Name)
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

// P8: off unless marked, and the list of those that may not wins.
func TestToolRetry(t *testing.T) {
	t.Parallel()
	p := policies.ToolRetry{Enabled: true, MaxRetries: 2, RetryableTools: []string{"search", "both"}, NonRetryableTools: []string{"both", "pay"}}
	off := p
	off.Enabled = false
	for _, tt := range []struct {
		name   string
		policy policies.ToolRetry
		tool   string
		marked bool
		want   int
	}{
		{"listed", p, "search", false, 2}, {"marked by its own configuration", p, "fetch", true, 2},
		{"neither", p, "fetch", false, 0}, {"on both lists", p, "both", true, 0},
		{"marked but forbidden", p, "pay", true, 0}, {"switched off", off, "search", true, 0},
	} {
		if got := tt.policy.Retries(tt.tool, tt.marked); got != tt.want {
			t.Errorf("%s: %d retries, want %d", tt.name, got, tt.want)
		}
	}
	if got := recoveryPolicy(t, "default").ToolRetry.Retries("any", true); got != 2 {
		t.Errorf("default: %d retries, want 2", got)
	}
}

// M3.16: the first limit reached is named before the next request.
func TestRunLimits(t *testing.T) {
	t.Parallel()
	l := policies.RunLimits{Tokens: 100, Cost: 1.5, Attempts: 3, Concurrency: 2}
	for want, u := range map[string]policies.RunUse{
		"": {Tokens: 99, Cost: 1.49, Attempts: 2, Concurrency: 1}, "tokens": {Tokens: 100}, "cost": {Cost: 1.5},
		"attempts": {Attempts: 3}, "concurrency": {Concurrency: 2},
	} {
		if got := l.Reached(u); got != want {
			t.Errorf("%+v: %q, want %q", u, got, want)
		}
	}
	if got := (policies.RunLimits{}).Reached(policies.RunUse{Tokens: 1 << 40, Attempts: 999}); got != "" {
		t.Errorf("no limits, yet %q", got)
	}
}
