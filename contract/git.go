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
	// URL defaults to the checkout's origin.
	URL     string `json:"url,omitempty"`
	Ref     string `json:"ref,omitempty"`
	Auth    string `json:"auth,omitempty"`
	Timeout string `json:"timeout,omitempty"`
	// Admission is asked before every attempt; optional.
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
	// Operation is "fetch" or "ls-remote".
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
	// LimitMS is what is left of the operation's timeout, in milliseconds.
	LimitMS int64 `json:"limit_ms"`
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
// up_to_date, failed or cancelled.
type GitResult struct {
	Outcome Outcome     `json:"outcome"`
	Refs    []GitRef    `json:"refs,omitempty"`
	Updated []GitUpdate `json:"updated,omitempty"`
	// Truncated says that more refs moved than Updated holds.
	Truncated bool   `json:"truncated,omitempty"`
	Error     *Error `json:"error,omitempty"`
}

// GitState answers the "state" query of a Git operation.
type GitState struct {
	State   string `json:"state"`
	Attempt int    `json:"attempt"`
	Notice  string `json:"notice,omitempty"`
}
