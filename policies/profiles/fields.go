package profiles

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/policies"
)

// Bounds of numbers that have no natural one.
const (
	maxRateLimitAttempts = 16 // M3.4
	maxCount             = 1000
	maxFactor            = 100
)

// field is one key of a profile: where its value lives and what it may be.
type field struct {
	key      string
	at       func(*policies.Policy) any // a pointer into the policy
	min, max float64                    // of numbers
	words    []string                   // of words
}

var fields = slices.Concat(
	budgetFields("rate_limit", maxRateLimitAttempts, func(p *policies.Policy) *policies.Budget { return &p.RateLimit }),
	budgetFields("transient", maxCount, func(p *policies.Policy) *policies.Budget { return &p.Transient }),
	[]field{
		{key: "transient.window", at: func(p *policies.Policy) any { return &p.Transient.Window }},
		{key: "success_resets", at: func(p *policies.Policy) any { return &p.SuccessResets }, words: []string{"all", "window"}},
		{key: "max_retry_delay", at: func(p *policies.Policy) any { return &p.MaxRetryDelay }},
		{key: "floor_above_cap", at: func(p *policies.Policy) any { return &p.FloorAboveCap }, words: []string{"rotate", "wait"}},
		{key: "switch_after", at: func(p *policies.Policy) any { return &p.SwitchAfter }, max: maxCount},
		{key: "switch_wait", at: func(p *policies.Policy) any { return &p.SwitchWait }},
		{key: "guard_attempts", at: func(p *policies.Policy) any { return &p.GuardAttempts }, min: 1, max: maxCount},
		{key: "non_streaming_after", at: func(p *policies.Policy) any { return &p.NonStreamingAfter }, max: maxCount},
		{key: "move_after_overloads", at: func(p *policies.Policy) any { return &p.MoveAfterOverloads }, max: maxCount},
		{key: "rotations", at: func(p *policies.Policy) any { return &p.Rotations }, max: maxCount},
		{key: "spent_timeout", at: func(p *policies.Policy) any { return &p.SpentTimeout }, words: []string{"failover", "surface"}},
		{key: "refusal_failover", at: func(p *policies.Policy) any { return &p.RefusalFailover }},

		{key: "simple.retries", at: func(p *policies.Policy) any { return &simple(p).Retries }, max: maxCount},
		{key: "simple.initial", at: func(p *policies.Policy) any { return &simple(p).Initial }},
		{key: "simple.multiplier", at: func(p *policies.Policy) any { return &simple(p).Multiplier }, min: 1, max: maxFactor},
		{key: "simple.max", at: func(p *policies.Policy) any { return &simple(p).Max }},
		{key: "simple.retryable", at: func(p *policies.Policy) any { return &simple(p).Retryable }, words: retryableReasons},
		{key: "simple.respect_retry_after", at: func(p *policies.Policy) any { return &simple(p).RespectRetryAfter }},
		{key: "simple.retry_after_cap", at: func(p *policies.Policy) any { return &simple(p).RetryAfterCap }},
		{key: "simple.failover_permanent", at: func(p *policies.Policy) any { return &simple(p).FailoverPermanent }},

		{key: "health.transient", at: func(p *policies.Policy) any { return &p.Health.Transient }},
		{key: "health.auth", at: func(p *policies.Policy) any { return &p.Health.Auth }},
		{key: "health.quota", at: func(p *policies.Policy) any { return &p.Health.Quota }},
		{key: "health.model_gone", at: func(p *policies.Policy) any { return &p.Health.ModelGone }},
		{key: "health.billing_min", at: func(p *policies.Policy) any { return &p.Health.BillingMin }},
		{key: "health.billing_max", at: func(p *policies.Policy) any { return &p.Health.BillingMax }},
		{key: "health.block_min", at: func(p *policies.Policy) any { return &p.Health.BlockMin }},
		{key: "health.block_max", at: func(p *policies.Policy) any { return &p.Health.BlockMax }},
		{key: "health.probe_every", at: func(p *policies.Policy) any { return &p.Health.ProbeEvery }},

		{key: "tool_retry.enabled", at: func(p *policies.Policy) any { return &p.ToolRetry.Enabled }},
		{key: "tool_retry.max_retries", at: func(p *policies.Policy) any { return &p.ToolRetry.MaxRetries }, max: maxCount},
		{key: "tool_retry.retryable_tools", at: func(p *policies.Policy) any { return &p.ToolRetry.RetryableTools }},
		{key: "tool_retry.non_retryable_tools", at: func(p *policies.Policy) any { return &p.ToolRetry.NonRetryableTools }},
	},
)

