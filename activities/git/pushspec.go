package git

import (
	"errors"
	"regexp"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/plumbing/storer"

	"github.com/holdfast-dev/holdfast/policies"
)

// pushSpec is what a push is to bring, and to where.
type pushSpec struct {
	dst plumbing.ReferenceName // the full name of the remote's ref
	new plumbing.Hash          // a tag's own object, where it has one
}

// Failures of what a push is asked for.
var (
	errDetached = refuse(policies.ReasonFormat, "G6/detached", "the checkout is on no branch, so there is none to push; name one, or SRC:DST, with --ref")
	errDelete   = refuse(policies.ReasonFormat, "G6/delete", "a push deletes no ref; give what is to be pushed before the colon of --ref")
	errForce    = refuse(policies.ReasonFormat, "G6/force", "a push is not forced by a plus sign; say with --expect which object id the remote's ref may be replaced from")
	errManyRefs = refuse(policies.ReasonFormat, "G6/refspec", "--ref is no single ref that can be pushed; use a branch, a tag, a full ref name or SRC:DST")
	errNoSource = refuse(policies.ReasonNotFound, "G6/source", "the checkout has no such branch or tag; correct --ref or make it first")
	errTwoOfIt  = refuse(policies.ReasonFormat, "G6/ambiguous", "the checkout has a branch and a tag of that name; write refs/heads/… or refs/tags/… with --ref")
	errUnborn   = refuse(policies.ReasonNotFound, "G6/unborn", "the branch that is checked out has no commit yet; make one first")
	errNoDest   = refuse(policies.ReasonFormat, "G6/destination", "it cannot be told which ref of the remote is meant; write SRC:DST with the full name of DST, as in refs/heads/main")
	errNoObject = refuse(policies.ReasonNotFound, "G6/object", "the checkout does not have the object that is to be pushed; run \"git fsck\" in it")
	errNoCommit = refuse(policies.ReasonFormat, "G6/no_commit", "what is to be pushed is no commit, and a branch can be nothing else; push it to refs/tags/…")
)

// pushSpec finds what --ref means here: SRC or SRC:DST, or nothing for the branch
// that is checked out.
func (c *checkout) pushSpec(ref string) (pushSpec, error) {
	if strings.HasPrefix(ref, "+") {
		return pushSpec{}, errForce
	}
	src, dst, pair := strings.Cut(ref, ":")
	switch {
	case pair && src == "":
		return pushSpec{}, errDelete
	case pair && dst == "", strings.ContainsAny(ref, "*?[\\^~ "), strings.Contains(dst, ":"):
		return pushSpec{}, errManyRefs
	}
	name, oid, err := c.source(src)
	if err != nil {
		return pushSpec{}, err
	}
	to := name
	if pair {
		to, err = destination(dst, name)
	} else if name == "" || strings.HasPrefix(name.String(), "refs/remotes/") {
		err = errNoDest
		if name == "" && !plumbing.IsHash(src) {
			err = errDetached
		}
	}
	if err != nil {
		return pushSpec{}, err
	}
	return pushSpec{dst: to, new: oid}, c.pushable(to, oid)
}

// source finds a local ref by the name that a user gives it, HEAD as the branch
// that it stands for. The name is empty for a commit that is on no branch.
func (c *checkout) source(src string) (plumbing.ReferenceName, plumbing.Hash, error) {
	if src == "" || src == "HEAD" || src == "@" {
		return c.head()
	}
	found, err := c.candidates(src)
	if err != nil {
		return "", plumbing.ZeroHash, err
	}
	switch {
	case len(found) > 1:
		return "", plumbing.ZeroHash, errTwoOfIt
	case len(found) == 0 && plumbing.IsHash(src):
		return "", plumbing.NewHash(src), nil
	case len(found) == 0:
		return "", plumbing.ZeroHash, errNoSource
	}
	ref, err := storer.ResolveReference(c.storage, found[0])
	if errors.Is(err, plumbing.ErrReferenceNotFound) {
		return "", plumbing.ZeroHash, errNoSource
	}
	if err != nil {
		return "", plumbing.ZeroHash, err
	}
	return found[0], ref.Hash(), nil
}

