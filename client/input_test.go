package client

import (
	"errors"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/contract"
)

// G9: credentials in an address are refused before anything is started, and not
// repeated in the error.
func TestGitAddressesAreCheckedFirst(t *testing.T) {
	t.Parallel()
	c := New(nil) // a start would panic
	for _, address := range []string{"https://user:hunter22@example.invalid/a.git", "ext::sh -c id", "-u", ""} {
		_, err := c.GitLsRemote(t.Context(), "k", contract.GitLsRemoteInput{URL: address})
		if !errors.As(err, new(*InputError)) || strings.Contains(err.Error(), "hunter22") {
			t.Errorf("ls-remote of %q: %v, want an InputError without the password", address, err)
		}
		if address == "" {
			continue // the checkout's origin
		}
		if _, err := c.GitFetch(t.Context(), "k", contract.GitFetchInput{Dir: "/d", URL: address}); !errors.As(err, new(*InputError)) {
			t.Errorf("fetch from %q: %v, want an InputError", address, err)
		}
	}
}

// C1: what cannot be taken is refused before it is started, so that the key is
// still free for what was meant.
func TestInputIsCheckedFirst(t *testing.T) {
	t.Parallel()
	c := New(nil)
	good := contract.SendInput{Channel: "telegram", To: "1", Text: "hello"}
	for name, try := range map[string]func() error{
		"key": func() error { _, err := c.Send(t.Context(), "straße", good); return err },
		"ttl": func() error {
			in := good
			in.TTL = "5"
			_, err := c.Send(t.Context(), "k", in)
			return err
		},
		"size": func() error {
			in := good
			in.Text = strings.Repeat("<", maxInput/6)
			_, err := c.Send(t.Context(), "k", in)
			return err
		},
		"prompt": func() error { _, err := c.Run(t.Context(), "k", contract.RunInput{}); return err },
	} {
		if err := try(); !errors.As(err, new(*InputError)) {
			t.Errorf("%s: %v, want an InputError", name, err)
		}
	}
}
