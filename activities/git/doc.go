// Package git touches Git remotes: one activity, one request flow (discovery,
// and for a fetch one pack), no retries inside.
//
// Two engines stand behind one interface: go-git v5, used below its porcelain,
// and the git program. Which refs move, what is asked for and how refs are written
// is decided here. go-git's own Fetch reports success for a pack that never came,
// ignores an unreadable object store and writes refs one by one; here a ref moves
// only after the object it names is stored, and either all refs of a fetch move
// or none.
//
// What go-git reads of what others wrote, it reads in a child process with a
// limit on its memory, which is this program again: a pack that unfolds without
// end, or a library that breaks over one, ends there. Packs are taken in by
// internal/pack and files are written by internal/files, which trust nobody (G12).
//
// Whoever works in a checkout holds its lock, and so do the programs that it
// starts; the lock ends with the last of them, not with the activity (G11). What
// is unfinished lies below holdfast/work in the checkout, or beside the target of
// a clone, and whoever has the lock next removes it. So a worker may be killed
// anywhere: a clone appears when it is whole (G2), a push is decided and recorded
// before it is made (G6), and a fast-forward leaves a note until the branch has
// followed the files (G7).
//
// A failed request becomes the facts of a [policies.Fault], and the activity
// returns the verdict on it as an error of package failure. Waiting and the one
// retry belong to the workflow (G1). Nothing that came from the other side, no
// address and no credential is in an error or a log line (G8, G9).
package git
