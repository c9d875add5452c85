package explain

import (
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/policies"
)

// I2: the effect is none on the model surface and one of not_sent, sent and
// unknown on every other.
func TestEffectWords(t *testing.T) {
	t.Parallel()
	for _, surface := range []policies.Surface{
		policies.SurfaceModel, policies.SurfaceDiscord, policies.SurfaceTelegram, policies.SurfaceGit, policies.SurfaceDelivery,
	} {
		for _, op := range []policies.Operation{policies.OpRead, policies.OpFetch, policies.OpSend, policies.OpCreate, policies.OpEdit, ""} {
			for _, code := range []string{"ECONNRESET", "ECONNREFUSED", ""} {
				got := Explain(&policies.Fault{Surface: surface, Operation: op, Code: code, Status: 0}, policies.Judge).Effect
				if none := got == policies.EffectNone; none != (surface == policies.SurfaceModel) {
					t.Errorf("%s %q %s: effect %q", surface, op, code, got)
				}
			}
		}
	}
	if got := Explain(&policies.Fault{Surface: policies.SurfaceDiscord, Operation: policies.OpRead, Status: 503}, policies.Judge); got.Effect != policies.EffectNotSent || !got.RetrySame {
		t.Errorf("a read that failed: %+v, want not_sent and repeated", got)
	}
}

// G6, I2: what a failed Git operation did to the remote, and whether it would be
// made again: a push never, and it did nothing only where it was refused before
// it could be received; reads did nothing, and a sync is one.
func TestEffectOfGit(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		`"operation":"push","message":"Connection reset by peer"`:                            "unknown once",
		`"operation":"push","status":503`:                                                    "unknown once",
		`"operation":"push","stderr":"! [rejected] main -> main (stale info)","exit_code":1`: "unknown once",
		`"operation":"push","status":403`:                                                    "not_sent once",
		`"operation":"push","stderr":"Host key verification failed.","exit_code":128`:        "not_sent once",
		`"argv":["git","push"],"exit_code":0`:                                                "sent once",
		`"operation":"push","termination":"signal"`:                                          "unknown once",
		`"operation":"clone","stderr":"fatal: early EOF","exit_code":128`:                    "not_sent again",
		`"argv":["git","clone","u"],"stderr":"fatal: early EOF","exit_code":128`:             "not_sent once",
		`"operation":"sync","status":503`:                                                    "not_sent again",
		`"operation":"sync","status":404`:                                                    "not_sent once",
	} {
		f, err := parseFault([]byte(`{"surface":"git",`+line+`}`), time.Time{})
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		a := Explain(f, policies.Judge)
		got := string(a.Effect) + " once"
		if a.RetrySame {
			got = string(a.Effect) + " again"
		}
		if got != want {
			t.Errorf("%s: %s by %s, want %s", line, got, a.Rule, want)
		}
	}
}
