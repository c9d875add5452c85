package discord

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/simulator"
)

// The operations that steps and ledger name. OpOther is a path the simulator does
// not know; it answers 404.
const (
	OpCreateMessage  = "create_message"
	OpListMessages   = "list_messages"
	OpGetMessage     = "get_message"
	OpEditMessage    = "edit_message"
	OpDeleteMessage  = "delete_message"
	OpAddReaction    = "add_reaction"
	OpRemoveReaction = "remove_reaction"
	OpPin            = "pin_message"
	OpUnpin          = "unpin_message"
	OpTyping         = "typing"
	OpCurrentUser    = "current_user"
	OpOther          = "other"
)

// The kinds of effect in the ledger. The content of a message is its text.
const (
	EffectMessage  = "message"
	EffectEdit     = "edit"
	EffectDelete   = "delete"
	EffectReaction = "reaction"
	EffectPin      = "pin"
	EffectTyping   = "typing"
)

// Discord's error codes that the simulator answers with.
const (
	CodeUnknownChannel = 10003
	CodeUnknownMessage = 10008
	CodeMissingAccess  = 50001
	CodeCannotEdit     = 50005
	CodeEmptyMessage   = 50006
	CodeInvalidForm    = 50035
)

// Options are the settings of a [Server].
type Options struct {
	// Addr is where to listen. Defaults to a free port of 127.0.0.1.
	Addr string
	// Tokens maps the bot tokens that are accepted to the ids of their users. If
	// it is empty, any token is accepted as that of DefaultUserID.
	Tokens map[string]string
	// NonceWindow is how long a nonce is remembered. Defaults to 5 minutes.
	NonceWindow time.Duration
	// Limit, where above 0, is how many requests a channel takes in LimitWindow
	// (default 5 s); more get a 429 by the simulator itself.
	Limit       int
	LimitWindow time.Duration
	// Now is the clock. Defaults to time.Now.
	Now func() time.Time
}

// DefaultUserID is the bot's user where no tokens are configured.
const DefaultUserID = "80351110224678912"

// Server is a Discord on a loopback port.
type Server struct {
	*simulator.Server
	platform *platform
}

