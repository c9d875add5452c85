package policies

import (
	"net/netip"
	"net/url"
	"regexp"
	"strings"
)

// GitTransport is how a Git remote is reached.
type GitTransport string

// Transports of Git remotes.
const (
	GitHTTP GitTransport = "http" // http and https
	GitSSH  GitTransport = "ssh"  // ssh://host/path and user@host:path
	GitFile GitTransport = "file" // file:// and plain paths
)

// GitURL is the address of a Git remote, without any credential.
type GitURL struct {
	Transport GitTransport
	// User is the login name of an SSH remote; empty elsewhere.
	User string
	// Host has no port; empty for files.
	Host string
	// Plain says that everyone on the way can read what is sent: http without TLS
	// to another machine.
	Plain bool
}

// GitURLError says why an address is refused. Its text never repeats the
// address, which may hold a credential (G9).
type GitURLError struct {
	// Credential says that the address carries a credential.
	Credential bool
	problem    string
}

func (e *GitURLError) Error() string { return e.problem }

var (
	gitScheme = regexp.MustCompile(`^[^:/]+://`)
	gitHelper = regexp.MustCompile(`^[A-Za-z0-9+.-]+::`)
	gitSCP    = regexp.MustCompile(`^(?:([^@/]+)@)?([^:/\s]+):(.+)$`)
)

// ParseGitURL reads the address of a remote: http and https URLs, ssh URLs,
// user@host:path, file URLs and paths. It refuses everything else, and every
// address that carries a credential, with a *[GitURLError]: a credential
// belongs in a Git auth profile, for addresses are kept in history (G9).
func ParseGitURL(raw string) (GitURL, error) {
	switch {
	case strings.TrimSpace(raw) == "":
		return GitURL{}, &GitURLError{problem: "the remote's URL is empty; name one"}
	case strings.HasPrefix(raw, "-") || strings.ContainsFunc(raw, isControl):
		return GitURL{}, &GitURLError{problem: "the remote's URL starts with '-' or holds control characters; give a plain Git URL"}
	case gitScheme.MatchString(raw):
		return parseGitSchemeURL(raw)
	case gitHelper.MatchString(raw):
		return GitURL{}, &GitURLError{problem: "remote helpers (NAME::ADDRESS) are not supported; give an http, https, ssh or file URL"}
	}
	if m := gitSCP.FindStringSubmatch(raw); m != nil {
		if strings.Contains(m[1], ":") {
			return GitURL{}, credentialInURL()
		}
		if strings.HasPrefix(m[1], "-") || strings.HasPrefix(m[2], "-") {
			return GitURL{}, &GitURLError{problem: "the remote's host starts with '-'; give a plain Git URL"}
		}
		if m[1] == "" && strings.Contains(m[3], "@") {
			return GitURL{}, credentialInURL()
		}
		return GitURL{Transport: GitSSH, User: m[1], Host: m[2]}, nil
	}
	return GitURL{Transport: GitFile}, nil
}

func parseGitSchemeURL(raw string) (GitURL, error) {
	u, err := url.Parse(raw) //workflowcheck:ignore only its cache of IPv6 zones starts goroutines
	if err != nil {
		return GitURL{}, &GitURLError{problem: "the remote's URL cannot be read; give an http, https, ssh or file URL"}
	}
	switch u.Scheme {
	case "http", "https":
		if u.User != nil || u.RawQuery != "" || u.Fragment != "" {
			return GitURL{}, credentialInURL()
		}
		if u.Hostname() == "" {
			return GitURL{}, &GitURLError{problem: "the remote's URL has no host"}
		}
		return GitURL{Transport: GitHTTP, Host: u.Hostname(), Plain: u.Scheme == "http" && !isLoopback(u.Hostname())}, nil
	case "ssh":
		if _, secret := u.User.Password(); secret || u.RawQuery != "" || u.Fragment != "" {
			return GitURL{}, credentialInURL()
		}
		if u.Hostname() == "" || strings.HasPrefix(u.Hostname(), "-") || strings.HasPrefix(u.User.Username(), "-") {
			return GitURL{}, &GitURLError{problem: "the remote's URL has no usable host"}
		}
		return GitURL{Transport: GitSSH, User: u.User.Username(), Host: u.Hostname()}, nil
	case "file":
		if u.User != nil {
			return GitURL{}, credentialInURL()
		}
		if u.Host != "" && u.Host != "localhost" {
			return GitURL{}, &GitURLError{problem: "a file URL cannot name another host; use an http, https or ssh URL"}
		}
		return GitURL{Transport: GitFile}, nil
	}
	return GitURL{}, &GitURLError{problem: "the remote's URL has a scheme that is not supported; use http, https, ssh, file, user@host:path or a path"}
}

func credentialInURL() *GitURLError {
	return &GitURLError{
		Credential: true,
		problem:    "the remote's URL carries a credential, a query or a fragment; take it out and name an auth profile with --auth NAME",
	}
}

func isLoopback(host string) bool {
	ip, err := netip.ParseAddr(host) //workflowcheck:ignore only its cache of IPv6 zones starts goroutines
	return strings.EqualFold(host, "localhost") || err == nil && ip.Unmap().IsLoopback()
}

func isControl(r rune) bool { return r < 0x20 || r == 0x7f }
