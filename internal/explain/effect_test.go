package explain

import (
	"testing"

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
