package client

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/mock"
	"go.temporal.io/sdk/mocks"
)

// A question that the server forgets to answer is asked anew, so that quick
// work is not seen late.
func TestGetAsksAnew(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		run := &mocks.WorkflowRun{}
		asked := 0
		run.On("Get", mock.Anything, mock.Anything).Return(func(ctx context.Context, into any) error {
			if asked++; asked == 1 {
				<-ctx.Done()
				return ctx.Err()
			}
			*into.(*string) = "done"
			return nil
		})
		began := time.Now()
		got, err := (&Handle[string]{run: run}).Get(t.Context())
		if err != nil || got != "done" || asked != 2 || time.Since(began) != looks[0] {
			t.Errorf("%q, %v after %d questions and %v; want done after two and %v", got, err, asked, time.Since(began), looks[0])
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		asked = 0
		if _, err := (&Handle[string]{run: run}).Get(ctx); err == nil || asked != 1 {
			t.Errorf("%v after %d questions; want the caller's own limit after one", err, asked)
		}
	})
}
