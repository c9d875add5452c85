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
