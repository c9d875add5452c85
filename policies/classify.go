package policies

import "strings"

// weight ranks what a judgement rests on, so that a wrapper never outranks a
// concrete cause beneath it (P4).
type weight uint8

const (
	weightNone    weight = iota
	weightWrapper        // "fetch failed"
	weightTransport
	weightGeneric // a server error or a bad request that says no more
	weightText
	weightExact // a status or a typed code
)

// judgement is a reason with the rule that decided.
type judgement struct {
	reason Reason
	rule   string
	weight weight
	phase  Phase
	// surface says that neither a repeat nor another candidate helps, whatever
	// the reason otherwise permits.
	surface bool
	// noRepeat says that the repeat the reason permits would be in vain.
	noRepeat bool
}

func exact(r Reason, rule string) judgement {
	return judgement{reason: r, rule: rule, weight: weightExact}
}

func said(r Reason, rule string) judgement {
	return judgement{reason: r, rule: rule, weight: weightText}
}

func generic(r Reason, rule string) judgement {
	return judgement{reason: r, rule: rule, weight: weightGeneric}
}

var unclassified = judgement{reason: ReasonUnclassified, rule: "P4.13/unclassified"}

const enginePrefix = "holdfast:"

// EngineCode is the Fault.Code by which an adapter reports what only it can
// see, such as a stream that ended before its terminal event: JudgeModel
// returns the reason unchanged. It works for reasons of the model surface; a
// code inside a provider's body is never taken for one.
func EngineCode(r Reason) string { return enginePrefix + string(r) }

// engineReasons are the reasons that EngineCode can carry.
var engineReasons = map[Reason]judgement{
	ReasonStreamInterrupted: exact(ReasonStreamInterrupted, "P4.13/stream_interrupted"),
	ReasonMalformedStream:   exact(ReasonMalformedStream, "P4.13/malformed_stream"),
	ReasonDegenerateOutput:  exact(ReasonDegenerateOutput, "P4.13/degenerate_output"),
	ReasonEmptyResponse:     exact(ReasonEmptyResponse, "P4.13/empty_response"),
	ReasonOutputLimit:       exact(ReasonOutputLimit, "P4.13/output_limit"),
	ReasonWorkerLost:        exact(ReasonWorkerLost, "P4.13/worker_lost"),
	ReasonCancelled:         exact(ReasonCancelled, "P4.13/cancelled"),
	ReasonDeadline:          exact(ReasonDeadline, "P4.13/deadline"),
	ReasonRefusal:           exact(ReasonRefusal, "P4.9/refusal"),
	ReasonFormat:            exact(ReasonFormat, "P4.5/format"),
	ReasonTimeout:           exact(ReasonTimeout, "P4.11/transport"),
	ReasonTLS:               exact(ReasonTLS, "P4.11/tls_certificate"),
}

// JudgeModel classifies a failed model request by P4: the reason, what it
// permits (P4.13), the floor (P3) and the id of the rule that decided. It is
// total and deterministic; what it cannot tell is ReasonUnclassified. The
// effect is always EffectNone, for a repeat of a model call has nothing to
// double.
func JudgeModel(f *Fault) Verdict {
	if statusOnly(f) {
		return verdictOf(byStatus(f), ModelFloor(f))
	}
	left := maxCauses
	j, floor := judgeTree(f, 0, &left)
	return verdictOf(j, floor)
}

// statusOnly reports whether a fault says nothing but its status and headers.
func statusOnly(f *Fault) bool {
	return len(f.Body) == 0 && f.Message == "" && f.Code == "" && f.Type == "" &&
		len(f.Details) == 0 && len(f.Causes) == 0 && len(f.Header["X-Amzn-Errortype"]) == 0
}

// judgeTree judges a fault and what lies beneath it. A cause without a status
// of its own is read with that of its wrapper.
func judgeTree(f *Fault, status int, left *int) (judgement, Floor) {
	if r, ok := strings.CutPrefix(f.Code, enginePrefix); ok {
		if j, ok := engineReasons[Reason(r)]; ok {
			j.phase = f.Phase
			return j, ModelFloor(f)
		}
	}
	e := gather(f)
	if e.status == 0 {
		e.status = status
	}
	best, floor := e.judge(f), e.floor()
	for i := range f.Causes {
		if *left == 0 {
			break
		}
		*left--
		j, asked := judgeTree(&f.Causes[i], e.status, left)
		floor = stronger(floor, asked)
		if j.weight > weightNone && j.weight >= best.weight {
			best = j
		}
	}
	return best, floor
}

