package contract

// GitLsRemoteInput lists the refs of a remote.
type GitLsRemoteInput struct {
	URL  string `json:"url"`
	Ref  string `json:"ref,omitempty"`
	Auth string `json:"auth,omitempty"`
	// Timeout is the operation's own limit, retry included, as a duration;
	// defaults to "120s" (G1).
	Timeout string `json:"timeout,omitempty"`
	// Admission is asked before every attempt; optional.
	Admission *GitAdmission `json:"admission,omitempty"`
}

// GitFetchInput fetches into a checkout that exists.
type GitFetchInput struct {
	Dir string `json:"dir"`
	// Host is the worker host on whose disk the checkout is; empty for a
	// checkout in a shared root (G11).
	Host string `json:"host,omitempty"`
	// URL is another address of the checkout's origin: what is fetched from it is
	// filed as origin's. Defaults to its own.
	URL     string `json:"url,omitempty"`
	Ref     string `json:"ref,omitempty"`
	Auth    string `json:"auth,omitempty"`
	Timeout string `json:"timeout,omitempty"`
	// Admission is asked before every attempt; optional.
	Admission *GitAdmission `json:"admission,omitempty"`
}

// GitCloneInput makes a checkout. A directory that is there already must be
// empty. Submodules are never followed (G10).
type GitCloneInput struct {
	URL string `json:"url"`
	Dir string `json:"dir"`
	// Host is the worker host on whose disk the checkout is to be; empty for a
	// shared root (G11).
	Host string `json:"host,omitempty"`
	// Ref is the branch or tag to check out; defaults to the remote's HEAD.
	Ref string `json:"ref,omitempty"`
	// Depth is how many commits of each branch to bring; 0 is all of them. It
	// implies SingleBranch.
	Depth int `json:"depth,omitempty"`
	// SingleBranch brings only the branch or tag that is checked out, now and
	// with later fetches.
	SingleBranch bool `json:"single_branch,omitempty"`
	// NoTags brings no tags, now and with later fetches.
	NoTags bool `json:"no_tags,omitempty"`
	// Sparse are the directories to check out, beside the files at the top
	// (cone mode); defaults to everything.
	Sparse  []string `json:"sparse,omitempty"`
	Auth    string   `json:"auth,omitempty"`
	Timeout string   `json:"timeout,omitempty"`
	// Admission is asked before every attempt; optional.
	Admission *GitAdmission `json:"admission,omitempty"`
}

// GitPushInput pushes one ref of a checkout, once (G6).
type GitPushInput struct {
	Dir string `json:"dir"`
	// Host is as of GitFetchInput.
	Host string `json:"host,omitempty"`
	// URL is another address of the checkout's origin: what is fetched from it is
	// filed as origin's. Defaults to its own.
	URL string `json:"url,omitempty"`
	// Ref is a branch, a tag, a full ref name or SRC:DST; defaults to the branch
	// that is checked out. Nothing is ever deleted.
	Ref string `json:"ref,omitempty"`
	// Expect is the lease: the object id that the remote ref must have, all
	// zeros for a ref that must not exist. With it, and only with it, the push
	// may replace commits that are not its ancestors. Without it the lease is
	// what the remote has when the push begins.
	Expect  string `json:"expect,omitempty"`
	Auth    string `json:"auth,omitempty"`
	Timeout string `json:"timeout,omitempty"`
	// Admission is asked before the remote is read for the push, and once more
	// before the push itself; optional.
	Admission *GitAdmission `json:"admission,omitempty"`
}

// GitSyncInput fetches and then fast-forwards the checked-out branch and its
// files (G7).
type GitSyncInput struct {
	Dir string `json:"dir"`
	// Host is as of GitFetchInput.
	Host string `json:"host,omitempty"`
	// URL is another address of the checkout's origin: what is fetched from it is
	// filed as origin's. Defaults to its own.
	URL string `json:"url,omitempty"`
	// Ref is the remote branch to follow; defaults to the one that the
	// checked-out branch tracks.
	Ref     string `json:"ref,omitempty"`
	Auth    string `json:"auth,omitempty"`
	Timeout string `json:"timeout,omitempty"`
	// Admission is asked before every attempt of the fetch; optional.
	Admission *GitAdmission `json:"admission,omitempty"`
}

// GitAdmission names an activity of the gateway that says, before every attempt
// of a Git operation, whether the attempt may still be made (G5): authority over
// a workspace can be revoked, and a credential rotated, while a retry waits. It
// is given a GitAdmissionRequest, is run once, within what is left of the
// operation's timeout, and its result is not read. An error refuses the attempt:
// the operation ends as failed, with reason "permission" and rule "G5/refused".
type GitAdmission struct {
	Activity string `json:"activity"`
	// TaskQueue is that of the gateway's worker; defaults to the operation's own.
	TaskQueue string `json:"task_queue,omitempty"`
}

