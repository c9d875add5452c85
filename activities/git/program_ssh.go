package git

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	gitssh "github.com/go-git/go-git/v5/plumbing/transport/ssh"
	"golang.org/x/crypto/ssh"

	"github.com/holdfast-dev/holdfast/policies"
)

// sshEnvironment is how the git program reaches a remote by SSH: with the key or
// the agent of the auth profile and nothing else, to hosts that are known, and
// without a question.
func (g *program) sshEnvironment(r *remote, words *sshLog) ([]string, error) {
	if err := g.checkSSH(r); err != nil {
		return nil, err
	}
	user := r.creds.Username
	if user == "" {
		user = r.User
	}
	if user == "" {
		user = gitssh.DefaultUsername
	}
	seconds := max(1, int(g.connectTimeout/time.Second))
	options := []string{
		"User=" + user,
		"BatchMode=yes",
		"StrictHostKeyChecking=yes",
		"UserKnownHostsFile=" + quoteFiles(knownHosts(r.creds.KnownHosts)),
		"GlobalKnownHostsFile=" + os.DevNull,
		"UpdateHostKeys=no",
		"IdentitiesOnly=" + yes(r.creds.Kind == CredentialSSHKey),
		"PreferredAuthentications=publickey",
		"ControlMaster=no", "ControlPath=none", "ClearAllForwardings=yes", "ForwardAgent=no", "PermitLocalCommand=no",
		"ConnectTimeout=" + strconv.Itoa(seconds),
		"ServerAliveInterval=15", "ServerAliveCountMax=2",
		"LogLevel=ERROR",
	}
	env := []string{"GIT_SSH_VARIANT=ssh"}
	if r.creds.Kind == CredentialSSHKey {
		options = append(options, "IdentityAgent=none", "IdentityFile="+quoteFiles([]string{r.creds.KeyFile}))
	} else {
		options = append(options, "IdentityFile=none")
		env = append(env, "SSH_AUTH_SOCK="+os.Getenv("SSH_AUTH_SOCK"))
	}
	command := "ssh -F none -E " + shellQuote(words.name)
	for _, option := range options {
		command += " -o " + shellQuote(option)
	}
	return append(env, "GIT_SSH_COMMAND="+command), nil
}

func yes(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

// checkSSH refuses what ssh could only fail at, or would ask about.
func (g *program) checkSSH(r *remote) error {
	if _, err := exec.LookPath("ssh"); err != nil {
		return refuse(policies.ReasonFormat, "G9/ssh", "the git program needs ssh for this remote; install openssh-client, or set git.engine to go-git")
	}
	if r.creds.Kind != CredentialSSHKey {
		if os.Getenv("SSH_AUTH_SOCK") == "" {
			return errNoAgent
		}
		return nil
	}
	if r.creds.Secret != "" {
		return errPassphrase
	}
	key, err := os.ReadFile(r.creds.KeyFile)
	if err != nil {
		return errKeyFile
	}
	_, err = ssh.ParseRawPrivateKey(key)
	var missing *ssh.PassphraseMissingError
	if errors.As(err, &missing) {
		return errPassphrase
	}
	return nil // ssh knows more kinds of keys than can be read here
}

var (
	errNoAgent    = refuse(policies.ReasonAuth, "G9/profile", "there is no SSH agent; name an auth profile of kind ssh_key with --auth")
	errKeyFile    = refuse(policies.ReasonAuth, "G9/profile", "the SSH key of the auth profile could not be read; check its path and passphrase")
	errPassphrase = refuse(policies.ReasonAuth, "G9/profile", "the git program cannot be given the passphrase of an SSH key; add the key to an agent and name a profile of kind ssh_agent, or set git.engine to go-git")
)

// knownHosts are the files in which go-git looks too.
func knownHosts(files []string) []string {
	if len(files) > 0 {
		return files
	}
	if list := filepath.SplitList(os.Getenv("SSH_KNOWN_HOSTS")); len(list) > 0 {
		return list
	}
	files = []string{"/etc/ssh/ssh_known_hosts"}
	if home, err := os.UserHomeDir(); err == nil {
		files = append([]string{filepath.Join(home, ".ssh", "known_hosts")}, files...)
	}
	return files
}

// quoteFiles is a list of files as ssh reads it in an option.
func quoteFiles(files []string) string {
	quoted := make([]string, len(files))
	for i, file := range files {
		// "%" begins a token of ssh's.
		quoted[i] = `"` + strings.ReplaceAll(file, "%", "%%") + `"`
	}
	return strings.Join(quoted, " ")
}

// shellQuote makes one word of the shell.
func shellQuote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// sshLog is where ssh writes what it has to say itself, apart from what the other
// side says through it.
type sshLog struct{ name string }

// newSSHLog makes the log of a run; one that needs no ssh has none.
func newSSHLog(j job) (*sshLog, error) {
	if j.remote == nil || j.remote.Transport != policies.GitSSH {
		return &sshLog{}, nil
	}
	dir := j.gitDir // of our own, and removed with what a killed worker leaves
	if dir == noRepository {
		dir = ""
	}
	f, err := os.CreateTemp(dir, "holdfast-ssh-")
	if err != nil {
		return nil, err
	}
	return &sshLog{f.Name()}, f.Close()
}

// text is the beginning of what was written.
func (l *sshLog) text() string {
	if l.name == "" {
		return ""
	}
	f, err := os.Open(l.name)
	if err != nil {
		return "" // git's own words tell less, but something
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxKept))
	if err != nil {
		return ""
	}
	return string(text)
}

func (l *sshLog) remove() {
	if l.name != "" {
		os.Remove(l.name)
	}
}

// beforeSession is what ssh says of a connection on which it asked for nothing
// yet. A line that quotes the other side, as "Received disconnect from …" does, is
// none of these.
var beforeSession = regexp.MustCompile(`(?m)^(?:ssh: |kex_exchange_identification: |Connection timed out during banner exchange|Unable to negotiate with |Host key verification failed\.|\S+@\S+: Permission denied \([a-z,-]+\)\.)`)
