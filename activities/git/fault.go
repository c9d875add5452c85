package git

import (
	"errors"
	"io"
	"io/fs"
	"syscall"
	"time"

	gogit "github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/transport"

	"github.com/holdfast-dev/holdfast/activities/git/internal/pack"
	"github.com/holdfast-dev/holdfast/contract"
	"github.com/holdfast-dev/holdfast/failure"
	"github.com/holdfast-dev/holdfast/internal/attempt"
	"github.com/holdfast-dev/holdfast/policies"
)

// localError is what this side knows without asking anyone: a request that is
// refused, a checkout that cannot be used, a disk that is full.
type localError struct {
	reason  policies.Reason
	rule    string
	retry   bool
	message string
}

func (e *localError) Error() string { return e.message }

// Is knows an error that has come from another process.
func (e *localError) Is(target error) bool {
	other, ok := target.(*localError)
	return ok && *e == *other
}

func refuse(reason policies.Reason, rule, message string) error {
	return &localError{reason: reason, rule: rule, message: message}
}

// Failures that are found in several places.
var (
	errRefNotFound  = refuse(policies.ReasonNotFound, "G3/ref_not_found", "the remote has no such ref; list its refs with \"git ls-remote\"")
	errOutputLimit  = refuse(policies.ReasonOutputLimit, "G3/output_limit", "the remote's list of refs is larger than is read; ask the host to hide refs that nobody needs")
	errHostKey      = refuse(policies.ReasonTLS, "G3/host_key", "the SSH host key is unknown or has changed; check it and put it into the known_hosts file of the auth profile")
	errRedirect     = refuse(policies.ReasonMisdirected, "G9/redirect", "the remote redirects to another address; use the address that its host shows for this repository")
	errNotGit       = refuse(policies.ReasonNotFound, "G3/not_git", "what answered is no Git repository over smart HTTP; correct the URL")
	errBadPack      = refuse(policies.ReasonFormat, "G3/bad_object", "the remote sent a pack that is damaged; ask its host to check the repository with \"git fsck\"")
	errTagDiffers   = refuse(policies.ReasonConflict, "G3/tag", "a tag of the same name is here and differs; delete it or use +SRC:DST to replace it")
	errDiverged     = refuse(policies.ReasonConflict, "G7/diverged", "the remote branch has diverged from the ref here; use +SRC:DST to replace it")
	errCheckedOut   = refuse(policies.ReasonConflict, "G3/checked_out", "the fetch would move the branch that is checked out; fetch into a remote-tracking ref instead")
	errRefNames     = refuse(policies.ReasonConflict, "G3/ref_names", "a ref of the remote and a ref here cannot both exist, for one's name is the other's directory; run \"git remote prune origin\" in the checkout")
	errRefspec      = refuse(policies.ReasonFormat, "G3/refspec", "--ref is no refspec that can be fetched; use a branch, a tag, a full ref name or SRC:DST")
	errChanged      = refuse(policies.ReasonConflict, "G11/changed", "another process moved a ref of the checkout meanwhile; try again")
	errLocalChanges = refuse(policies.ReasonConflict, "G7/local_changes", "files of the checkout were changed and would be overwritten; commit them, or put them away, and run again")
	errHalfMoved    = refuse(policies.ReasonConflict, "G7/interrupted", "a fast-forward of the checkout was interrupted, and files have been changed since, so it cannot be finished; put your changes away, bring the files back with \"git reset --hard\", and run again")
	errIndexLocked  = refuse(policies.ReasonLock, "G11/index_lock", "the index of the checkout is locked by another git; if none is running, remove index.lock from its .git directory")
	errLeaseLost    = refuse(policies.ReasonConflict, "G6/lease", "the remote's ref is not what the push expected, so nothing was replaced; fetch, and decide anew")
	errPushRefused  = refuse(policies.ReasonPermission, "G6/refused", "the remote refused the push by a rule of its own, such as a hook or a protected branch; see the rules of its host")
	errObjectLimit  = refuse(policies.ReasonOutputLimit, "G12/objects", "the pack holds more objects than git.limits.objects allows; raise that limit, or bring less of the history with --depth")
	errMemoryLimit  = refuse(policies.ReasonOutputLimit, "G12/memory", "the repository needs more memory than git.limits.memory allows; raise that limit, or bring less with --single-branch or --depth")
	errDiskLimit    = refuse(policies.ReasonNoSpace, "G12/disk", "the repository needs more disk than git.limits.disk allows; raise that limit, or bring less of the history with --depth")
	errProtocol     = refuse(policies.ReasonFormat, "G3/protocol", "the remote did not answer as a Git server does; check the URL, and the repository at its host")
	errRefName      = refuse(policies.ReasonFormat, "G12/ref_name", "the remote has a ref whose name git does not allow; have its owner delete it, or fetch one branch with --ref")
	errHostilePath  = refuse(policies.ReasonFormat, "G12/path", "the repository holds a path that could write outside its checkout or into its .git directory; have its owner remove that path")
	errRefLocked    = &localError{reason: policies.ReasonLock, rule: "G3/lock_exists", retry: true,
		message: "a ref of the checkout is locked by another process; if none is running, remove the .lock file in its .git directory"}
)

