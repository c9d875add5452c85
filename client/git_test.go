package client_test

import (
	"errors"
	"strings"
	"testing"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"

	"github.com/holdfast-dev/holdfast/client"
	"github.com/holdfast-dev/holdfast/contract"
)

const address = "https://git.example.invalid/a.git"

// gitStarts are the Git operations, each with an input that can be taken.
var gitStarts = map[string]func(*testing.T, *client.Client, string) error{
	"ls-remote": func(t *testing.T, c *client.Client, _ string) error {
		_, err := c.GitLsRemote(t.Context(), "k", contract.GitLsRemoteInput{URL: address})
		return err
	},
	"fetch": func(t *testing.T, c *client.Client, host string) error {
		_, err := c.GitFetch(t.Context(), "k", contract.GitFetchInput{Dir: "/c", Host: host})
		return err
	},
	"clone": func(t *testing.T, c *client.Client, host string) error {
		_, err := c.GitClone(t.Context(), "k", contract.GitCloneInput{URL: address, Dir: "/c", Host: host})
		return err
	},
	"push": func(t *testing.T, c *client.Client, host string) error {
		_, err := c.GitPush(t.Context(), "k", contract.GitPushInput{Dir: "/c", Host: host})
		return err
	},
	"sync": func(t *testing.T, c *client.Client, host string) error {
		_, err := c.GitSync(t.Context(), "k", contract.GitSyncInput{Dir: "/c", Host: host})
		return err
	},
}

// G11, I4: work in a checkout is queued where the checkout is; an id and a kind
// say what it is, and a key is never started twice.
func TestGitStarts(t *testing.T) {
	t.Parallel()
	for verb, try := range gitStarts {
		for host, queue := range map[string]string{"": contract.QueueGit, "build-1": "holdfast-git-build-1"} {
			if verb == "ls-remote" {
				queue = contract.QueueGit
			}
			n := newNamespace(t)
			if err := try(t, client.New(n.temporal), host); err != nil {
				t.Fatalf("%s on %q: %v", verb, host, err)
			}
			o := n.starts[0]
			if o.ID != "git-"+verb+"/k" || o.TaskQueue != queue || o.StaticSummary != "git "+verb ||
				o.WorkflowIDReusePolicy != enumspb.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE {
				t.Errorf("%s on %q: started with %+v", verb, host, o)
			}
			if kind, _ := o.TypedSearchAttributes.GetKeyword(temporal.NewSearchAttributeKeyKeyword(contract.AttributeKind)); kind != "git-"+verb {
				t.Errorf("%s on %q: kind %q", verb, host, kind)
			}
			if verb != "ls-remote" && host != "" && !strings.Contains(o.StaticDetails, "`/c` on host `build-1`") {
				t.Errorf("%s: the details do not say where: %q", verb, o.StaticDetails)
			}
			if strings.Contains(o.StaticSummary+o.StaticDetails, "git.example") {
				t.Errorf("%s: summary or details repeat the address: %q, %q", verb, o.StaticSummary, o.StaticDetails)
			}
		}
	}
}

// G6: one key stands for one push; another lease is another push.
func TestGitPushKey(t *testing.T) {
	t.Parallel()
	n := newNamespace(t)
	c := client.New(n.temporal)
	in := contract.GitPushInput{Dir: "/c", Host: "h", Expect: strings.Repeat("0", 40)}
	if first, err := c.GitPush(t.Context(), "k", in); err != nil || first.Replayed {
		t.Fatalf("first start: %v", err)
	}
	if again, err := c.GitPush(t.Context(), "k", in); err != nil || !again.Replayed {
		t.Errorf("the same push: %v, want the first one's handle", err)
	}
	in.Expect = strings.Repeat("1", 40)
	var conflict *client.KeyConflictError
	if _, err := c.GitPush(t.Context(), "k", in); !errors.As(err, &conflict) || conflict.WorkflowID != "git-push/k" {
		t.Errorf("another lease: %v, want a KeyConflictError", err)
	}
}

// G9, C1: what cannot be taken is refused before it is started, and with no word
// of what was given.
func TestGitInputIsCheckedFirst(t *testing.T) {
	t.Parallel()
	c := client.New(nil) // a start would panic
	const leak = "https://user:hunter22@example.invalid/a.git"
	for name, try := range map[string]func() error{
		"clone without address": func() error {
			_, err := c.GitClone(t.Context(), "k", contract.GitCloneInput{Dir: "/c"})
			return err
		},
		"clone with a credential": func() error {
			_, err := c.GitClone(t.Context(), "k", contract.GitCloneInput{URL: leak, Dir: "/c"})
			return err
		},
		"clone into an address": func() error {
			_, err := c.GitClone(t.Context(), "k", contract.GitCloneInput{URL: "/c", Dir: leak})
			return err
		},
		"push with a credential": func() error {
			_, err := c.GitPush(t.Context(), "k", contract.GitPushInput{URL: leak, Dir: "/c"})
			return err
		},
		"push with a bad lease": func() error {
			_, err := c.GitPush(t.Context(), "k", contract.GitPushInput{Dir: "/c", Expect: "hunter22"})
			return err
		},
		"sync with a credential": func() error {
			_, err := c.GitSync(t.Context(), "k", contract.GitSyncInput{URL: leak, Dir: "/c"})
			return err
		},
		"fetch on a host that is none": func() error {
			_, err := c.GitFetch(t.Context(), "k", contract.GitFetchInput{Dir: "/c", Host: "hunter22/x"})
			return err
		},
		"ls-remote with a credential as its profile": func() error {
			_, err := c.GitLsRemote(t.Context(), "k", contract.GitLsRemoteInput{URL: address, Auth: "user:hunter22"})
			return err
		},
	} {
		err := try()
		if !errors.As(err, new(*client.InputError)) || strings.Contains(err.Error(), "hunter22") {
			t.Errorf("%s: %v, want an InputError without what was given", name, err)
		}
	}
}
