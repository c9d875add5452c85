package starter

import (
	"context"
	"fmt"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflow/v1"
	"go.temporal.io/sdk/converter"

	"github.com/holdfast-dev/holdfast/contract"
)

// gitSteps are the activities of Git operations in words.
var gitSteps = map[string]string{
	contract.ActivityGitLsRemote:    "git ls-remote",
	contract.ActivityGitFetch:       "git fetch",
	contract.ActivityGitClone:       "git clone",
	contract.ActivityGitPushIntent:  "git push, reading the remote",
	contract.ActivityGitPush:        "git push",
	contract.ActivityGitLocate:      "git push, looking for it at the remote",
	contract.ActivityGitFastForward: "git fast-forward",
}

func isGit(a *workflow.PendingActivityInfo) bool {
	_, ok := gitSteps[a.GetActivityType().GetName()]
	return ok
}

// gitProgress is what the heartbeat of a Git activity carries (G10).
type gitProgress struct {
	Phase   string `json:"phase"`
	Objects int64  `json:"objects"`
	Done    int64  `json:"done"`
	Bytes   int64  `json:"bytes"`
}

// gitGlance is the activity that was seen last and its attempt: the operation's,
// which its workflow counts, and not the activity's, which is always its first.
type gitGlance struct {
	activity string
	counted  int
}

// attempt asks once for each activity.
func (g *gitGlance) attempt(ctx context.Context, a *workflow.PendingActivityInfo, query func(context.Context, string, any) error) int {
	if g.activity == a.GetActivityId() {
		return g.counted
	}
	var state contract.GitState
	if query(ctx, contract.QueryState, &state) != nil {
		return 0
	}
	g.activity, g.counted = a.GetActivityId(), state.Attempt
	return g.counted
}

// gitLine is one line about a Git activity: the step, the attempt, and how far
// its last heartbeat was.
func gitLine(a *workflow.PendingActivityInfo, attempt int) string {
	line := gitSteps[a.GetActivityType().GetName()]
	if attempt > 0 {
		line += fmt.Sprintf(", attempt %d", attempt)
	}
	if a.GetState() == enums.PENDING_ACTIVITY_STATE_SCHEDULED {
		return line + ": waits for a worker"
	}
	var p gitProgress
	details := a.GetHeartbeatDetails().GetPayloads()
	if len(details) == 0 || converter.GetDefaultDataConverter().FromPayload(details[0], &p) != nil || p.Phase == "" {
		return line
	}
	line += ": " + p.Phase
	switch {
	case p.Objects > 0:
		line += fmt.Sprintf(", %d of %d objects", p.Done, p.Objects)
	case p.Done > 0:
		line += fmt.Sprintf(", %d objects", p.Done)
	}
	if p.Bytes > 0 {
		line += ", " + size(p.Bytes)
	}
	return line
}

// size writes a number of bytes with the unit that suits it.
func size(n int64) string {
	const unit = 1024
	if n < unit {
		return fmt.Sprintf("%d B", n)
	}
	value, units := float64(n)/unit, "KMGT"
	for value >= unit && len(units) > 1 {
		value, units = value/unit, units[1:]
	}
	return fmt.Sprintf("%.1f %ciB", value, units[0])
}
