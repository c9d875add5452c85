// Package enginetest shows the Git engines to the suite that each of them passes.
// It is only imported by tests, one package for each engine, which run beside
// each other.
package enginetest

import (
	"context"
	"encoding/json"
	"errors"
	stdlog "log"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"
	"go.uber.org/goleak"
	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"

	"github.com/holdfast-dev/holdfast/activities/git"
	"github.com/holdfast-dev/holdfast/conformance"
	"github.com/holdfast-dev/holdfast/contract"
	"github.com/holdfast-dev/holdfast/failure"
	"github.com/holdfast-dev/holdfast/simulator"
	"github.com/holdfast-dev/holdfast/simulator/gitssh"
)

// outside is what the process that runs the engines trusts and holds: an
// authority, by SSL_CERT_FILE, and a key, in the agent at SSH_AUTH_SOCK. Both are
// read once per process, so they are set before any test.
var outside struct {
	authority *simulator.Authority
	agentKey  ssh.PublicKey
}

// setOutside sets what the engines find in their environment.
func setOutside() (reset func(), err error) {
	dir, err := os.MkdirTemp("", "holdfast-git-test-")
	if err != nil {
		return nil, err
	}
	if outside.authority, err = simulator.NewAuthority(); err != nil {
		return nil, err
	}
	file := filepath.Join(dir, "ca.pem")
	if err := outside.authority.WriteFile(file); err != nil {
		return nil, err
	}
	l, err := startAgent(dir)
	if err != nil {
		return nil, err
	}
	os.Setenv("SSL_CERT_FILE", file)
	os.Setenv("SSH_AUTH_SOCK", l.Addr().String())
	return func() {
		l.Close()
		os.RemoveAll(dir)
	}, nil
}

// startAgent serves an SSH agent with one key.
func startAgent(dir string) (net.Listener, error) {
	file := filepath.Join(dir, "agent-key")
	var err error
	if outside.agentKey, err = gitssh.WriteKey(file, ""); err != nil {
		return nil, err
	}
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	key, err := ssh.ParseRawPrivateKey(content)
	if err != nil {
		return nil, err
	}
	ring := agent.NewKeyring()
	if err := ring.Add(agent.AddedKey{PrivateKey: key}); err != nil {
		return nil, err
	}
	l, err := net.Listen("unix", filepath.Join(dir, "agent"))
	if err != nil {
		return nil, err
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				agent.ServeAgent(ring, c) // it ends when the client leaves
			}()
		}
	}()
	return l, nil
}

// Main runs the tests of an engine, and finds what they leave running.
func Main(m *testing.M) {
	reset, err := setOutside()
	if err != nil {
		stdlog.Fatal(err)
	}
	goleak.VerifyTestMain(m, goleak.IgnoreCurrent(), goleak.Cleanup(func(code int) {
		reset()
		os.Exit(code)
	}))
}

// Run runs the suite for an engine (G1–G12).
func Run(t *testing.T, engine string) {
	conformance.Git(t, func(t *testing.T) conformance.GitAdapter { return adapter(t, engine) })
}

// RunBig runs what takes minutes, and memory and disk that a test beside it would
// miss: a million refs, bombs and many files (G12, Q4).
func RunBig(t *testing.T, engine string) {
	conformance.GitBig(t, func(t *testing.T) conformance.GitAdapter { return adapter(t, engine) })
}