// Start listens and serves. It fails if the address cannot be listened on.
func Start(o Options) (*Server, error) {
	if o.NonceWindow == 0 {
		o.NonceWindow = 5 * time.Minute
	}
	if o.LimitWindow == 0 {
		o.LimitWindow = 5 * time.Second
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	p := &platform{
		options: o, channels: map[string]*channel{}, windows: map[string]*window{},
		nonces: map[nonceKey]nonceUse{}, missing: map[string]bool{}, forbidden: map[string]bool{}, hidden: map[string]bool{},
	}
	s, err := simulator.Start(p, simulator.Options{Addr: o.Addr, Now: o.Now})
	if err != nil {
		return nil, err
	}
	return &Server{Server: s, platform: p}, nil
}

// APIURL is the base of the API, as a bot is configured with it.
func (s *Server) APIURL() string { return s.URL() + "/api/v10" }

// Missing makes channels unknown (404, code 10003).
func (s *Server) Missing(channels ...string) { s.platform.mark(s.platform.missing, channels) }

// Forbidden makes channels inaccessible (403, code 50001).
func (s *Server) Forbidden(channels ...string) { s.platform.mark(s.platform.forbidden, channels) }

// HideHistory makes lists of channels empty, as a missing permission does.
func (s *Server) HideHistory(channels ...string) { s.platform.mark(s.platform.hidden, channels) }

// Post puts a message of any author into a channel, as if it came from another
// client, and returns its id. It is no effect in the ledger.
func (s *Server) Post(channelID, authorID, content string) string {
	p := s.platform
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.add(channelID, Message{Author: User{ID: authorID}, Content: content}).ID
}

// Messages returns the messages of a channel, oldest first.
func (s *Server) Messages(channelID string) []Message {
	p := s.platform
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []Message
	for _, m := range p.channel(channelID).messages {
		out = append(out, *m)
	}
	return out
}

// RateLimited is a 429 with the wait in seconds, for the bucket or for the whole
// account.
func RateLimited(retryAfter float64, global bool) simulator.Step {
	step := simulator.JSON(http.StatusTooManyRequests, rateLimit{"You are being rate limited.", retryAfter, global, 0})
	for name, values := range rateLimitHeader(retryAfter, global) {
		step = step.WithHeader(name, values[0])
	}
	return step.As(fmt.Sprintf("429, retry after %g s, global %v", retryAfter, global))
}

// Fail is an error answer in Discord's form, without an effect.
func Fail(status, code int, message string) simulator.Step {
	return simulator.JSON(status, apiError{Message: message, Code: code})
}

// CloudflareLimited is the 429 page of the network in front of the API.
func CloudflareLimited(seconds int) simulator.Step {
	return simulator.HTML(http.StatusTooManyRequests, "<html><head><title>Error 1015</title></head><body>You are being rate limited</body></html>").
		WithHeader("Retry-After", fmt.Sprint(seconds))
}

// Faults is a mix of faults for random scripts in which about rate of the
// requests fail, each kind as often as the others.
func Faults(rate float64) []simulator.RandomFault {
	steps := []simulator.Step{
		RateLimited(0.05, false), simulator.HTML(502, "<html>502 Bad Gateway</html>"),
		simulator.EffectThenReset(), simulator.EffectThenClose(), simulator.Reset(),
		Fail(500, 0, "500: Internal Server Error").WithEffect(simulator.EffectOnce), simulator.CutBytes(20),
	}
	var faults []simulator.RandomFault
	for _, step := range steps {
		faults = append(faults, simulator.RandomFault{Rate: rate / float64(len(steps)), Step: step})
	}
	return faults
}

type platform struct {
	options Options

	mu        sync.Mutex
	channels  map[string]*channel
	nonces    map[nonceKey]nonceUse
	windows   map[string]*window
	missing   map[string]bool
	forbidden map[string]bool
	hidden    map[string]bool
	last      uint64
}

func (p *platform) mark(set map[string]bool, ids []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, id := range ids {
		set[id] = true
	}
}

// Identify names a request; the key is the channel.
func (p *platform) Identify(r *http.Request, _ []byte) simulator.Identity {
	path := r.URL.Path
	if r.URL.RawQuery != "" {
		path += "?" + r.URL.RawQuery
	}
	id := simulator.Identity{Op: OpOther, Path: path, Credential: r.Header.Get("Authorization")}
	if rt, ok := routeOf(r); ok {
		id.Op, id.Key = rt.op, rt.channel
	}
	return id
}

// route is a path of the API, taken apart.
type route struct {
	op      string
	channel string
	message string
	emoji   string
}

func routeOf(r *http.Request) (route, bool) {
	segments := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	if len(segments) < 2 || segments[0] != "api" {
		return route{}, false
	}
	segments = segments[1:]
	if strings.HasPrefix(segments[0], "v") {
		segments = segments[1:]
	}
	path := strings.Join(segments, "/")
	if r.Method == http.MethodGet && path == "users/@me" {
		return route{op: OpCurrentUser}, true
	}
	if len(segments) < 3 || segments[0] != "channels" {
		return route{}, false
	}
	rt := route{channel: segments[1]}
	rest := segments[2:]
	switch pattern := r.Method + " " + shape(rest); pattern {
	case "POST messages":
		rt.op = OpCreateMessage
	case "GET messages":
		rt.op = OpListMessages
	case "GET messages/*":
		rt.op, rt.message = OpGetMessage, rest[1]
	case "PATCH messages/*":
		rt.op, rt.message = OpEditMessage, rest[1]
	case "DELETE messages/*":
		rt.op, rt.message = OpDeleteMessage, rest[1]
	case "PUT messages/*/reactions/*/@me":
		rt.op, rt.message, rt.emoji = OpAddReaction, rest[1], rest[3]
	case "DELETE messages/*/reactions/*/@me":
		rt.op, rt.message, rt.emoji = OpRemoveReaction, rest[1], rest[3]
	case "PUT pins/*", "PUT messages/pins/*":
		rt.op, rt.message = OpPin, rest[len(rest)-1]
	case "DELETE pins/*", "DELETE messages/pins/*":
		rt.op, rt.message = OpUnpin, rest[len(rest)-1]
	case "POST typing":
		rt.op = OpTyping
	default:
		return route{}, false
	}
	return rt, true
}

// shape replaces the segments that are not words of the API by *.
func shape(segments []string) string {
	out := make([]string, len(segments))
	for i, s := range segments {
		switch s {
		case "messages", "reactions", "pins", "typing", "@me":
			out[i] = s
		default:
			out[i] = "*"
		}
	}
	return strings.Join(out, "/")
}

// Serve checks the token, the channel and the limit, and does what was asked.
func (p *platform) Serve(c *simulator.Call) simulator.Answer {
	p.mu.Lock()
	defer p.mu.Unlock()
	user, ok := p.user(c.Request.Header.Get("Authorization"))
	if !ok {
		return fail(http.StatusUnauthorized, 0, "401: Unauthorized")
	}
	rt, known := routeOf(c.Request)
	if !known {
		return fail(http.StatusNotFound, 0, "404: Not Found")
	}
	if limited, ok := p.spend(rt); !ok {
		return limited
	}
	answer := p.serve(c, rt, user)
	p.limitHeaders(answer.Header, rt)
	return answer
}

func (p *platform) serve(c *simulator.Call, rt route, user User) simulator.Answer {
	if rt.op == OpCurrentUser {
		return simulator.JSONAnswer(http.StatusOK, user)
	}
	if p.missing[rt.channel] {
		return fail(http.StatusNotFound, CodeUnknownChannel, "Unknown Channel")
	}
	if p.forbidden[rt.channel] {
		return fail(http.StatusForbidden, CodeMissingAccess, "Missing Access")
	}
	switch rt.op {
	case OpCreateMessage:
		return p.create(c, rt, user)
	case OpListMessages:
		return p.list(c, rt)
	case OpTyping:
		c.Effect(EffectTyping, rt.channel, "")
		return nothing()
	}
	m := p.channel(rt.channel).find(rt.message)
	if m == nil {
		return fail(http.StatusNotFound, CodeUnknownMessage, "Unknown Message")
	}
	switch rt.op {
	case OpGetMessage:
		return simulator.JSONAnswer(http.StatusOK, m)
	case OpEditMessage:
		return p.edit(c, m, user)
	case OpDeleteMessage:
		p.channel(rt.channel).remove(m.ID)
		c.Effect(EffectDelete, m.ID, "")
	case OpAddReaction, OpRemoveReaction:
		c.Effect(EffectReaction, m.ID, rt.op+" "+rt.emoji)
	case OpPin, OpUnpin:
		c.Effect(EffectPin, m.ID, rt.op)
	}
	return nothing()
}

// user finds the account of an Authorization header.
func (p *platform) user(authorization string) (User, bool) {
	token, ok := strings.CutPrefix(authorization, "Bot ")
	if !ok || token == "" {
		return User{}, false
	}
	id := DefaultUserID
	if len(p.options.Tokens) > 0 {
		if id, ok = p.options.Tokens[token]; !ok {
			return User{}, false
		}
	}
	return User{ID: id, Username: "simulated-bot", Bot: true}, true
}

type apiError struct {
	Message string          `json:"message"`
	Code    int             `json:"code"`
	Errors  json.RawMessage `json:"errors,omitempty"`
}

func fail(status, code int, message string) simulator.Answer {
	return simulator.JSONAnswer(status, apiError{Message: message, Code: code})
}

func nothing() simulator.Answer {
	return simulator.Answer{Status: http.StatusNoContent, Header: http.Header{}}
}
