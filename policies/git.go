package policies

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// gitRule recognises one family of failures of git or go-git by its text.
type gitRule struct {
	name   string
	reason Reason
	text   *regexp.Regexp
}

// gitDenied are the failures that are refused before anything else (G3), in
// the words of git's stderr, of libcurl and OpenSSH beneath it, and of go-git.
var gitDenied = []gitRule{
	{"auth", ReasonAuth, regexp.MustCompile(`(?i)authentication (?:failed|required)|could not read (?:username|password)|invalid username or (?:password|token)|terminal prompts disabled` +
		`|permission denied \((?:[a-z-]+,?)+\)|unable to authenticate|invalid auth method|returned error: 401\b|HTTP (?:code = )?401\b|status code: 401\b`)},
	{"permission", ReasonPermission, regexp.MustCompile(`(?i)permission denied|access denied|authorization failed|not authorized|returned error: 403\b|HTTP (?:code = )?403\b|status code: 403\b`)},
	{"not_found", ReasonNotFound, regexp.MustCompile(`(?i)repository\b[^\n]*\bnot found|could(?:n't| not) find remote ref|remote branch\b[^\n]*\bnot found|not our ref|reference not found|unadvertised object` +
		`|does not appear to be a git repository|returned error: 404\b|HTTP (?:code = )?404\b|status code: 404\b`)},
	{"host_key", ReasonTLS, regexp.MustCompile(`(?i)host key verification failed|remote host identification has changed|no matching host key|knownhosts: key`)},
	{"certificate", ReasonTLS, regexp.MustCompile(`(?i)certificate|\bx509:`)},
	{"no_space", ReasonNoSpace, regexp.MustCompile(`(?i)no space left|quota exceeded|disk quota`)},
	{"bad_object", ReasonFormat, regexp.MustCompile(`(?i)bad object`)},
	{"deadline", ReasonDeadline, regexp.MustCompile(`(?i)context deadline exceeded`)},
	{"cancelled", ReasonCancelled, regexp.MustCompile(`(?i)context canceled`)},
}

// gitTransient are the failures that a second look may not meet (G4).
var gitTransient = []gitRule{
	{"missing_objects", ReasonServerError, regexp.MustCompile(`(?i)remote did not send all (?:necessary )?objects`)},
	{"name_resolution", ReasonTimeout, regexp.MustCompile(`(?i)could(?:n't| not) resolve (?:host|proxy)|temporary (?:failure in name|name[- ]resolution|name failure)|no such host|server misbehaving|name or service not known`)},
	{"connect_failed", ReasonTimeout, regexp.MustCompile(`(?i)failed (?:to )?connect|could(?:n't| not) connect to|network is unreachable|no route to host`)},
	{"connection_reset", ReasonTimeout, regexp.MustCompile(`(?i)connection (?:was |has been )?reset|broken pipe`)},
	{"connection_refused", ReasonTimeout, regexp.MustCompile(`(?i)connection (?:was )?refused`)},
	{"connection_closed", ReasonTimeout, regexp.MustCompile(`(?i)connection (?:was |unexpectedly |to \S+ )?(?:closed|aborted)|closed network connection|server closed idle connection`)},
	{"timed_out", ReasonTimeout, regexp.MustCompile(`(?i)(?:connection|operation) (?:was )?timed out|timeout, server \S+ not responding|i/o timeout|TLS handshake timeout|timeout exceeded|operation too slow`)},
	{"hung_up", ReasonTimeout, regexp.MustCompile(`(?i)remote (?:end )?hung up|unexpected disconnect`)},
	{"early_eof", ReasonTimeout, regexp.MustCompile(`(?i)\b(?:early|unexpected) eof\b|(?:^|: )EOF\s*$|expected '(?:packfile|acknowledgments)'`)},
	{"empty_reply", ReasonTimeout, regexp.MustCompile(`(?i)empty reply`)},
	{"tls_ended", ReasonTimeout, regexp.MustCompile(`(?i)TLS connection was non-properly terminated|(?:TLS|SSL)[^\n]*(?:improperly|abruptly|unexpectedly) (?:terminated|ended|closed)|SSL_ERROR_SYSCALL`)},
	{"http2_stream", ReasonServerError, regexp.MustCompile(`(?i)HTTP/2 stream[^\n]*INTERNAL_ERROR|stream error: stream ID \d+; INTERNAL_ERROR|HTTP/2 stream[^\n]*internal error`)},
	{"curl", ReasonTimeout, regexp.MustCompile(`(?i)RPC failed; curl (?:5|6|7|18|28|35|52|55|56|92)\b`)},
}

