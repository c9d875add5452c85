package config

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/internal/redact"
)

// Kinds of auth profile of the model providers.
const (
	AuthAPIKey = "api_key"
	AuthOAuth  = "oauth"
	AuthToken  = "token"
	AuthNone   = "none"
)

// Kinds of Git auth profile (G9).
const (
	GitAuthToken    = "token"
	GitAuthBasic    = "basic"
	GitAuthSSHKey   = "ssh_key"
	GitAuthSSHAgent = "ssh_agent"
)

const (
	resolveTimeout = 10 * time.Second
	maxSecretBytes = 64 << 10
)

// AuthProfile is a credential for one provider (M1, P6).
type AuthProfile struct {
	Name     string `yaml:"-"`
	Provider string `yaml:"provider"`
	Kind     string `yaml:"kind" oneof:"api_key|oauth|token|none"`
	Source   `yaml:",inline"`
}

// GitAuthProfile is a credential for managed Git (G9).
type GitAuthProfile struct {
	Name string `yaml:"-"`
	Kind string `yaml:"kind" oneof:"token|basic|ssh_key|ssh_agent"`
	// Username defaults to x-access-token for tokens and to git for SSH.
	Username string `yaml:"username"`
	// Source is the token or password; of kind ssh_key, File is the private key.
	Source `yaml:",inline"`
	// KnownHosts is the file of host keys for SSH. Defaults to the user's own.
	KnownHosts string `yaml:"known_hosts,omitempty"`
	// Hosts are the only hosts, without ports, that get the credential. Defaults
	// to all.
	Hosts []string `yaml:"hosts,omitempty"`
	// PlainHTTP lets the credential go over http without TLS beyond this machine.
	PlainHTTP bool `yaml:"plain_http,omitempty"`
}

// Resolve returns the credential as it is now, or "" for kind none; a file or
// command is read each time, so that a rotated credential needs no restart
// (M1). The error is a *ResolveError.
func (a AuthProfile) Resolve(ctx context.Context) (string, error) {
	if a.Kind == AuthNone {
		return "", nil
	}
	return a.resolve(ctx, a.Name)
}

// Resolve returns the token, password or private key as it is now, or "" for
// kind ssh_agent. The error is a *ResolveError.
func (a GitAuthProfile) Resolve(ctx context.Context) (string, error) {
	if a.Kind == GitAuthSSHAgent {
		return "", nil
	}
	return a.resolve(ctx, a.Name)
}

// Source says where a credential comes from: exactly one of its fields is set.
type Source struct {
	Value Secret `yaml:"value,omitempty"`
	// File holds the credential and nothing else but white space.
	File string `yaml:"file,omitempty"`
	// Command prints the credential. It runs without a shell, for at most 10 s.
	Command []string `yaml:"command,omitempty"`
}

// ResolveError says why a credential could not be had. It holds neither the
// credential nor anything that a command printed, nor its arguments.
type ResolveError struct {
	Profile string // name of the auth profile
	From    string // "value", "file" or "command"
	Err     error
}

// Error names the auth profile and what to look at.
func (e *ResolveError) Error() string {
	return fmt.Sprintf("auth profile %q: %s: %v", e.Profile, e.From, e.Err)
}

// Unwrap returns the cause.
func (e *ResolveError) Unwrap() error { return e.Err }

var errEmptySecret = errors.New("it is empty: put the credential there")

func (s Source) resolve(ctx context.Context, profile string) (string, error) {
	var secret, from string
	var err error
	switch {
	case s.File != "":
		from = "file"
		secret, err = readSecret(s.File)
	case len(s.Command) > 0:
		from = "command"
		secret, err = runSecret(ctx, s.Command)
	default:
		from = "value"
		secret = s.Value.Reveal()
	}
	secret = strings.TrimSpace(secret)
	if err == nil && secret == "" {
		err = errEmptySecret
	}
	if err != nil {
		return "", &ResolveError{Profile: profile, From: from, Err: err}
	}
	redact.Add(secret)
	return secret, nil
}

func readSecret(name string) (string, error) {
	f, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxSecretBytes+1))
	if err != nil {
		return "", err
	}
	if len(data) > maxSecretBytes {
		return "", fmt.Errorf("%s is larger than 64 KiB: name a file that holds the credential alone", name)
	}
	return string(data), nil
}

func runSecret(ctx context.Context, command []string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, resolveTimeout)
	defer cancel()
	var out bounded
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Stdout = &out
	cmd.WaitDelay = time.Second
	err := cmd.Run()
	program := filepath.Base(command[0])
	switch {
	case ctx.Err() != nil:
		return "", fmt.Errorf("%s did not end in time: %w", program, ctx.Err())
	case err != nil:
		return "", fmt.Errorf("%s: %w", program, err)
	case out.over:
		return "", fmt.Errorf("%s printed more than 64 KiB: it must print the credential alone", program)
	}
	return out.String(), nil
}

// bounded keeps the first maxSecretBytes of what is written to it.
type bounded struct {
	kept bytes.Buffer
	over bool
}

func (b *bounded) Write(p []byte) (int, error) {
	if room := maxSecretBytes - b.kept.Len(); len(p) > room {
		b.over = true
		b.kept.Write(p[:room])
		return len(p), nil
	}
	return b.kept.Write(p)
}

func (b *bounded) String() string { return b.kept.String() }