// candidates are the local refs that a name may mean: a full name itself, else a
// branch and a tag, else what is found one level up, as "tags/v1" or
// "origin/main".
func (c *checkout) candidates(src string) ([]plumbing.ReferenceName, error) {
	rules := [][]string{{"refs/heads/", "refs/tags/"}, {"refs/"}, {"refs/remotes/"}}
	if strings.HasPrefix(src, "refs/") {
		rules = [][]string{{""}}
	}
	for _, rule := range rules {
		var found []plumbing.ReferenceName
		for _, prefix := range rule {
			name := plumbing.ReferenceName(prefix + src)
			if name.Validate() != nil {
				continue
			}
			_, err := c.storage.Reference(name)
			switch {
			case err == nil:
				found = append(found, name)
			case !errors.Is(err, plumbing.ErrReferenceNotFound):
				return nil, err
			}
		}
		if len(found) > 0 {
			return found, nil
		}
	}
	return nil, nil
}

// head is the branch that is checked out and its commit; the branch is empty for
// a HEAD that is on none.
func (c *checkout) head() (plumbing.ReferenceName, plumbing.Hash, error) {
	head, err := c.storage.Reference(plumbing.HEAD)
	if err != nil {
		return "", plumbing.ZeroHash, openError(err)
	}
	if head.Type() == plumbing.HashReference {
		return "", head.Hash(), nil
	}
	ref, err := storer.ResolveReference(c.storage, head.Target())
	if errors.Is(err, plumbing.ErrReferenceNotFound) {
		return "", plumbing.ZeroHash, errUnborn
	}
	if err != nil {
		return "", plumbing.ZeroHash, err
	}
	return head.Target(), ref.Hash(), nil
}

// destination is the full name of the remote's ref: given in full, or of the same
// kind as the local one.
func destination(dst string, src plumbing.ReferenceName) (plumbing.ReferenceName, error) {
	name := plumbing.ReferenceName(dst)
	switch {
	case strings.HasPrefix(dst, "refs/"):
	case dst == "HEAD" || dst == "@":
		return "", errNoDest
	case strings.HasPrefix(dst, "heads/"), strings.HasPrefix(dst, "tags/"):
		name = "refs/" + name
	case src.IsBranch():
		name = plumbing.NewBranchReferenceName(dst)
	case src.IsTag():
		name = plumbing.NewTagReferenceName(dst)
	default:
		return "", errNoDest
	}
	if name.Validate() != nil || strings.Count(name.String(), "/") < 2 {
		return "", refuse(policies.ReasonFormat, "G6/destination", "--ref names a ref of the remote that git does not allow; use a name such as refs/heads/main")
	}
	return name, nil
}

// pushable checks that an object is here and may be what the ref is to be.
func (c *checkout) pushable(dst plumbing.ReferenceName, oid plumbing.Hash) error {
	here, err := c.has(oid)
	if err != nil {
		return err
	}
	if !here {
		return errNoObject
	}
	if !dst.IsBranch() {
		return nil
	}
	_, err = object.GetCommit(c.storage, oid)
	if errors.Is(err, plumbing.ErrObjectNotFound) {
		return errNoCommit
	}
	return err
}

var objectID = regexp.MustCompile(`^[0-9a-f]{40}$`)

// lease reads --expect: an object id, or zeros for a ref that must not exist,
// which is the empty id from here on.
func lease(expect string) (oid string, given bool, err error) {
	if expect == "" {
		return "", false, nil
	}
	oid = strings.ToLower(expect)
	if !objectID.MatchString(oid) {
		return "", false, refuse(policies.ReasonFormat, "G6/lease", "--expect is no object id of 40 hexadecimal digits; all zeros stand for a ref that must not exist")
	}
	if oid == plumbing.ZeroHash.String() {
		oid = ""
	}
	return oid, true, nil
}

// pushURL is where the checkout pushes to. A push that went to several places
// could land in some of them.
func (c *checkout) pushURL() (string, error) {
	r, ok := c.config.Remotes[remoteName]
	if !ok || len(r.URLs) == 0 {
		return c.originURL()
	}
	// go-git has the addresses of fetches first, then those of pushes.
	raw := c.config.Raw.Section("remote").Subsection(remoteName)
	urls := r.URLs
	if n := len(raw.Options.GetAll("url")); n < len(urls) && len(raw.Options.GetAll("pushurl")) > 0 {
		urls = urls[n:]
	}
	if len(urls) > 1 {
		return "", refuse(policies.ReasonFormat, "G6/remotes", "the checkout's origin has several addresses to push to; name one with --url")
	}
	return urls[0], nil
}
