package client

import (
	"context"
	"fmt"

	"github.com/holdfast-dev/holdfast/contract"
	"github.com/holdfast-dev/holdfast/policies"
)

// GitLsRemote lists the refs of a remote. Input that cannot be taken is an
// [InputError] and does not use up the key; so is an address that holds
// credentials, which must not get into history (G9).
func (c *Client) GitLsRemote(ctx context.Context, key string, in contract.GitLsRemoteInput) (*Handle[contract.GitResult], error) {
	if err := checkGit(in.Validate(), in.URL); err != nil {
		return nil, err
	}
	return startGit(ctx, c, gitOrder{
		key: key, prefix: contract.PrefixGitLsRemote, workflow: contract.WorkflowGitLsRemote, queue: contract.QueueGit, input: in,
		verb: "ls-remote", details: "Lists the refs of a remote.",
	})
}

// GitFetch fetches into a checkout on the disk of in.Host. Errors are as of
// GitLsRemote.
func (c *Client) GitFetch(ctx context.Context, key string, in contract.GitFetchInput) (*Handle[contract.GitResult], error) {
	if err := checkGitIn(in.Validate(), in.URL); err != nil {
		return nil, err
	}
	return startGit(ctx, c, gitOrder{
		key: key, prefix: contract.PrefixGitFetch, workflow: contract.WorkflowGitFetch, queue: contract.QueueGitHost(in.Host), input: in,
		verb: "fetch", details: fmt.Sprintf("Fetches into `%s` %s.", in.Dir, onHost(in.Host)),
	})
}

// GitClone makes a checkout on the disk of in.Host. Errors are as of
// GitLsRemote.
func (c *Client) GitClone(ctx context.Context, key string, in contract.GitCloneInput) (*Handle[contract.GitResult], error) {
	if err := checkGit(in.Validate(), in.URL); err != nil {
		return nil, err
	}
	return startGit(ctx, c, gitOrder{
		key: key, prefix: contract.PrefixGitClone, workflow: contract.WorkflowGitClone, queue: contract.QueueGitHost(in.Host), input: in,
		verb: "clone", details: fmt.Sprintf("Clones into `%s` %s.", in.Dir, onHost(in.Host)),
	})
}

// GitPush pushes one ref of a checkout, once: it is never repeated, and one
// whose answer is lost is looked for at the remote (G6). Errors are as of
// GitLsRemote.
func (c *Client) GitPush(ctx context.Context, key string, in contract.GitPushInput) (*Handle[contract.GitResult], error) {
	if err := checkGitIn(in.Validate(), in.URL); err != nil {
		return nil, err
	}
	return startGit(ctx, c, gitOrder{
		key: key, prefix: contract.PrefixGitPush, workflow: contract.WorkflowGitPush, queue: contract.QueueGitHost(in.Host), input: in,
		verb: "push", details: fmt.Sprintf("Pushes from `%s` %s.", in.Dir, onHost(in.Host)),
	})
}

// GitSync fetches, and then fast-forwards the branch that is checked out and its
// files (G7). Errors are as of GitLsRemote.
func (c *Client) GitSync(ctx context.Context, key string, in contract.GitSyncInput) (*Handle[contract.GitResult], error) {
	if err := checkGitIn(in.Validate(), in.URL); err != nil {
		return nil, err
	}
	return startGit(ctx, c, gitOrder{
		key: key, prefix: contract.PrefixGitSync, workflow: contract.WorkflowGitSync, queue: contract.QueueGitHost(in.Host), input: in,
		verb: "sync", details: fmt.Sprintf("Fetches into `%s` %s and fast-forwards it.", in.Dir, onHost(in.Host)),
	})
}

// gitOrder is what differs between the starts of Git operations.
type gitOrder struct {
	key, prefix, workflow, queue string
	input                        any
	verb, details                string
}

func startGit(ctx context.Context, c *Client, g gitOrder) (*Handle[contract.GitResult], error) {
	return start[contract.GitResult](ctx, c, order{
		prefix: g.prefix, key: g.key, workflow: g.workflow, queue: g.queue, input: g.input,
		summary: "git " + g.verb, details: g.details,
		attributes: attributes(contract.AttributeKind, "git-"+g.verb, contract.AttributeState, contract.StateRunning),
	})
}

// checkGit is what is wrong with an input or with its address, as an InputError.
func checkGit(problem *contract.Error, url string) error {
	if problem != nil {
		return inputError(problem)
	}
	if _, err := policies.ParseGitURL(url); err != nil {
		return &InputError{err}
	}
	return nil
}

// checkGitIn is checkGit for work in a checkout, which has a remote of its own.
func checkGitIn(problem *contract.Error, url string) error {
	if problem == nil && url == "" {
		return nil
	}
	return checkGit(problem, url)
}

func onHost(host string) string {
	if host == "" {
		return "in a shared root"
	}
	return "on host `" + host + "`"
}
