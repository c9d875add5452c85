package model_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/activities/model"
	"github.com/holdfast-dev/holdfast/internal/transcript"
)

// P3, P4: an error answer keeps status, headers and floor, whole or not, and
// shows its guidance but neither headers nor body.
func TestErrorAnswers(t *testing.T) {
	t.Parallel()
	const said = `{"error":{"message":"Guidance, not for %s.","type":"t","code":null,"internal":"hotel-17"}}`
	for name, tc := range map[string]struct {
		status         int
		header, body   string
		declared       int // Content-Length beyond the body
		reason, floor  string
		message, avoid string
	}{
		"401":                   {401, "", said, 0, "auth", "", "refused the credentials (401); check the auth profile: Guidance", "hotel"},
		"403":                   {403, "", said, 0, "permission", "", "(403): Guidance", "hotel"},
		"404":                   {404, "", said, 0, "model_not_found", "", "answered 404: Guidance", "hotel"},
		"429":                   {429, "Retry-After: 2.25\r\n", said, 0, "rate_limit", "2250", "answered 429: Guidance", "Retry"},
		"429 in milliseconds":   {429, "Retry-After-Ms: 1500\r\n", said, 0, "rate_limit", "1500", "Guidance", ""},
		"429 by its text":       {429, "", `{"error":{"message":"Please try again in 6m0s."}}`, 0, "rate_limit", "360000", "6m0s", ""},
		"429 by RetryInfo":      {429, "", `{"error":{"details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"9s"}]}}`, 0, "rate_limit", "9000", "answered 429", "googleapis"},
		"429 truncated":         {429, "Retry-After: 4\r\n", said, 100, "rate_limit", "4000", "answered 429", "hotel"},
		"500":                   {500, "", said, 0, "server_error", "", "answered 500: Guidance", "hotel"},
		"500 truncated":         {500, "Retry-After: 4\r\n", `{"error":{"mess`, 100, "server_error", "4000", "answered 500", "mess"},
		"503":                   {503, "Retry-After: 4\r\n", said, 0, "server_error", "4000", "answered 503: Guidance", "hotel"},
		"503 without a body":    {503, "", "", 0, "server_error", "", "answered 503", ""},
		"503 in words":          {503, "", `{"error":{"message":"service unavailable"}}`, 0, "overloaded", "", "service unavailable", ""},
		"529":                   {529, "Retry-After: 4\r\n", said, 0, "overloaded", "4000", "answered 529", "hotel"},
		"page of a proxy":       {502, "", "<html><h1>hotel-17</h1></html>", 0, "server_error", "", "answered 502", "hotel"},
		"page with a throttle":  {429, "Retry-After: 4\r\n", "<html>hotel-17</html>", 0, "rate_limit", "4000", "answered 429", "hotel"},
		"400 without a body":    {400, "", "", 0, "unclassified", "", "answered 400", ""},
		"400":                   {400, "", said, 0, "format", "", "answered 400: Guidance", "hotel"},
		"error as a text":       {400, "", `{"error":"Guidance alone"}`, 0, "format", "", "Guidance alone", "{"},
		"long guidance":         {400, "", `{"message":"` + strings.Repeat("long ", 500) + `"}`, 0, "format", "", "long long", strings.Repeat("long ", 70)},
		"redirect":              {302, "Location: http://127.0.0.1:1/hotel\r\n", "", 0, "unclassified", "", "answered 302, a redirect, which is not followed; set base_url of providers.acme", "hotel"},
		"not modified, no body": {304, "", "", 0, "unclassified", "", "answered 304", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			body := strings.ReplaceAll(tc.body, "%s", secret)
			s := say(t, fmt.Sprintf("HTTP/1.1 %d Some Words\r\nContent-Length: %d\r\nConnection: close\r\n%s\r\n%s",
				tc.status, len(body)+tc.declared, tc.header, body))
			f := *attempt(t, activities(t, provider(s)), request()).failure
			floor := ""
			if f.FloorMS != nil {
				floor = fmt.Sprint(*f.FloorMS)
			}
			if f.Reason != tc.reason || f.Status != tc.status || floor != tc.floor {
				t.Errorf("reason %q (%s), status %d, floor %q, want %q, %d, %q", f.Reason, f.Rule, f.Status, floor, tc.reason, tc.status, tc.floor)
			}
			if !strings.Contains(f.Message, tc.message) || tc.avoid != "" && strings.Contains(f.Message, tc.avoid) || strings.Contains(f.Message, "Some Words") {
				t.Errorf("message %q, want %q in it and not %q", f.Message, tc.message, tc.avoid)
			}
			if s.requests.Load() != 1 {
				t.Errorf("%d requests, want 1", s.requests.Load())
			}
		})
	}
}