var (
	gitLockText       = regexp.MustCompile(`(?i)cannot lock ref|unable to lock ref`)
	gitLockExistsText = regexp.MustCompile(`(?is)(?:cannot|unable to) lock ref.*\.lock['"]?: File exists`)

	gitStatusText = regexp.MustCompile(`(?i)(?:returned error|\bHTTP(?:/\d(?:\.\d)?)?(?: status| code)?(?: =)?|status code)[: ]+([1-5]\d\d)\b`)

	// gitRejectedText is a push that the other side, or the lease, refused.
	gitRejectedText = regexp.MustCompile(`(?i)non-fast-forward|fetch first|stale info|\[(?:remote )?rejected\]|some refs were not updated|remote ref \S+ required to be`)
)

// gitTransientStatus are the HTTP answers of G4.
func gitTransientStatus(status int) bool {
	return slices.Contains([]int{408, 429, 500, 502, 503, 504}, status)
}

// JudgeGit is G3, G4 and G6: denied first, then transient, and permanent
// otherwise. RetrySame says that the operation may run a second time within
// its original timeout (see [GitRetryLeft]); a push never may, and a clone
// only where its owner says so by Operation, having removed its own partial
// checkout.
func JudgeGit(f *Fault) Verdict {
	op := f.Operation
	if op == "" {
		op = gitArgvOperation(f.Argv)
	}
	v := gitFailure(f)
	v.Effect = gitEffect(op, f, v)
	v.RetrySame = v.RetrySame && gitRepeats(op, f)
	if v.RetrySame || v.Reason == ReasonRateLimit {
		v.Floor = gitFloor(f)
	}
	return v
}

// gitRepeats reports whether op is one that is ever repeated (G1, G2, G6).
func gitRepeats(op Operation, f *Fault) bool {
	switch op {
	case OpFetch, OpLsRemote, OpRead:
		return true
	case OpClone:
		return f.Operation == OpClone
	}
	return false
}

// gitFailure judges what went wrong, whatever the operation.
func gitFailure(f *Fault) Verdict {
	denied := func(reason Reason, rule string) Verdict {
		return Verdict{Reason: reason, Permanent: true, Rule: "G3/" + rule}
	}
	switch {
	case f.ExitCode != nil && *f.ExitCode == 0 && f.Termination == "":
		return Verdict{Reason: ReasonUnclassified, Success: true, Rule: "G3/exit_0"}
	case f.Termination == "timeout":
		return denied(ReasonDeadline, "timeout")
	case f.Termination == "output_limit":
		return denied(ReasonUnclassified, "output_limit")
	case f.Termination != "":
		return denied(ReasonCancelled, "killed")
	}
	status := answeredStatus(f, httpStatus)
	switch status {
	case 401, 403, 404, 407:
		return denied(statusReason(status), string(statusReason(status)))
	}
	text := gitText(f)
	for _, rule := range gitDenied {
		if rule.text.MatchString(text) {
			return denied(rule.reason, rule.name)
		}
	}
	switch {
	case !f.Started && anyCause(f, func(f *Fault) bool { return certificateCodes[f.Code] }):
		return denied(ReasonTLS, "certificate")
	case gitLockExistsText.MatchString(text):
		return Verdict{Reason: ReasonLock, RetrySame: true, Rule: "G3/lock_exists"}
	case gitLockText.MatchString(text):
		return denied(ReasonLock, "lock")
	case gitRejectedText.MatchString(text):
		return denied(ReasonConflict, "rejected")
	}
	return gitTransientFailure(f, status, text)
}

// gitTransientFailure is G4, with permanent as the default.
func gitTransientFailure(f *Fault, status int, text string) Verdict {
	transient := func(reason Reason, rule string) Verdict {
		return Verdict{Reason: reason, RetrySame: true, Rule: "G4/" + rule}
	}
	if status == 0 {
		status = gitTextStatus(text)
	}
	if gitTransientStatus(status) {
		return transient(statusReason(status), "http_"+strconv.Itoa(status))
	}
	for _, rule := range gitTransient {
		if rule.text.MatchString(text) {
			return transient(rule.reason, rule.name)
		}
	}
	switch {
	case status >= 300:
		return Verdict{Reason: statusReason(status), Permanent: true, Rule: "G3/http_" + strconv.Itoa(status)}
	case f.NotStarted:
		return transient(ReasonTimeout, "not_started")
	case anyCause(f, func(f *Fault) bool { return transientCodes[f.Code] }):
		return transient(ReasonTimeout, "transport")
	}
	return Verdict{Reason: ReasonUnclassified, Permanent: true, Rule: "G3/default"}
}

