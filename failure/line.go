package failure

import (
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast/contract"
)

// RetryLine is the one log line about a scheduled retry (I5), written where it
// is scheduled:
//
//	[RETRY] discord attempt=2/3 reason=rate_limit floor=700ms next_in=731ms
//
// The attempt is the coming one. A floor is named only where one was asked for.
func RetryLine(what string, attempt, of int, f contract.Failure, delay time.Duration) string {
	floor := ""
	if f.FloorMS != nil {
		floor = fmt.Sprintf(" floor=%s", time.Duration(*f.FloorMS)*time.Millisecond)
	}
	return fmt.Sprintf("[RETRY] %s attempt=%d/%d reason=%s%s next_in=%s",
		what, attempt, of, f.Reason, floor, time.Duration(CeilMS(delay))*time.Millisecond)
}