// wireError is an answer that was cut short without an error that says so.
type wireError struct{ what string }

func (e *wireError) Error() string { return e.what }

// programError is how the git program failed. Its text is judged and never
// shown.
type programError struct {
	stderr   string // its beginning and its end
	exitCode int
	// termination is "signal" where somebody else ended it, else empty.
	termination string
	// unsent says that it is known that the other side was asked nothing.
	unsent bool
	// cause is the error that is known to stand behind it; nil where its text is
	// all that there is.
	cause error
}

func (e *programError) Error() string { return "the git program failed" }

func (e *programError) Unwrap() error { return e.cause }

// unsentError is a push that failed before the remote was asked to move the ref,
// or that the remote said it has not moved (G6).
type unsentError struct{ cause error }

func (e *unsentError) Error() string { return e.cause.Error() }

func (e *unsentError) Unwrap() error { return e.cause }

// untouchedError is an advance that failed before any file was changed.
type untouchedError struct{ cause error }

func (e *untouchedError) Error() string { return e.cause.Error() }

func (e *untouchedError) Unwrap() error { return e.cause }

// Answers that were cut short (G4).
var (
	errEmptyReply     = &wireError{"empty reply"}
	errEarlyEOF       = &wireError{"early EOF"}
	errMissingObjects = &wireError{"not all objects sent"}
)

// codeCut is the code of a connection that ended too early, as attempt.Code has
// it for io.ErrUnexpectedEOF.
var codeCut, _ = attempt.Code(io.ErrUnexpectedEOF)

// packError says what was wrong with a pack that could not be taken in. One that
// is not complete is no news from a remote that is shallow itself.
func packError(err error, shallow bool) error {
	var limit *pack.LimitError
	switch {
	case errors.As(err, &limit):
		return map[string]error{pack.LimitMemory: errMemoryLimit, pack.LimitDisk: errDiskLimit, pack.LimitObjects: errObjectLimit}[limit.Limit]
	case err == io.EOF, err == io.ErrUnexpectedEOF:
		return errEarlyEOF
	case errors.Is(err, pack.ErrIncomplete) && shallow:
		return errShallowRemote
	case errors.Is(err, pack.ErrIncomplete):
		return errMissingObjects
	case errors.Is(err, pack.ErrDamaged):
		return errBadPack
	}
	return err
}