// gitTextStatus is the status that a text names: the first transient one, else
// the first. libcurl reports "RPC failed; HTTP 500 curl 22 …" beside others.
func gitTextStatus(text string) (first int) {
	for _, match := range gitStatusText.FindAllStringSubmatch(text, -1) {
		status, err := strconv.Atoi(match[1])
		if err != nil {
			continue
		}
		if gitTransientStatus(status) {
			return status
		}
		if first == 0 {
			first = status
		}
	}
	return first
}

// gitEffect says what the command did to the remote: reads do nothing, and a
// push that was refused before it could be received did nothing either.
func gitEffect(op Operation, f *Fault, v Verdict) Effect {
	switch op {
	case OpFetch, OpLsRemote, OpClone, OpRead:
		return EffectNone
	}
	switch {
	case v.Success:
		return EffectSent
	case f.NotStarted && !f.Started:
		return EffectNotSent
	case f.Termination != "":
		return EffectUnknown
	}
	switch v.Reason {
	case ReasonAuth, ReasonPermission, ReasonNotFound, ReasonTLS:
		return EffectNotSent
	}
	return EffectUnknown
}

// gitFloor is what an HTTP host asked for; a Git read has no default floor.
func gitFloor(f *Fault) (floor Floor) {
	anyCause(f, func(f *Fault) bool {
		if wait, ok := channelRetryAfter(f.Header, f.Now); ok {
			floor = Floor{Wait: wait, Source: FloorRetryAfter}
		}
		return floor.Asked()
	})
	return floor
}

// gitText joins what was said: stderr, the error and the errors beneath it.
func gitText(f *Fault) string {
	var b strings.Builder
	anyCause(f, func(f *Fault) bool {
		for _, s := range append([]string{f.Stderr, f.Message}, f.Details...) {
			if s != "" {
				b.WriteString(gitClip(s))
				b.WriteByte('\n')
			}
		}
		return b.Len() >= MaxBody
	})
	return gitClip(b.String())
}

// gitClip keeps the beginning and the end of a long text: git names the cause
// first and the command's failure last, with progress between them.
func gitClip(s string) string {
	if len(s) <= maxTransportText {
		return s
	}
	return s[:maxTransportText/2] + "\n" + s[len(s)-maxTransportText/2:]
}

// Global options of git that may stand before the verb: with a value as the
// next argument, with one joined by "=", and alone. After any other option the
// verb is not known, and the command is not repeated.
var (
	gitValueOptions  = []string{"-c", "-C", "--git-dir", "--work-tree"}
	gitJoinedOptions = []string{"--git-dir=", "--work-tree=", "--config-env="}
	gitPlainOptions  = []string{"--no-optional-locks", "--no-lazy-fetch", "--no-replace-objects", "--bare"}
)

// gitArgvOperation finds the verb of a git command line, argv[0] included, or
// "" where there is none or it cannot be told.
func gitArgvOperation(argv []string) Operation {
	for i := 1; i < len(argv); i++ {
		arg := argv[i]
		joined := func(option string) bool { return strings.HasPrefix(arg, option) }
		switch {
		case slices.Contains(gitValueOptions, arg):
			i++
		case slices.Contains(gitPlainOptions, arg), slices.ContainsFunc(gitJoinedOptions, joined):
		case strings.HasPrefix(arg, "-"):
			return ""
		default:
			return Operation(arg)
		}
	}
	return ""
}

// DefaultGitTimeout is the time of one managed Git operation, its retry
// included (G1).
const DefaultGitTimeout = 120 * time.Second

// GitRetryDelay is the wait before the second attempt of a Git read (P1.8, G1).
const GitRetryDelay = time.Second

// GitRetryLeft says whether a Git read that failed after spent of its limit
// may run once more (G1), and how long that second attempt may take: what is
// left once the retry delay has been waited out. With no more than the delay
// itself left there is no retry.
func GitRetryLeft(limit, spent time.Duration) (left time.Duration, ok bool) {
	remaining := limit - max(spent, 0)
	if remaining <= GitRetryDelay {
		return 0, false
	}
	return remaining - GitRetryDelay, true
}
