package conformance

import (
	"context"
	"slices"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/holdfast-dev/holdfast/contract"
	"github.com/holdfast-dev/holdfast/simulator"
)

// GitAdapter is a Git engine under test, as its activities are asked for it.
// Every subtest asks for a new one. The suite needs the git program, to make
// repositories and to look at them.
type GitAdapter struct {
	// Root is a new directory, symbolic links resolved, in which the engine may
	// read and write everything.
	Root string
	// The activities. Each call is one attempt, which ends when its context does.
	LsRemote, Fetch, Clone, FastForward GitCall
	PushIntent, Push, Locate            GitCall
	// AddAuth adds a Git auth profile.
	AddAuth func(name string, auth GitAuth)
	// Authority is one whose certificates the engine trusts.
	Authority *simulator.Authority
	// AgentKey is a key that the SSH agent of the engine holds.
	AgentKey ssh.PublicKey
	// NoPassphrases says that the engine cannot open a key that has a passphrase,
	// and refuses it.
	NoPassphrases bool
}

// GitCall makes one attempt at what a request asks for.
type GitCall func(ctx context.Context, in contract.GitRequest) GitAnswer

// GitAnswer is how an attempt ended; what it is not about is left empty.
type GitAnswer struct {
	// Result is that of every activity but PushIntent and Locate; that of Push
	// need not say more than that it landed.
	Result contract.GitResult
	// Plan is that of PushIntent.
	Plan contract.GitPushPlan
	// Located is that of Locate.
	Located contract.GitLocated
	// Failure is nil for success.
	Failure *contract.Failure
	// Stored is the whole error as it would be stored.
	Stored string
	// Progress is what the heartbeats said.
	Progress []GitProgress
}

// GitProgress is what a heartbeat of a Git activity says (G10).
type GitProgress struct {
	Phase                string
	Objects, Done, Bytes int64
}

// GitAuth is a Git auth profile. Its kind follows from what is set: a token, a
// user and a password, a key file, or else the SSH agent.
type GitAuth struct {
	Token              string
	Username, Password string
	KeyFile            string
	Passphrase         string
	KnownHosts         []string
}

// gitCase is one part of the suite.
type gitCase struct {
	name string
	run  func(w *gitWorld)
}

// Git shows what a Git engine must guarantee (G1–G12): which failure is which,
// that an attempt is one attempt, that refs move all or none and never to what is
// not there, that nothing is left behind or written outside, and that what comes
// out is the same for every engine.
func Git(t *testing.T, start func(t *testing.T) GitAdapter) {
	runGit(t, start, slices.Concat(
		gitHostileCases, // the longest first
		gitListCases, gitFetchCases, gitCloneCases, gitAdvanceCases, gitPushCases,
		gitFaultCases, gitPushFaultCases, gitAuthCases, gitSSHCases, gitCancelCases, gitCheckoutCases,
	))
}

// GitBig is the part of the suite that is about size: a million refs, bombs, many
// files. The engine under test must have a limit of 512 MiB for the memory of a
// process and of 1 GiB for the disk that an operation fills. It takes minutes.
func GitBig(t *testing.T, start func(t *testing.T) GitAdapter) {
	origin := newGitOrigin(t)
	for _, tc := range gitBigCases { // one after the other, for each takes much
		t.Run(tc.name, func(t *testing.T) { tc.run(newGitWorld(t, start(t), origin)) })
	}
}

func runGit(t *testing.T, start func(t *testing.T) GitAdapter, cases []gitCase) {
	origin := newGitOrigin(t)
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			tc.run(newGitWorld(t, start(t), origin))
		})
	}
}