func verdictOf(j judgement, floor Floor) Verdict {
	d := DispositionOf(j.reason)
	v := Verdict{
		Reason:    j.reason,
		RetrySame: d.retriesSame() && !floor.Infinite && !j.noRepeat,
		Failover:  d.failsOver(),
		Permanent: d.Permanent,
		Effect:    EffectNone,
		Floor:     floor,
		Rule:      j.rule,
		Phase:     j.phase,
	}
	if j.surface {
		v.RetrySame, v.Failover, v.Permanent = false, false, true
	}
	return v
}

// byStatus judges a fault that has nothing but a status (P4.1–P4.8), or not
// even that.
func byStatus(f *Fault) judgement {
	switch s := f.Status; {
	case s == 400, s == 422, s > 400 && s < 500 && !hasOwnRule(s):
		return judgement{reason: ReasonUnclassified, rule: "P4.5/no_body"}
	case s >= 400 && s < 600:
		return statusRule(s, f.Provider)
	case s >= 300:
		return unclassified
	case f.NotStarted:
		return transport(PhaseConnect)
	case f.Phase != "":
		return transport(f.Phase)
	}
	return unclassified
}

// hasOwnRule reports whether P4 names a 4xx status.
func hasOwnRule(s int) bool {
	switch s {
	case 401, 402, 403, 404, 407, 408, 409, 410, 413, 429, 499:
		return true
	}
	return false
}

// statusRule is the meaning of a status on which the body sheds no light.
func statusRule(s int, provider string) judgement {
	switch s {
	case 401:
		return exact(ReasonAuth, "P4.4/auth")
	case 402:
		return exact(ReasonBilling, "P4.4/billing")
	case 403:
		return exact(ReasonPermission, "P4.4/permission")
	case 404:
		return exact(ReasonModelNotFound, "P4.8/model_not_found")
	case 407:
		return judgement{reason: ReasonAuth, rule: "P4.4/proxy_auth", weight: weightExact, surface: true}
	case 408, 499, 504, 522, 524:
		return exact(ReasonTimeout, "P4.3/timeout")
	case 409:
		if retries409(provider) {
			return exact(ReasonServerError, "P4.5/conflict")
		}
		return exact(ReasonFormat, "P4.5/conflict_format")
	case 410:
		return exact(ReasonTimeout, "P4.5/gone")
	case 413:
		return exact(ReasonContextOverflow, "P4.8/context_overflow")
	case 429:
		return exact(ReasonRateLimit, "P4.1/rate_limit")
	case 529:
		return exact(ReasonOverloaded, "P4.2/overloaded")
	}
	if s >= 500 {
		return generic(ReasonServerError, "P4.3/server_error")
	}
	return generic(ReasonFormat, "P4.5/format")
}

func transport(p Phase) judgement {
	j := judgement{reason: ReasonTimeout, rule: "P4.11/transport", weight: weightTransport, phase: p}
	switch p {
	case PhaseConnect:
		j.rule = "P4.11/connect"
	case PhaseHeaders:
		j.rule = "P4.11/headers"
	case PhaseFirstEvent:
		j.rule = "P4.11/first_event"
	case PhaseBody:
		j.rule = "P4.11/body"
	}
	return j
}

// judge applies the precedence of P4 to the evidence of one fault.
func (e *evidence) judge(f *Fault) judgement {
	s := e.status
	if (s == 500 || s == 502 || s == 503) && e.nestedST >= 400 && e.nestedST < 500 {
		// A gateway wraps the answer of the provider beneath it.
		s, e.status = e.nestedST, e.nestedST
	}
	if !e.body {
		bare := *f
		bare.Status = s
		return byStatus(&bare)
	}
	switch {
	case s == 0:
		return e.byContent(f)
	case s == 429:
		return e.limited("P4.1/rate_limit")
	case s == 401 || s == 403:
		return e.denied(f)
	case s == 402:
		return e.unpaid()
	case s == 404:
		return e.notFound(f)
	case s == 410:
		return e.gone(f)
	case s == 413:
		return e.tooLarge()
	case s == 407, s == 408, s == 499, s == 529:
		return statusRule(s, f.Provider)
	case s >= 500 && s < 600:
		return e.broken(f)
	case s >= 400 && s < 500:
		return e.rejected(f)
	}
	return unclassified
}
