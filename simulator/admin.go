package simulator

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"
)

// The control paths of a server. Errors are {"error": "…"} with status 400, or
// 408 where a wait was in vain.
//
//	POST /_sim/script    {"steps": [Step…], "random": Random}  appends the steps; random, where present, replaces the random script
//	GET  /_sim/script    {"steps": [Step…]}                    what is not used up
//	GET  /_sim/ledger    {"requests": […], "effects": […]}     ?op= restricts the requests; ?n= and ?wait=5s wait for n of them
//	POST /_sim/reset     empties script and ledger, opens the gates
//	GET  /_sim/held      {"held": [n…]}                        ?gate=; ?wait=5s waits until a request is held
//	POST /_sim/release   ?gate=
//	POST /_sim/refuse    {"for": "2s"}
const (
	adminPrefix  = "/_sim/"
	AdminScript  = "/_sim/script"
	AdminLedger  = "/_sim/ledger"
	AdminReset   = "/_sim/reset"
	AdminHeld    = "/_sim/held"
	AdminRelease = "/_sim/release"
	AdminRefuse  = "/_sim/refuse"
)

// ScriptRequest is the body of [AdminScript].
type ScriptRequest struct {
	Steps  []Step  `json:"steps,omitempty"`
	Random *Random `json:"random,omitempty"`
}

// LedgerResponse is the answer of [AdminLedger].
type LedgerResponse struct {
	Requests []Request `json:"requests"`
	Effects  []Effect  `json:"effects"`
}

func (s *Server) serveAdmin(w http.ResponseWriter, r *http.Request) {
	var answer any = map[string]bool{"ok": true}
	var err error
	switch r.Method + " " + r.URL.Path {
	case "POST " + AdminScript:
		err = s.adminScript(r.Body)
	case "GET " + AdminScript:
		answer = ScriptRequest{Steps: s.Remaining()}
	case "GET " + AdminLedger:
		answer, err = s.adminLedger(r)
	case "POST " + AdminReset:
		s.Reset()
	case "GET " + AdminHeld:
		answer, err = s.adminHeld(r)
	case "POST " + AdminRelease:
		s.Gate(r.URL.Query().Get("gate")).Release()
	case "POST " + AdminRefuse:
		err = s.adminRefuse(r.Body)
	default:
		http.Error(w, `{"error": "no such control path"}`, http.StatusNotFound)
		return
	}
	status := http.StatusOK
	if err != nil {
		status, answer = http.StatusBadRequest, map[string]string{"error": err.Error()}
		if r.Context().Err() != nil || err == context.DeadlineExceeded {
			status = http.StatusRequestTimeout
		}
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(answer)
}

func (s *Server) adminScript(body io.Reader) error {
	var in ScriptRequest
	if err := strict(body, &in); err != nil {
		return err
	}
	for i, step := range in.Steps {
		if err := step.check(); err != nil {
			return fmt.Errorf("steps[%d]: %w", i, err)
		}
	}
	if in.Random != nil {
		for i, f := range in.Random.Faults {
			if err := f.Step.check(); err != nil {
				return fmt.Errorf("random.faults[%d]: %w", i, err)
			}
		}
		s.Random(in.Random)
	}
	s.Script(in.Steps...)
	return nil
}

func (s *Server) adminLedger(r *http.Request) (any, error) {
	q := r.URL.Query()
	op := q.Get("op")
	if q.Has("n") {
		n, err := strconv.Atoi(q.Get("n"))
		if err != nil {
			return nil, fmt.Errorf("n: %w", err)
		}
		ctx, cancel, err := s.patience(r)
		if err != nil {
			return nil, err
		}
		defer cancel()
		if _, err := s.ledger.WaitRequests(ctx, op, n); err != nil {
			return nil, context.DeadlineExceeded
		}
	}
	out := LedgerResponse{Requests: s.ledger.Requests(op), Effects: s.ledger.Effects("")}
	if out.Requests == nil {
		out.Requests = []Request{}
	}
	if out.Effects == nil {
		out.Effects = []Effect{}
	}
	return out, nil
}

func (s *Server) adminHeld(r *http.Request) (any, error) {
	g := s.Gate(r.URL.Query().Get("gate"))
	if r.URL.Query().Has("wait") {
		ctx, cancel, err := s.patience(r)
		if err != nil {
			return nil, err
		}
		defer cancel()
		if _, err := g.WaitHeld(ctx); err != nil {
			return nil, context.DeadlineExceeded
		}
	}
	held := g.Held()
	if held == nil {
		held = []int{}
	}
	return map[string][]int{"held": held}, nil
}

func (s *Server) adminRefuse(body io.Reader) error {
	var in struct {
		For Duration `json:"for"`
	}
	if err := strict(body, &in); err != nil {
		return err
	}
	if in.For <= 0 {
		return fmt.Errorf(`"for" must be above 0: the control paths are refused too, so only time can end it`)
	}
	return s.RefuseFor(time.Duration(in.For))
}

// patience is a context that ends with the request, the server or ?wait=.
func (s *Server) patience(r *http.Request) (context.Context, context.CancelFunc, error) {
	var d Duration
	if text := r.URL.Query().Get("wait"); text != "" {
		if err := d.UnmarshalText([]byte(text)); err != nil {
			return nil, nil, err
		}
	}
	ctx, cancel := context.WithTimeout(r.Context(), time.Duration(d))
	stop := context.AfterFunc(s.ctx, cancel)
	return ctx, func() { stop(); cancel() }, nil
}

func strict(body io.Reader, into any) error {
	d := json.NewDecoder(body)
	d.DisallowUnknownFields()
	return d.Decode(into)
}
