package contract

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The Validate methods of the Git inputs say what is wrong with all but the
// address of the remote, whose rules are those of policies.ParseGitURL. What
// they say repeats no text of the caller's: it may be an address, and with it a
// credential, in the wrong place (G9).

const ruleGitInput = "G3/input"

const (
	// maxGitName bounds a ref, a host and the name of an auth profile, in bytes.
	maxGitName = 1000
	// maxGitDepth is the deepest that Git's wire can say.
	maxGitDepth = 1<<31 - 1
)

var (
	gitObjectID = regexp.MustCompile(`^[0-9a-f]{40}$`)
	gitHost     = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,252}$`)
	gitProfile  = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$`)
)

// Validate says what is wrong with a listing, apart from its URL, or nil. Ref
// may be a pattern.
func (in GitLsRemoteInput) Validate() *Error {
	return firstOf(gitText("the ref", in.Ref), gitCommon(in.Auth, in.Timeout, in.Admission))
}

// Validate says what is wrong with a fetch, apart from its URL, or nil. Ref may
// be a refspec.
func (in GitFetchInput) Validate() *Error {
	return firstOf(gitPlace(in.Dir, in.Host), gitText("the ref", in.Ref), gitCommon(in.Auth, in.Timeout, in.Admission))
}

// Validate says what is wrong with a clone, apart from its URL, or nil.
func (in GitCloneInput) Validate() *Error {
	if err := firstOf(gitPlace(in.Dir, in.Host), gitName(in.Ref), gitCommon(in.Auth, in.Timeout, in.Admission)); err != nil {
		return err
	}
	switch {
	case in.Depth < 0:
		return refuse(ruleGitInput, "the depth is %d; it cannot be negative, and 0 or none is all of the history", in.Depth)
	case in.Depth > maxGitDepth:
		return refuse(ruleGitInput, "the depth is above %d; leave it out for all of the history", maxGitDepth)
	}
	for _, dir := range in.Sparse {
		if err := gitSparse(dir); err != nil {
			return err
		}
	}
	return nil
}

// Validate says what is wrong with a push, apart from its URL, or nil.
func (in GitPushInput) Validate() *Error {
	if err := firstOf(gitPlace(in.Dir, in.Host), gitPushed(in.Ref), gitCommon(in.Auth, in.Timeout, in.Admission)); err != nil {
		return err
	}
	if in.Expect != "" && !gitObjectID.MatchString(in.Expect) {
		return refuse(ruleGitInput, "the lease (--expect) is no object id of 40 lower-case hexadecimal digits; all zeros stand for a ref that must not exist")
	}
	return nil
}

// Validate says what is wrong with a sync, apart from its URL, or nil.
func (in GitSyncInput) Validate() *Error {
	return firstOf(gitPlace(in.Dir, in.Host), gitName(in.Ref), gitCommon(in.Auth, in.Timeout, in.Admission))
}

// ValidateGitHost says what is wrong with the name of a worker host, or nil. It
// is part of a task queue's name (G11).
func ValidateGitHost(host string) *Error {
	if !gitHost.MatchString(host) {
		return refuse("G11/host", "the host's name is not of letters, digits, dots, dashes and underscores, beginning with a letter or a digit")
	}
	return nil
}

func firstOf(problems ...*Error) *Error {
	for _, p := range problems {
		if p != nil {
			return p
		}
	}
	return nil
}

// gitPlace checks where a checkout is.
func gitPlace(dir, host string) *Error {
	switch {
	case dir == "":
		return refuse(ruleGitInput, "no checkout is named; give its directory (--dir)")
	case !printable(dir):
		return refuse(ruleGitInput, "the checkout's directory holds control characters or is not valid UTF-8")
	case !filepath.IsAbs(dir):
		return refuse(ruleGitInput, "the checkout's directory is not an absolute path; the worker that has it cannot know what it is relative to")
	case host != "":
		return ValidateGitHost(host)
	}
	return nil
}

// gitCommon checks what all operations take.
func gitCommon(auth, timeout string, admission *GitAdmission) *Error {
	switch {
	case auth != "" && !gitProfile.MatchString(auth):
		return refuse("G9/profile", "the auth profile (--auth) is not the name of one; a credential itself belongs in git.auth_profiles of the configuration")
	case admission != nil && strings.TrimSpace(admission.Activity) == "":
		return refuse(ruleGitInput, "the admission names no activity")
	}
	return positive(ruleGitInput, "the timeout", timeout)
}

// gitText checks text that a git program gets as one of its arguments.
func gitText(what, text string) *Error {
	switch {
	case len(text) > maxGitName:
		return refuse(ruleGitInput, "%s is longer than %d bytes", what, maxGitName)
	case !printable(text) || strings.Contains(text, " "):
		return refuse(ruleGitInput, "%s holds blanks or control characters, or is not valid UTF-8", what)
	case strings.HasPrefix(text, "-"):
		return refuse(ruleGitInput, "%s begins with a dash, which no ref does", what)
	}
	return nil
}

// gitName checks a ref that may be left out and is neither a pattern nor a
// refspec.
func gitName(ref string) *Error {
	if err := gitText("the ref", ref); err != nil {
		return err
	}
	if strings.ContainsAny(ref, `:*?[\^~`) || strings.Contains(ref, "..") || strings.Contains(ref, "@{") {
		return refuse(ruleGitInput, "the ref is a pattern or a refspec; name one branch or tag")
	}
	return nil
}

// gitPushed checks SRC or SRC:DST of a push.
func gitPushed(ref string) *Error {
	if strings.HasPrefix(ref, "+") {
		return refuse(ruleGitInput, "a push is not forced by a plus sign; say with --expect what the remote ref may be replaced from")
	}
	source, target, two := strings.Cut(ref, ":")
	switch {
	case two && source == "":
		return refuse(ruleGitInput, "the ref names nothing to push; refs are never deleted")
	case two && target == "":
		return refuse(ruleGitInput, "the ref says nothing after its colon; write SRC:DST, or SRC alone")
	}
	return firstOf(gitName(source), gitName(target))
}

// gitSparse checks a directory of a sparse checkout.
func gitSparse(dir string) *Error {
	switch {
	case strings.Trim(dir, "/") == "":
		return refuse(ruleGitInput, "a sparse path (--sparse) is empty or the root, which is checked out anyway")
	case !printable(dir):
		return refuse(ruleGitInput, "a sparse path (--sparse) holds control characters or is not valid UTF-8")
	case strings.HasPrefix(dir, "/") || strings.HasPrefix(dir, "-"):
		return refuse(ruleGitInput, "a sparse path (--sparse) is relative to the top of the repository and begins with neither / nor -")
	case slices.Contains(strings.Split(dir, "/"), ".."):
		return refuse(ruleGitInput, `a sparse path (--sparse) leads out of the repository by ".."`)
	}
	return nil
}

// printable reports whether text is valid UTF-8 without control characters.
func printable(text string) bool {
	return utf8.ValidString(text) && !strings.ContainsFunc(text, unicode.IsControl)
}
