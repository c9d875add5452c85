package git

import (
	"context"
	"encoding/json"
	"os"
	"regexp"
	"sort"
	"strings"
	"sync/atomic"

	"github.com/holdfast-dev/holdfast/contract"
	"github.com/holdfast-dev/holdfast/policies"
)

// engine does the work of one attempt, in which no request is repeated. An
// error is a *localError for what is wrong on this side, a *wireError for what
// is wrong with the answer, a *programError of the git program, or whatever the
// library returned. A checkout is locked by the caller, and its lock is given to
// every process that an engine starts.
type engine interface {
	// lsRemote lists the refs of a remote, HEAD first and the others by name.
	lsRemote(ctx context.Context, r *remote) ([]contract.GitRef, error)
	// fetch moves refs of a checkout and says which, by name; all of them or,
	// with an error, none. An empty ref means what is configured for origin.
	fetch(ctx context.Context, r *remote, c *checkout, ref string) ([]contract.GitUpdate, error)
	// clone makes a repository with its files in dir, whose parent exists and
	// which does not. After an error the caller removes dir.
	clone(ctx context.Context, r *remote, dir string, s cloneSpec) (contract.GitHead, error)
	// push makes one push: at most one receive-pack request. Nil means that the
	// remote said that the ref has moved. Where it is proved that it has not,
	// the failure's effect is not_sent.
	push(ctx context.Context, r *remote, c *checkout, p contract.GitPushIntent) error
	// locate reads a ref of a remote, and brings the objects needed to say
	// whether it contains the commit ours. No ref of the checkout moves.
	locate(ctx context.Context, r *remote, c *checkout, ref, ours string) (contract.GitLocated, error)
	// descends reports whether base is tip or an ancestor of it. A base that is
	// not in the checkout is none.
	descends(ctx context.Context, c *checkout, tip, base string) (bool, error)
	// advance brings the files and the index of a checkout from one commit to
	// another. Files that differ from both are left as they are and end it with
	// a conflict before anything is changed; what else fails before that may be
	// an *untouchedError. It moves no ref, and does again what it did before
	// without harm.
	advance(ctx context.Context, c *checkout, p *progress, m advanceSpec) error
}

// cloneSpec is what a clone is to bring.
type cloneSpec struct {
	// ref is a branch or a tag; empty for the remote's HEAD.
	ref          string
	depth        int
	singleBranch bool
	noTags       bool
	sparse       []string
	// lock is the lock of the target, for the processes of the engine.
	lock *os.File
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

// advanceSpec says from which commit to which the files of a checkout are brought.
type advanceSpec struct {
	from, to string
	// again says that an earlier attempt began and did not end: files may be of
	// either commit, and one may be written in part.
	again bool
}

// Phases of a Git operation as its heartbeats show them.
const (
	phaseConnect int32 = iota
	phaseListing
	phaseReceiving
	phaseRefs
	phaseLock
	phaseResolving
	phaseFiles
	phaseSending
	phasePreparing // the remote makes the pack
)

var phaseNames = [...]string{"connect", "listing", "receiving", "refs", "waiting for the lock", "resolving", "files", "sending", "waiting for the remote's pack"}

// Progress is what a heartbeat of a Git activity carries (G10).
type Progress struct {
	Phase string `json:"phase"`
	// Objects is how many the pack holds; 0 until it is known.
	Objects int64 `json:"objects"`
	// Done is how many of them the phase has dealt with.
	Done int64 `json:"done"`
	// Bytes of the pack received or sent so far.
	Bytes int64 `json:"bytes"`
}

// progress is written by the work and read by the heartbeat.
type progress struct {
	phase   atomic.Int32
	objects atomic.Int64
	done    atomic.Int64
	bytes   atomic.Int64
}

func (p *progress) enter(phase int32) { p.phase.Store(phase) }

func (p *progress) snapshot() Progress {
	return Progress{Phase: phaseNames[p.phase.Load()], Objects: p.objects.Load(), Done: p.done.Load(), Bytes: p.bytes.Load()}
}
