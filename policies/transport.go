package policies

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

const (
	// maxCauseDepth bounds how deep causes are followed.
	maxCauseDepth = 16
	// maxTransportText bounds how many bytes of one text are looked at.
	maxTransportText = 8 << 10
)

// codeSet is a set of transport codes, in the words of Node.js and undici.
type codeSet map[string]bool

func codes(words string) codeSet {
	set := codeSet{}
	for _, word := range strings.Fields(words) {
		set[word] = true
	}
	return set
}

// Codes that prove, for errors of foreign clients, that no connection was had
// (C2). The surfaces differ in what they trust: a connect timeout of undici is
// proof on Discord and in deliveries, none on Telegram.
var (
	discordNotStarted  = codes("EAI_AGAIN ECONNREFUSED ENETUNREACH ENOTFOUND UND_ERR_CONNECT_TIMEOUT")
	telegramNotStarted = codes("EAI_AGAIN ECONNREFUSED ENETUNREACH ENOTFOUND ENETDOWN EHOSTUNREACH")
	// deliveryNotStarted needs the syscall beside it (D12).
	deliveryNotStarted = telegramNotStarted
	deliveryProof      = codes("UND_ERR_CONNECT_TIMEOUT UND_ERR_DNS_RESOLVE_FAILED")
)

// transientCodes are faults of the network that a repeat may not meet again.
var transientCodes = codes(`
	EAI_AGAIN ECONNABORTED ECONNREFUSED ECONNRESET EHOSTDOWN EHOSTUNREACH ENETDOWN ENETRESET ENETUNREACH ENOTCONN
	ENOTFOUND EPIPE EPROTO ESOCKETTIMEDOUT ETIMEDOUT ABORT_ERR ERR_NETWORK ERR_HTTP2_GOAWAY_SESSION
	ERR_HTTP2_SESSION_ERROR ERR_HTTP2_STREAM_ERROR HPE_INVALID_CONSTANT UND_ERR_ABORTED UND_ERR_BODY_TIMEOUT
	UND_ERR_CONNECT_TIMEOUT UND_ERR_DNS_RESOLVE_FAILED UND_ERR_HEADERS_TIMEOUT UND_ERR_SOCKET
	AbortError TimeoutError ConnectTimeoutError HeadersTimeoutError BodyTimeoutError`)

// certificateCodes are faults of the other side's certificate (P4.11). They
// are met before a request can leave, and repeating does not cure them.
var certificateCodes = codes(`
	CERT_HAS_EXPIRED CERT_NOT_YET_VALID CERT_REJECTED CERT_REVOKED CERT_SIGNATURE_FAILURE CERT_UNTRUSTED
	CERT_CHAIN_TOO_LONG INVALID_CA INVALID_PURPOSE DEPTH_ZERO_SELF_SIGNED_CERT SELF_SIGNED_CERT_IN_CHAIN
	ERR_SSL_WRONG_VERSION_NUMBER ERR_TLS_CERT_ALTNAME_INVALID HOSTNAME_MISMATCH UNABLE_TO_GET_ISSUER_CERT
	UNABLE_TO_GET_ISSUER_CERT_LOCALLY UNABLE_TO_VERIFY_LEAF_SIGNATURE`)

var (
	certificateText = regexp.MustCompile(`(?i)\bx509:|self[- ]signed certificate|certificate (?:has expired|verify failed|problem|signed by unknown)|unable to verify the first certificate`)

	transientText = regexp.MustCompile(`(?i)bad gateway|fetch failed|network ?error|network request|network is unreachable|no route to host` +
		`|service unavailable|socket hang up|temporarily unavailable|timed out|time-?out|client network socket disconnected` +
		`|connection (?:was )?(?:closed|reset|refused|aborted)|getaddrinfo|no such host|undici|broken pipe|unexpected eof` +
		`|server closed idle connection|context deadline exceeded`)

	rateLimitText   = regexp.MustCompile(`(?i)\b429\b|too many requests`)
	misdirectedText = regexp.MustCompile(`(?i)(?:^|[^0-9a-z])421[^0-9a-z].*misdirected|\bmisdirected request\b`)
)

// notStartedBy reports whether f proves that its request never left, by
// codes alone, for errors that come from elsewhere. Every leaf of an aggregate
// must prove it (D12).
func notStartedBy(f *Fault, proves func(*Fault) bool) bool {
	return proof(f, proves, maxCauseDepth) == proofYes
}

type proofState int

