package git

import (
	"net/url"

	"github.com/go-git/go-git/v5/plumbing/transport"

	"github.com/holdfast-dev/holdfast/policies"
)

// confine is the address of a remote as it may be asked: a local one must lie in
// the roots with all of its parts, and is named by its resolved path then, so
// that nothing else can be found under it later. What is local is decided as
// go-git decides it, by the path that it would open.
func (r roots) confine(raw string) (string, error) {
	if len(r) == 0 {
		return raw, nil
	}
	endpoint, err := transport.NewEndpoint(raw)
	if err != nil || endpoint.Protocol != "file" {
		return raw, nil // another protocol, or none, which is refused where it is opened
	}
	for _, path := range []string{endpoint.Path, endpoint.Path + ".git"} { // as git looks for it
		dir, err := findGitDir(path, r)
		if err != nil {
			continue
		}
		common, err := commonDir(dir, r)
		if err == nil && r.confineObjects(common) == nil {
			return (&url.URL{Scheme: "file", Path: dir}).String(), nil
		}
	}
	// One answer for all, so that nobody learns what lies outside.
	return "", refuse(policies.ReasonPermission, "G12/root", "the remote's path is no Git repository inside the directories that git.roots allows; use one of those, or add its directory to git.roots")
}