// unwrap gets to the errors that go-git's wrappers hide, for they have no
// Unwrap.
func unwrap(err error) error {
	for {
		var unexpected *plumbing.UnexpectedError
		var permanent *plumbing.PermanentError
		switch {
		case errors.As(err, &unexpected) && unexpected.Err != nil:
			err = unexpected.Err
		case errors.As(err, &permanent) && permanent.Err != nil:
			err = permanent.Err
		default:
			return err
		}
	}
}

// localFault is what an error of the file system means, nil for any other.
func localFault(err error) *localError {
	var pathError *fs.PathError
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return &localError{reason: policies.ReasonNoSpace, rule: "G3/no_space", message: noSpaceMessage}
	case !errors.As(err, &pathError):
		return nil
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return &localError{reason: policies.ReasonPermission, rule: "G3/permission", message: "the worker may not read or write the checkout; correct the owner or the mode of its files"}
	}
	return nil
}

// fail turns the error of an attempt into the failure that the activity
// returns. Its message is ours: nothing of the other side's text, no address
// and no credential is in it (G9).
func (a *Activities) fail(op policies.Operation, rec *attempt.Record, err error) error {
	f := a.failed(op, rec, unwrap(err))
	var program *programError
	if errors.As(err, &program) {
		f.ExitCode = program.exitCode
	}
	var unsent *unsentError
	if errors.As(err, &unsent) {
		f.Effect = string(policies.EffectNotSent)
	}
	return report(f)
}

func (a *Activities) failed(op policies.Operation, rec *attempt.Record, err error) contract.Failure {
	var local *localError
	if !errors.As(err, &local) {
		local = localFault(err)
	}
	if local != nil {
		f := local.failure()
		if op == policies.OpPush {
			f.Effect = string(policies.EffectUnknown) // unless it was proved, see unsentError
		}
		return f
	}
	fault := faultOf(rec, err)
	fault.Operation = op
	verdict := a.judge(&fault)
	return failure.FromVerdict(&fault, verdict, message(&fault, verdict))
}

// report is a failure on its way to the workflow, which owns the retry and
// writes the one line about it (G8).
func report(f contract.Failure) error {
	f.Attempts = 1
	return failure.New(f, failure.Options{})
}

func (e *localError) failure() contract.Failure {
	return contract.Failure{
		Surface: string(policies.SurfaceGit), Reason: string(e.reason), Rule: e.rule, RetrySame: e.retry,
		Permanent: !e.retry, Effect: string(policies.EffectNone), Message: e.message,
	}
}

// faultOf gathers the facts of a request that failed. What go-git says by a
// sentinel, because it read it in an SSH or local session, is given the HTTP
// status that says the same. The text of an error counts only where there is
// neither a status nor a code: host names and error pages hold any word.
func faultOf(rec *attempt.Record, err error) policies.Fault {
	var told *faultError
	if errors.As(err, &told) {
		return told.fault
	}
	var program *programError
	if errors.As(err, &program) {
		if program.cause == nil {
			return programFault(program)
		}
		err = unwrap(program.cause)
	}
	f := rec.Fault(policies.SurfaceGit, err, time.Now())
	var cut *wireError
	switch {
	case errors.As(err, &cut):
		f.Status, f.Code, f.Syscall, f.Phase = 0, codeCut, "", policies.PhaseBody
	case f.Status >= 400:
	case errors.Is(err, transport.ErrAuthenticationRequired):
		f.Status = 401
	case errors.Is(err, transport.ErrAuthorizationFailed):
		f.Status = 403
	case errors.Is(err, transport.ErrRepositoryNotFound), errors.Is(err, gogit.ErrRepositoryNotExists):
		f.Status = 404
	default:
		f.Status = 0
	}
	f.Body = nil
	if f.Status != 0 || f.Code != "" {
		f.Message = ""
	}
	return f
}

// programFault is all that the git program told.
func programFault(err *programError) policies.Fault {
	return policies.Fault{
		Surface: policies.SurfaceGit, Stderr: err.stderr, ExitCode: &err.exitCode, Termination: err.termination, Now: time.Now(),
	}
}
