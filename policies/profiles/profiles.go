package profiles

import (
	"embed"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/holdfast-dev/holdfast/policies"
)

//go:embed *.yaml
var files embed.FS

// folder is where the embedded files live, as errors and origins name it.
const folder = "policies/profiles/"

// builtIn lists the embedded profiles in the order in which they are shown.
var builtIn = []string{
	"default", "openclaw-classic", "fast-failover",
	"simple", "simple-aggressive", "simple-fast-fail", "simple-none",
	"claude-code",
}

// Profile is a policy and where it comes from.
type Profile struct {
	Policy  policies.Policy
	Extends string // empty for "default" itself
	// Origins says, for every key in force, which profile set it.
	Origins map[string]Origin
}

// Origin is the place that set a key.
type Origin struct {
	Profile string
	File    string
	Line    int // 0 where the profile was not read from a file
}

// String is "PROFILE (FILE:LINE)".
func (o Origin) String() string {
	if o.File == "" {
		return o.Profile
	}
	return fmt.Sprintf("%s (%s:%d)", o.Profile, o.File, o.Line)
}

// Names lists the built-in policy profiles.
func Names() []string { return slices.Clone(builtIn) }

// Load returns a built-in policy profile. The error names the nearest one.
func Load(name string) (policies.Policy, error) {
	p, err := LoadProfile(name)
	return p.Policy, err
}

// LoadProfile is Load with the origin of every key. The caller owns the result.
func LoadProfile(name string) (Profile, error) {
	if !slices.Contains(builtIn, name) {
		return Profile{}, fmt.Errorf("unknown policy profile %q%s; built in are %s", name, didYouMean(name, builtIn), strings.Join(builtIn, ", "))
	}
	all, err := embedded()
	if err != nil {
		return Profile{}, err
	}
	return all[name].clone(), nil
}

var embedded = sync.OnceValues(func() (map[string]Profile, error) {
	all := map[string]Profile{}
	for _, name := range builtIn {
		data, err := files.ReadFile(name + ".yaml")
		if err != nil {
			return nil, err
		}
		p, err := parseBuiltIn(name, data, all)
		if err != nil {
			return nil, err
		}
		all[name] = p
	}
	return all, nil
})

// clone copies what a caller could change.
func (p Profile) clone() Profile {
	p.Origins = maps.Clone(p.Origins)
	p.Policy = clonePolicy(p.Policy)
	return p
}

func clonePolicy(p policies.Policy) policies.Policy {
	if p.Simple != nil {
		s := *p.Simple
		s.Retryable = slices.Clone(s.Retryable)
		p.Simple = &s
	}
	p.Health.Transient = slices.Clone(p.Health.Transient)
	p.Health.Auth = slices.Clone(p.Health.Auth)
	p.ToolRetry.RetryableTools = slices.Clone(p.ToolRetry.RetryableTools)
	p.ToolRetry.NonRetryableTools = slices.Clone(p.ToolRetry.NonRetryableTools)
	return p
}

// ClaudeCodeMaxRetries is the environment variable that the "claude-code"
// profile honours. Its value is read by the caller and passed to
// [Profile.WithMaxRetries].
const ClaudeCodeMaxRetries = "CLAUDE_CODE_MAX_RETRIES"

// WithMaxRetries returns p with the retry count that value, as found in the
// environment, asks for; an empty value changes nothing. A rate-limit outage
// keeps its bound of 16 attempts (M3.4).
func (p Profile) WithMaxRetries(value string) (Profile, error) {
	if value == "" {
		return p, nil
	}
	n, err := strconv.Atoi(value)
	if err != nil || n < 0 || n > maxCount {
		return p, fmt.Errorf("%s=%q: want a whole number from 0 to %d", ClaudeCodeMaxRetries, value, maxCount)
	}
	p = p.clone()
	p.Policy.Transient.Attempts = n + 1
	p.Policy.RateLimit.Attempts = min(n+1, maxRateLimitAttempts)
	from := Origin{Profile: "$" + ClaudeCodeMaxRetries}
	p.Origins["transient.attempts"], p.Origins["rate_limit.attempts"] = from, from
	return p, nil
}