func budgetFields(group string, attempts float64, at func(*policies.Policy) *policies.Budget) []field {
	return []field{
		{key: group + ".attempts", at: func(p *policies.Policy) any { return &at(p).Attempts }, min: 1, max: attempts},
		{key: group + ".min", at: func(p *policies.Policy) any { return &at(p).Min }},
		{key: group + ".max", at: func(p *policies.Policy) any { return &at(p).Max }},
		{key: group + ".jitter_low", at: func(p *policies.Policy) any { return &at(p).JitterLow }, max: maxFactor},
		{key: group + ".jitter_high", at: func(p *policies.Policy) any { return &at(p).JitterHigh }, max: maxFactor},
	}
}

func simple(p *policies.Policy) *policies.Simple {
	if p.Simple == nil {
		p.Simple = &policies.Simple{}
	}
	return p.Simple
}

// retryableReasons are the reasons a simple profile may list: those of the
// model surface that the same candidate can recover from.
var retryableReasons = words(
	policies.ReasonRateLimit, policies.ReasonOverloaded, policies.ReasonServerError, policies.ReasonTimeout,
	policies.ReasonStreamInterrupted, policies.ReasonMalformedStream, policies.ReasonDegenerateOutput,
	policies.ReasonEmptyResponse,
)

func words(reasons ...policies.Reason) []string {
	out := make([]string, len(reasons))
	for i, r := range reasons {
		out[i] = string(r)
	}
	return out
}

// ordered are pairs of keys of which the first must not exceed the second.
var ordered = [][2]string{
	{"rate_limit.min", "rate_limit.max"}, {"rate_limit.jitter_low", "rate_limit.jitter_high"},
	{"transient.min", "transient.max"}, {"transient.jitter_low", "transient.jitter_high"},
	{"simple.initial", "simple.max"},
	{"health.billing_min", "health.billing_max"}, {"health.block_min", "health.block_max"},
}

func fieldOf(key string) (field, bool) {
	i := slices.IndexFunc(fields, func(f field) bool { return f.key == key })
	if i < 0 {
		return field{}, false
	}
	return fields[i], true
}

// keysIn lists the keys and groups directly under prefix ("" or "group.").
func keysIn(prefix string) []string {
	var keys []string
	for _, f := range fields {
		rest, ok := strings.CutPrefix(f.key, prefix)
		if !ok {
			continue
		}
		name, _, _ := strings.Cut(rest, ".")
		if !slices.Contains(keys, name) {
			keys = append(keys, name)
		}
	}
	return keys
}

// number is the value of a field that can be compared.
func (f field) number(p *policies.Policy) float64 {
	switch v := f.at(p).(type) {
	case *int:
		return float64(*v)
	case *float64:
		return *v
	case *time.Duration:
		return float64(*v)
	}
	return 0
}

// Setting is one key of a policy as "explain policy" shows it.
type Setting struct {
	Key    string
	Value  string
	Origin Origin
}

// Settings lists the keys in force in the order of the files. Those of "simple"
// are absent where the policy has none.
func (p Profile) Settings() []Setting {
	var out []Setting
	for _, f := range fields {
		if strings.HasPrefix(f.key, "simple.") && p.Policy.Simple == nil {
			continue
		}
		out = append(out, Setting{Key: f.key, Value: show(f.at(&p.Policy)), Origin: p.Origins[f.key]})
	}
	return out
}

func show(v any) string {
	switch v := v.(type) {
	case *int:
		return strconv.Itoa(*v)
	case *float64:
		return strconv.FormatFloat(*v, 'g', -1, 64)
	case *bool:
		return strconv.FormatBool(*v)
	case *string:
		return *v
	case *time.Duration:
		return duration(*v)
	case *[]time.Duration:
		return list(*v, duration)
	case *[]string:
		return list(*v, func(s string) string { return s })
	case *[]policies.Reason:
		return list(*v, func(r policies.Reason) string { return string(r) })
	}
	return fmt.Sprint(v)
}

func list[T any](items []T, show func(T) string) string {
	parts := make([]string, len(items))
	for i, item := range items {
		parts[i] = show(item)
	}
	return "[" + strings.Join(parts, ", ") + "]"
}

// duration drops the zero units that time.Duration prints ("1h0m0s").
func duration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