// GitAdmissionRequest is what an admission activity is asked.
type GitAdmissionRequest struct {
	// Operation is "ls-remote", "fetch", "clone" or "push"; a sync asks as
	// "fetch".
	Operation string `json:"operation"`
	// Attempt counts from 1.
	Attempt int `json:"attempt"`
}

// GitRequest is what one Git activity is asked for: the operation's input and
// what is left of its time.
type GitRequest struct {
	Dir  string `json:"dir,omitempty"`
	URL  string `json:"url,omitempty"`
	Ref  string `json:"ref,omitempty"`
	Auth string `json:"auth,omitempty"`
	// Of a clone.
	Depth        int      `json:"depth,omitempty"`
	SingleBranch bool     `json:"single_branch,omitempty"`
	NoTags       bool     `json:"no_tags,omitempty"`
	Sparse       []string `json:"sparse,omitempty"`
	// Expect is the lease of a push whose intent is asked for.
	Expect string `json:"expect,omitempty"`
	// Intent is the push to make, or to look for.
	Intent *GitPushIntent `json:"intent,omitempty"`
	// LimitMS is what is left of the operation's timeout, in milliseconds.
	LimitMS int64 `json:"limit_ms"`
}

// GitPushIntent is one push, decided before it is made: what the remote ref is
// expected to be and what it is to become (G6).
type GitPushIntent struct {
	// Ref is the full name of the remote's ref.
	Ref string `json:"ref"`
	// Old is the lease: what the remote must have; empty for a ref that must not
	// exist.
	Old string `json:"old"`
	New string `json:"new"`
	// Force lets the push replace commits that are not ancestors of New.
	Force bool `json:"force,omitempty"`
	// Rewinds says that New is an ancestor of Old. Whatever follows upon Old then
	// contains New, which proves no landing.
	Rewinds bool `json:"rewinds,omitempty"`
}

// GitPushPlan is what a push comes to before anything is pushed (G6).
type GitPushPlan struct {
	// Outcome is empty if Intent is to be pushed, up_to_date if the remote has it
	// already, or conflict if it may not be pushed.
	Outcome Outcome `json:"outcome,omitempty"`
	// Intent is the push, also where it is not to be made.
	Intent GitPushIntent `json:"intent"`
	// Found is what the remote had; empty for no such ref.
	Found string `json:"found"`
	// Error says why a conflict is one.
	Error *Error `json:"error,omitempty"`
}

// GitPushed is how a push ended.
type GitPushed struct {
	Ref string `json:"ref"`
	Old string `json:"old"`
	New string `json:"new"`
	// Found is what the remote had when it was last read; empty for no such ref,
	// or if it could not be read.
	Found string `json:"found"`
}

// Lease is what the Expect of a push says to expect Old: its object id, or zeros
// for a ref that must not exist.
func (p GitPushed) Lease() string {
	if p.Old == "" {
		return "0000000000000000000000000000000000000000"
	}
	return p.Old
}

// GitLocated is what the remote has in place of a push (G6).
type GitLocated struct {
	// Found is the object id of the remote ref; empty if there is none.
	Found string `json:"found"`
	// Contains says that Found is New or a descendant of it.
	Contains bool `json:"contains"`
}

// GitHead is what a checkout has checked out. Ref is empty for a tag or a
// commit that is on no branch.
type GitHead struct {
	Ref string `json:"ref"`
	OID string `json:"oid"`
}

// GitRef is one ref of a remote.
type GitRef struct {
	Name string `json:"name"`
	OID  string `json:"oid"`
}

// GitUpdate is one ref that a fetch moved. Old is empty for a new ref, New for
// a deleted one.
type GitUpdate struct {
	Ref string `json:"ref"`
	Old string `json:"old"`
	New string `json:"new"`
}

// GitResult is how a Git operation ended: its outcome is listed, fetched,
// up_to_date, cloned, synced, diverged, landed, not_landed, conflict,
// needs_review, failed or cancelled.
type GitResult struct {
	Outcome Outcome     `json:"outcome"`
	Refs    []GitRef    `json:"refs,omitempty"`
	Updated []GitUpdate `json:"updated,omitempty"`
	// Truncated says that more refs moved than Updated holds.
	Truncated bool `json:"truncated,omitempty"`
	// Head is what a clone or a sync left checked out.
	Head *GitHead `json:"head,omitempty"`
	// Push is what a push did.
	Push  *GitPushed `json:"push,omitempty"`
	Error *Error     `json:"error,omitempty"`
}

// GitState answers the "state" query of a Git operation.
type GitState struct {
	State   string `json:"state"`
	Attempt int    `json:"attempt"`
	Notice  string `json:"notice,omitempty"`
}
