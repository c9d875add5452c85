// Package git touches Git remotes: one activity, one request flow (discovery,
// and for a fetch one pack), no retries inside.
//
// The engine is go-git v5, used below its porcelain: the sessions and the pack
// parser are go-git's; which refs move, what is asked for and how refs are
// written is decided here. go-git's own Fetch reports success for a pack that
// never came, ignores an unreadable object store and writes refs one by one;
// here a ref moves only after the object it names is stored, and either all
// refs of a fetch move or none.
//
// A failed request becomes the facts of a [policies.Fault], and the activity
// returns the verdict on it as an error of package failure. Waiting and the one
// retry belong to the workflow (G1). Nothing that came from the other side, no
// address and no credential is in an error or a log line (G8, G9).
package git
