package policies

import "slices"

// Retries is how often the tool may be run again after a failure (P8): not at
// all unless it is marked retryable, by its own configuration or by the policy
// profile. A tool on both lists is not retryable.
func (t ToolRetry) Retries(tool string, marked bool) int {
	if !t.Enabled || slices.Contains(t.NonRetryableTools, tool) {
		return 0
	}
	if !marked && !slices.Contains(t.RetryableTools, tool) {
		return 0
	}
	return max(t.MaxRetries, 0)
}
