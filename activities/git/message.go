package git

import (
	"fmt"
	"net/http"

	"github.com/holdfast-dev/holdfast/policies"
)

// message says in our own words what happened and what to do about it.
func message(f *policies.Fault, v policies.Verdict) string {
	if f.Status >= 400 {
		return statusMessage(f.Status)
	}
	switch f.Code {
	case "ENOTFOUND":
		return "the remote's host name is unknown; correct the URL or check the name server"
	case "EAI_AGAIN":
		return "the remote's host name could not be looked up for now; check the network and the name server"
	case "ECONNREFUSED":
		return "the remote refused the connection; check its host and port, and that its server is running"
	case "UND_ERR_CONNECT_TIMEOUT", "ETIMEDOUT", "EHOSTUNREACH", "ENETUNREACH":
		return "the remote's host could not be reached; check the network and the URL"
	}
	switch v.Reason {
	case policies.ReasonTLS:
		return "the remote's certificate or host key could not be trusted; check the URL, the clock and the trusted authorities"
	case policies.ReasonAuth:
		return authMessage
	case policies.ReasonPermission:
		return permissionMessage
	case policies.ReasonNotFound:
		return notFoundMessage
	case policies.ReasonTimeout:
		return "the connection to the remote was lost before its answer was complete; try again later"
	case policies.ReasonServerError, policies.ReasonRateLimit:
		return "the remote could not serve the request; try again later"
	case policies.ReasonNoSpace:
		return noSpaceMessage
	case policies.ReasonLock:
		return errRefLocked.message
	case policies.ReasonConflict:
		return rejectedMessage
	case policies.ReasonCancelled:
		return "the git program was ended by another process; see whether the machine ran out of memory, and try again"
	}
	if f.ExitCode != nil {
		return "the git program failed for a reason that is not known; run the same operation by hand to see what it says"
	}
	return "the remote did not answer as a Git server does; check the URL, and the repository at its host"
}

const (
	authMessage       = "the remote refused the credentials; name an auth profile that may read it with --auth"
	permissionMessage = "the remote denies access; name an auth profile that may read the repository, or push to it, with --auth"
	noSpaceMessage    = "the disk or the quota of the checkout is full; free some space"
	rejectedMessage   = "the remote did not take the push; fetch, and see what the rules of its host say about the ref"
	notFoundMessage   = "the remote has no such repository, or shows it only to other credentials; correct the URL or name an auth profile with --auth"
)

func statusMessage(status int) string {
	switch {
	case status == http.StatusUnauthorized:
		return authMessage
	case status == http.StatusForbidden:
		return permissionMessage
	case status == http.StatusNotFound:
		return notFoundMessage
	case status == http.StatusTooManyRequests:
		return "the remote answered 429: too many requests; try again later"
	case status >= 500 || status == http.StatusRequestTimeout:
		return fmt.Sprintf("the remote answered %d: it cannot serve the request now; try again later", status)
	}
	return fmt.Sprintf("the remote answered %d; check the URL, and the repository at its host", status)
}