// adapter is an engine as the suite sees it.
func adapter(t *testing.T, engine string) conformance.GitAdapter {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	profiles := map[string]git.Credentials{}
	a, err := git.New(git.Config{
		Engine: engine,
		Roots:  []string{root},
		Limits: git.Limits{Memory: 512 << 20, Disk: 1 << 30},
		Auth: func(_ context.Context, name string) (git.Credentials, error) {
			mu.Lock()
			defer mu.Unlock()
			c, ok := profiles[name]
			if !ok {
				return git.Credentials{}, git.ErrUnknownProfile
			}
			return c, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := a.Wait(ctx); err != nil {
			t.Errorf("work of cancelled activities does not end: %v", err)
		}
	})
	return conformance.GitAdapter{
		Root: root, Authority: outside.authority, AgentKey: outside.agentKey, NoPassphrases: engine == git.EngineGit,
		AddAuth: func(name string, auth conformance.GitAuth) {
			mu.Lock()
			defer mu.Unlock()
			profiles[name] = credentials(auth)
		},
		LsRemote:    calls(t, a.LsRemote, func(out *conformance.GitAnswer) any { return &out.Result }),
		Fetch:       calls(t, a.Fetch, func(out *conformance.GitAnswer) any { return &out.Result }),
		Clone:       calls(t, a.Clone, func(out *conformance.GitAnswer) any { return &out.Result }),
		FastForward: calls(t, a.FastForward, func(out *conformance.GitAnswer) any { return &out.Result }),
		PushIntent:  calls(t, a.PushIntent, func(out *conformance.GitAnswer) any { return &out.Plan }),
		Push:        calls(t, a.Push, func(out *conformance.GitAnswer) any { return &out.Result }),
		Locate:      calls(t, a.Locate, func(out *conformance.GitAnswer) any { return &out.Located }),
	}
}

func credentials(auth conformance.GitAuth) git.Credentials {
	switch {
	case auth.Token != "":
		return git.Credentials{Kind: git.CredentialToken, Username: auth.Username, Secret: auth.Token}
	case auth.Password != "":
		return git.Credentials{Kind: git.CredentialBasic, Username: auth.Username, Secret: auth.Password}
	case auth.KeyFile != "":
		return git.Credentials{Kind: git.CredentialSSHKey, KeyFile: auth.KeyFile, Secret: auth.Passphrase, KnownHosts: auth.KnownHosts}
	}
	return git.Credentials{Kind: git.CredentialSSHAgent, KnownHosts: auth.KnownHosts}
}

// calls makes one attempt of an activity as the server would.
func calls(t *testing.T, do any, result func(*conformance.GitAnswer) any) conformance.GitCall {
	return func(ctx context.Context, in contract.GitRequest) (out conformance.GitAnswer) {
		var suite testsuite.WorkflowTestSuite
		suite.SetLogger(log.NewStructuredLogger(slog.New(slog.DiscardHandler)))
		env := suite.NewTestActivityEnvironment()
		env.SetTestTimeout(time.Hour) // the request has a limit of its own
		env.RegisterActivity(do)
		beats := &beats{}
		env.SetWorkerOptions(worker.Options{BackgroundActivityContext: ctx, Interceptors: []interceptor.WorkerInterceptor{beats}})
		value, err := env.ExecuteActivity(do, in)
		out.Progress = beats.all()
		if err == nil {
			if err := value.Get(result(&out)); err != nil {
				t.Errorf("the result does not decode: %v", err)
			}
			return out
		}
		f := failure.From(err)
		if temporal.IsCanceledError(err) {
			f = contract.Failure{Reason: "cancelled"}
		}
		out.Failure = &f
		out.Stored = temporal.GetDefaultFailureConverter().ErrorToFailure(err).String()
		details, _ := json.Marshal(f)
		out.Stored += string(details)
		for e := err; e != nil; e = errors.Unwrap(e) {
			out.Stored += e.Error()
		}
		return out
	}
}

// beats keeps the heartbeats of an attempt, of which the test environment would
// pass on the first.
type beats struct {
	interceptor.WorkerInterceptorBase
	mu   sync.Mutex
	seen []conformance.GitProgress
}

func (b *beats) all() []conformance.GitProgress {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.seen
}

func (b *beats) InterceptActivity(_ context.Context, next interceptor.ActivityInboundInterceptor) interceptor.ActivityInboundInterceptor {
	return &beatsInbound{interceptor.ActivityInboundInterceptorBase{Next: next}, b}
}

type beatsInbound struct {
	interceptor.ActivityInboundInterceptorBase
	beats *beats
}

func (i *beatsInbound) Init(out interceptor.ActivityOutboundInterceptor) error {
	return i.Next.Init(&beatsOutbound{interceptor.ActivityOutboundInterceptorBase{Next: out}, i.beats})
}

type beatsOutbound struct {
	interceptor.ActivityOutboundInterceptorBase
	beats *beats
}

func (o *beatsOutbound) RecordHeartbeat(ctx context.Context, details ...any) {
	if p, ok := details[0].(git.Progress); ok {
		o.beats.mu.Lock()
		o.beats.seen = append(o.beats.seen, conformance.GitProgress(p))
		o.beats.mu.Unlock()
	}
	o.Next.RecordHeartbeat(ctx, details...)
}