// P4.10: the details of an error inside a stream count as those of an error
// answer do, and the key in its words is scrubbed.
func TestErrorInsideStream(t *testing.T) {
	t.Parallel()
	frame := `data: {"error":{"code":429,"message":"Slow down, ` + secret + `","details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"9s"}]}}` + "\n\n"
	for name, tc := range map[string]struct{ text, phase string }{
		"after text": {streamHead + created + deltaOne + frame, "body"},
		"at once":    {streamHead + frame, "first_event"},
		"document":   {jsonHead + strings.TrimPrefix(frame, "data: "), "body"},
	} {
		f := attempt(t, activities(t, provider(say(t, tc.text))), request()).fails(t, "rate_limit", tc.phase)
		if f.FloorMS == nil || *f.FloorMS != 9000 || !strings.Contains(f.Message, "Slow down") || strings.Contains(f.Message, "RetryInfo") {
			t.Errorf("%s: floor %v, message %q, want 9 s and the guidance", name, f.FloorMS, f.Message)
		}
	}
}

// P4.11: the phase of a transport fault.
func TestTransportFaults(t *testing.T) {
	t.Parallel()
	closed := serve(t, func(s *server, c net.Conn) { s.read(bufio.NewReader(c)) })
	attempt(t, activities(t, provider(closed)), request()).fails(t, "timeout", "headers")

	p := provider(closed)
	p.Transport.Dial = func(ctx context.Context, _, _ string) (net.Conn, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	// M2.2: the limit of connecting is its own, however short that of the headers.
	p.Limits = model.Limits{Connect: 300 * time.Millisecond, Headers: 20 * time.Millisecond}
	attempt(t, activities(t, p), request()).fails(t, "timeout", "connect")
}

// P4.12: an answer without text is none, unless it is the silence token itself.
func TestSilence(t *testing.T) {
	t.Parallel()
	say200 := func(text string) *server {
		return say(t, streamHead+created+strings.Replace(completed, "one two", text, 1))
	}
	for _, tc := range []struct{ text, token, reason string }{
		{"", "", "empty_response"},
		{" \\n", "", "empty_response"},
		{"", "(silence)", "empty_response"},
		{"(silence)", "(silence)", ""},
		{"\\u200b", "\u200b", ""},
		{" ", " ", ""},
		{"  ", " ", "empty_response"},
		{"words", "(silence)", ""},
	} {
		req := request()
		req.SilenceToken = tc.token
		r := attempt(t, activities(t, provider(say200(tc.text))), req)
		if tc.reason == "" && r.err != nil {
			t.Errorf("%q with token %q: %v", tc.text, tc.token, r.err)
		}
		if tc.reason != "" {
			r.fails(t, tc.reason, "body")
			// M2.10: the tokens were paid for.
			if r.Usage.OutputTokens != 2 || r.ResponseID != "resp_1" {
				t.Errorf("%q: usage %+v, id %q were not kept", tc.text, r.Usage, r.ResponseID)
			}
		}
	}
}

// M2.10: usage, id, model and finish of a failed response are kept.
func TestFailedKeepsUsage(t *testing.T) {
	t.Parallel()
	end := strings.Replace(completed, `"status":"completed"`, `"status":"failed","error":{"code":"server_error","message":"Sorry."}`, 1)
	r := attempt(t, activities(t, provider(say(t, streamHead+created+deltaOne+strings.Replace(end, "response.completed", "response.failed", 1)))), request())
	r.fails(t, "server_error", "body")
	if r.Usage.InputTokens != 3 || r.ResponseID != "resp_1" || r.Served != "gpt-x-1" || r.Finish != "failed" || r.Text != "one two" {
		t.Errorf("kept %+v", r.Answer)
	}
}

// I3: what the worker cannot do is said before any request, with the word of the
// configuration that would change it.
func TestNothingToAsk(t *testing.T) {
	t.Parallel()
	s := say(t, streamHead+answered)
	for name, tc := range map[string]struct {
		set     func(*transcript.Request)
		secret  error
		dialect model.Dialect
		reason  string
		message string
	}{
		"no provider": {func(r *transcript.Request) { r.Candidate.Provider = "other" }, nil, nil, "model_not_found", "see providers"},
		"no secret":   {nil, errors.New("vault says " + secret), nil, "auth", "auth_profiles.key"},
		"no dialect":  {nil, nil, model.Unspoken{Dialect: "telepathy"}, "model_not_found", "does not speak the dialect \"telepathy\""},
	} {
		p := provider(s)
		if tc.dialect != nil {
			p.Dialect = tc.dialect
		}
		a := activities(t, p, func(c *model.Config) {
			c.Secret = func(context.Context, string) (string, error) { return secret, tc.secret }
		})
		req := request()
		if tc.set != nil {
			tc.set(&req)
		}
		r := attempt(t, a, req)
		if r.failure == nil || r.failure.Reason != tc.reason || !r.failure.Failover || !strings.Contains(r.failure.Message, tc.message) || strings.Contains(r.failure.Message, "reported") {
			t.Errorf("%s: %+v, want %s with %q", name, r.failure, tc.reason, tc.message)
		}
	}
	if s.requests.Load() != 0 {
		t.Errorf("%d requests, want none", s.requests.Load())
	}
	if _, err := model.New(model.Config{Providers: map[string]model.Provider{"x": {BaseURL: "no url"}}}); err == nil {
		t.Error("a base URL that is none was taken")
	}
}

// M3.13: a cancellation while the secret is being resolved is a cancellation.
func TestCancelledWhileResolving(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	a := activities(t, provider(say(t, "")), func(c *model.Config) {
		c.Secret = func(ctx context.Context, _ string) (string, error) {
			cancel()
			<-ctx.Done()
			return "", ctx.Err()
		}
	})
	attemptIn(t, ctx, a, request()).fails(t, "cancelled", "")
}

// P7, M1: nothing is read from the environment, and the configured base URL,
// key and headers are what is sent.
func TestEnvironmentIsNotRead(t *testing.T) {
	for _, name := range []string{
		"OPENAI_BASE_URL", "OPENAI_API_KEY", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID", "OPENAI_ADMIN_KEY",
		"HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "ALL_PROXY",
	} {
		t.Setenv(name, "http://127.0.0.1:1/garbage")
	}
	s := say(t, streamHead+answered)
	p := provider(s)
	p.Header = map[string]string{"X-Extra": "yes"}
	p.BaseURL = "http://model.example/v1" // proxies are not for the loopback
	p.Transport.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		if address != "model.example:80" {
			t.Errorf("dialled %s, want the host itself", address)
		}
		return new(net.Dialer).DialContext(ctx, network, s.addr)
	}
	if r := attemptIn(t, t.Context(), activities(t, p), request()); r.err != nil {
		t.Fatal(r.err)
	}
	h := s.last.Header
	if h.Get("Authorization") != "Bearer "+secret || h.Get("X-Extra") != "yes" || s.last.URL.Path != "/v1/responses" || h.Get("Accept") != "text/event-stream" {
		t.Errorf("%s %v", s.last.URL, h)
	}
	if strings.Contains(fmt.Sprint(h), "garbage") || h.Get("Idempotency-Key") != "" {
		t.Errorf("the environment speaks: %v", h)
	}
}
