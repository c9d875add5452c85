package channel

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast/policies"
)

// SetupError is a request that could not be made at all: nothing was sent, and
// repeating it cannot help until somebody mends the configuration or the input.
type SetupError struct {
	Reason  policies.Reason
	Message string
}

func (e *SetupError) Error() string { return e.Message }

// Invalid is a SetupError about the input.
func Invalid(message string) *SetupError {
	return &SetupError{Reason: policies.ReasonFormat, Message: message}
}

// NoToken is a SetupError about an account whose token cannot be resolved. The
// cause is left out, for it may quote the secret's source.
func NoToken(platform, account string) *SetupError {
	return &SetupError{Reason: policies.ReasonAuth, Message: fmt.Sprintf(
		"the token of %[1]s account %[2]q cannot be resolved; see channels.%[1]s.accounts.%[2]s.token", platform, account)}
}

// Pick finds the account that a message names; one that names none means the
// only account there is. The error is a *SetupError that lists what is known.
func Pick[A any](platform string, accounts map[string]A, name string) (string, A, error) {
	account, ok := accounts[name]
	if ok {
		return name, account, nil
	}
	known := slices.Sorted(maps.Keys(accounts))
	list := strings.Join(known, ", ")
	switch {
	case len(known) == 0:
		return "", account, Invalid(fmt.Sprintf("no %[1]s account is configured on this worker; see channels.%[1]s.accounts", platform))
	case name == "" && len(known) == 1:
		return known[0], accounts[known[0]], nil
	case name == "":
		return "", account, Invalid(fmt.Sprintf("several %s accounts are configured; name one with --account (known: %s)", platform, list))
	}
	return "", account, Invalid(fmt.Sprintf(
		"no %[1]s account %[2]q is configured on this worker (known: %[3]s); see channels.%[1]s.accounts", platform, name, list))
}
