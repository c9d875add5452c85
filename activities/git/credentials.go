package git

import (
	"context"
	"errors"
	"net"
	"os"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/transport"
	githttp "github.com/go-git/go-git/v5/plumbing/transport/http"
	gitssh "github.com/go-git/go-git/v5/plumbing/transport/ssh"
	sshagent "github.com/xanzy/ssh-agent"
	"golang.org/x/crypto/ssh"

	"github.com/holdfast-dev/holdfast/policies"
)

// ErrUnknownProfile is what Config.Auth returns for a name that is not
// configured.
var ErrUnknownProfile = errors.New("git: unknown auth profile")

// CredentialKind is the kind of a Git auth profile.
type CredentialKind string

// Kinds of Git auth profiles (G9).
const (
	CredentialToken    CredentialKind = "token"     // a token of a Git host, sent as an HTTP password
	CredentialBasic    CredentialKind = "basic"     // user name and password over HTTP
	CredentialSSHKey   CredentialKind = "ssh_key"   // a private key file
	CredentialSSHAgent CredentialKind = "ssh_agent" // the agent at SSH_AUTH_SOCK
)

// Credentials are what a Git auth profile resolves to. They never leave the
// worker and do not print their secret.
type Credentials struct {
	Kind CredentialKind
	// Username defaults to "x-access-token" for a token, and for SSH to the user
	// in the URL or "git".
	Username string
	// Secret is the token, the password, or the passphrase of the key file.
	Secret string
	// KeyFile is the path of an SSH private key.
	KeyFile string
	// KnownHosts are files of known host keys. Defaults to the files of
	// SSH_KNOWN_HOSTS, else ~/.ssh/known_hosts and /etc/ssh/ssh_known_hosts. A
	// host that is in none of them is refused.
	KnownHosts []string
	// Hosts are the only hosts, without ports, that may get the credential.
	// Defaults to all.
	Hosts []string
	// PlainHTTP lets the credential go over http without TLS to another machine.
	PlainHTTP bool
}

// String names the kind and hides everything else.
func (c Credentials) String() string {
	if c.Kind == "" {
		return "no credentials"
	}
	return string(c.Kind) + " credentials"
}

// GoString is String, for %#v.
func (c Credentials) GoString() string { return c.String() }

// fits checks that the credentials can be used on a transport at all, and may go
// to the host (G9).
func (c Credentials) fits(u policies.GitURL) error {
	switch t := u.Transport; c.Kind {
	case CredentialToken, CredentialBasic:
		if t == policies.GitSSH {
			return refuse(policies.ReasonFormat, "G9/profile", "the auth profile holds an HTTP credential and the remote is reached by SSH; name one of kind ssh_key or ssh_agent, or use an https URL")
		}
	case CredentialSSHKey, CredentialSSHAgent:
		if t == policies.GitHTTP {
			return refuse(policies.ReasonFormat, "G9/profile", "the auth profile holds an SSH credential and the remote is reached by HTTP; name one of kind token or basic, or use an ssh URL")
		}
	default:
		return refuse(policies.ReasonFormat, "G9/profile", "the auth profile has an unknown kind; use token, basic, ssh_key or ssh_agent")
	}
	switch {
	case u.Transport == policies.GitFile:
		return nil // nobody gets it
	case len(c.Hosts) > 0 && !slices.ContainsFunc(c.Hosts, func(host string) bool { return strings.EqualFold(host, u.Host) }):
		return refuse(policies.ReasonAuth, "G9/host", "the auth profile is not for the remote's host; name another one, or add the host to its hosts")
	case u.Plain && !c.PlainHTTP:
		return refuse(policies.ReasonAuth, "G9/plain_http", "the credential would go over http, where everyone on the way can read it; use an https URL, or set plain_http in the auth profile")
	}
	return nil
}

// httpAuth is the credential of an HTTP request, nil for none.
func (c Credentials) httpAuth() transport.AuthMethod {
	switch c.Kind {
	case CredentialToken:
		user := c.Username
		if user == "" {
			user = "x-access-token"
		}
		return &githttp.BasicAuth{Username: user, Password: c.Secret}
	case CredentialBasic:
		return &githttp.BasicAuth{Username: c.Username, Password: c.Secret}
	}
	return nil
}

// sshAuth is an SSH login that can never ask: a key or an agent, and known
// hosts only.
type sshAuth struct {
	config *ssh.ClientConfig
}

func (a sshAuth) Name() string                             { return "ssh" }
func (a sshAuth) String() string                           { return "ssh" }
func (a sshAuth) ClientConfig() (*ssh.ClientConfig, error) { return a.config, nil }

// sshAuth makes the login for a remote. Without an auth profile the agent is
// used if there is one. release ends what the login needs, and is called once
// somebody has logged in; ctx bounds it.
func (c Credentials) sshAuth(ctx context.Context, user, hostPort string) (auth transport.AuthMethod, release func(), err error) {
	if c.Username != "" {
		user = c.Username
	}
	if user == "" {
		user = gitssh.DefaultUsername
	}
	method, release, err := c.sshMethod(ctx, user)
	if err != nil {
		return nil, nil, err
	}
	known, err := gitssh.NewKnownHostsDb(c.KnownHosts...)
	if err != nil {
		release()
		return nil, nil, refuse(policies.ReasonTLS, "G3/host_key", "no known_hosts file could be read; list the host's key in one and name it in the auth profile")
	}
	check := known.HostKeyCallback()
	return sshAuth{&ssh.ClientConfig{
		User: user,
		Auth: []ssh.AuthMethod{method},
		HostKeyCallback: func(host string, addr net.Addr, key ssh.PublicKey) error {
			if check(host, addr, key) != nil {
				return errHostKey
			}
			return nil
		},
		HostKeyAlgorithms: known.HostKeyAlgorithms(hostPort),
	}}, release, nil
}

func (c Credentials) sshMethod(ctx context.Context, user string) (method ssh.AuthMethod, release func(), err error) {
	if c.Kind == CredentialSSHKey {
		keys, err := gitssh.NewPublicKeysFromFile(user, c.KeyFile, c.Secret)
		if err != nil {
			return nil, nil, errKeyFile
		}
		return ssh.PublicKeys(keys.Signer), func() {}, nil
	}
	if os.Getenv("SSH_AUTH_SOCK") == "" {
		return nil, nil, errNoAgent
	}
	agent, conn, err := sshagent.New()
	if err != nil {
		return nil, nil, refuse(policies.ReasonAuth, "G9/profile", "the SSH agent did not answer; start it or name an auth profile of kind ssh_key with --auth")
	}
	if conn == nil {
		return ssh.PublicKeysCallback(agent.Signers), func() {}, nil
	}
	// An agent may wait for its owner to confirm the use of a key.
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	return ssh.PublicKeysCallback(agent.Signers), func() {
		stop()
		conn.Close()
	}, nil
}
