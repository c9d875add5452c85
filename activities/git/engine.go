package git

import (
	"context"
	"encoding/json"
	"regexp"
	"sort"
	"strings"
	"sync/atomic"

	"github.com/holdfast-dev/holdfast/contract"
	"github.com/holdfast-dev/holdfast/policies"
)

// engine makes one request flow to a remote. An error is a *localError for what
// is wrong on this side, a *wireError for what is wrong with the answer, or
// whatever the library returned.
type engine interface {
	// lsRemote lists the refs of a remote, HEAD first and the others by name.
	lsRemote(ctx context.Context, r *remote) ([]contract.GitRef, error)
	// fetch moves refs of a checkout and says which; all of them or, with an
	// error, none. An empty ref means what is configured for origin.
	fetch(ctx context.Context, r *remote, c *checkout, ref string) ([]contract.GitUpdate, error)
}

// remote is where a request goes and with which credential.
type remote struct {
	policies.GitURL
	url      string
	creds    Credentials
	progress *progress
}

// MaxOutput is the most that the other side may answer an ls-remote with (G3).
const MaxOutput = 16 << 20

// maxAdvertisement bounds the list of refs that a fetch begins with.
const maxAdvertisement = 256 << 20

// maxListed bounds the encoded refs of a result: far below the 2 MiB that one
// payload may have.
const maxListed = 1 << 20

// selectRefs keeps the refs that match a pattern as "git ls-remote" does: the
// pattern must match the whole name or its last components; "*" and "?" match
// slashes too.
func selectRefs(refs []contract.GitRef, pattern string) ([]contract.GitRef, error) {
	if pattern != "" {
		match := tailPattern(pattern)
		kept := refs[:0:0]
		for _, r := range refs {
			if match.MatchString(r.Name) {
				kept = append(kept, r)
			}
		}
		refs = kept
	}
	encoded, err := json.Marshal(refs)
	if err != nil {
		return nil, err
	}
	if len(encoded) > maxListed {
		return nil, refuse(policies.ReasonOutputLimit, "G3/output_limit", "the remote has more refs than one result can hold; narrow them with --ref")
	}
	return refs, nil
}

func tailPattern(pattern string) *regexp.Regexp {
	quoted := regexp.QuoteMeta(pattern)
	quoted = strings.ReplaceAll(quoted, `\*`, `.*`)
	quoted = strings.ReplaceAll(quoted, `\?`, `.`)
	return regexp.MustCompile(`^(?:.*/)?` + quoted + `$`)
}

// sortRefs orders refs as git does: HEAD first, the others by name.
func sortRefs(refs []contract.GitRef) {
	sort.Slice(refs, func(i, j int) bool {
		if head := refs[i].Name == "HEAD"; head || refs[j].Name == "HEAD" {
			return head && refs[j].Name != "HEAD"
		}
		return refs[i].Name < refs[j].Name
	})
}

// Phases of a Git operation as its heartbeats show them.
const (
	phaseConnect int32 = iota
	phaseListing
	phaseReceiving
	phaseRefs
)

var phaseNames = [...]string{"connect", "listing", "receiving", "refs"}

// Progress is what a heartbeat of a Git activity carries (G10).
type Progress struct {
	Phase string `json:"phase"`
	// Objects is how many the pack holds; 0 until it is known.
	Objects int64 `json:"objects"`
	// Bytes of the pack received so far.
	Bytes int64 `json:"bytes"`
}

// progress is written by the work and read by the heartbeat.
type progress struct {
	phase   atomic.Int32
	objects atomic.Int64
	bytes   atomic.Int64
}

func (p *progress) enter(phase int32) { p.phase.Store(phase) }

func (p *progress) snapshot() Progress {
	return Progress{Phase: phaseNames[p.phase.Load()], Objects: p.objects.Load(), Bytes: p.bytes.Load()}
}