const (
	proofSilent proofState = iota // says nothing either way
	proofYes
	proofNo
)

// proof asks the leaves first: a wrapper never outranks a cause beneath it,
// but its own code speaks where the causes are silent.
func proof(f *Fault, proves func(*Fault) bool, depth int) proofState {
	own := ownProof(f, proves)
	if len(f.Causes) == 0 {
		return own
	}
	if depth == 0 || f.Started || f.Status != 0 {
		return proofNo
	}
	beneath := proofYes
	for i := range f.Causes {
		switch proof(&f.Causes[i], proves, depth-1) {
		case proofNo:
			return proofNo
		case proofSilent:
			beneath = proofSilent
		}
	}
	if beneath == proofYes && (own != proofNo || !transientCodes[f.Code] || f.Code == "ERR_NETWORK") {
		return proofYes
	}
	if beneath == proofSilent {
		return own
	}
	return proofNo
}

func ownProof(f *Fault, proves func(*Fault) bool) proofState {
	switch {
	case f.Started:
		return proofNo
	case f.NotStarted, proves(f):
		return proofYes
	case f.Code != "", f.Status != 0:
		return proofNo
	}
	return proofSilent
}

// anyCause reports whether is holds for f or for an error beneath it.
func anyCause(f *Fault, is func(*Fault) bool) bool {
	return anyCauseWithin(f, is, maxCauseDepth)
}

func anyCauseWithin(f *Fault, is func(*Fault) bool, depth int) bool {
	if is(f) {
		return true
	}
	if depth == 0 {
		return false
	}
	for i := range f.Causes {
		if anyCauseWithin(&f.Causes[i], is, depth-1) {
			return true
		}
	}
	return false
}

// faultText reports whether one of the texts of f or of an error beneath it
// matches.
func faultText(f *Fault, text *regexp.Regexp) bool {
	return anyCause(f, func(f *Fault) bool {
		return matchesText(text, f.Message) ||
			slices.ContainsFunc(f.Details, func(s string) bool { return matchesText(text, s) })
	})
}

// matchesText reports whether a pattern matches the part of s that is looked
// at.
func matchesText(text *regexp.Regexp, s string) bool {
	return text.MatchString(s[:min(len(s), maxTransportText)])
}

// transientTransport reports whether f is a fault of the network that a
// repeat may not meet again. What our own transport started and lost is one,
// whatever it is called.
func transientTransport(f *Fault) bool {
	if f.NotStarted || f.Started {
		return true
	}
	named := anyCause(f, func(f *Fault) bool { return transientCodes[f.Code] || transientCodes[f.Type] })
	return named || faultText(f, transientText)
}

func certificateFault(f *Fault) bool {
	if f.Started {
		return false
	}
	return anyCause(f, func(f *Fault) bool { return certificateCodes[f.Code] }) || faultText(f, certificateText)
}

// answeredStatus is the status of the answer, or of one beneath it where a
// wrapper has none; own reads the status of one error.
func answeredStatus(f *Fault, own func(*Fault) int) (status int) {
	anyCause(f, func(f *Fault) bool {
		status = own(f)
		return status != 0
	})
	return status
}

func httpStatus(f *Fault) int { return plausibleStatus(f.Status) }

// ParseStatus reads an HTTP status as foreign clients write it: whole digits,
// a plus sign allowed ("503", "+503"), nothing else ("500.5", "421abc").
func ParseStatus(s string) (int, bool) {
	digits := strings.TrimPrefix(s, "+")
	if !allDigits(digits) || len(digits) != 3 {
		return 0, false
	}
	status, err := strconv.Atoi(digits)
	return status, err == nil && plausibleStatus(status) != 0
}

func plausibleStatus(status int) int {
	if status < 100 || status > 999 {
		return 0
	}
	return status
}

// statusReason is the reason of an HTTP status on the channel, Git and
// delivery surfaces (P4.14).
func statusReason(status int) Reason {
	switch status {
	case 401, 407:
		return ReasonAuth
	case 403, 451:
		return ReasonPermission
	case 404, 410:
		return ReasonNotFound
	case 408, 499, 504, 522, 524:
		return ReasonTimeout
	case 409:
		return ReasonConflict
	case 421:
		return ReasonMisdirected
	case 429:
		return ReasonRateLimit
	}
	switch {
	case status >= 500:
		return ReasonServerError
	case status >= 400:
		return ReasonFormat
	}
	return ReasonUnclassified
}
