package telegram

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/simulator"
)

// The operations that steps and ledger name are the methods of the Bot API, as
// Telegram spells them: "sendMessage", "editMessageText". These are the constants
// for some of them.
const (
	OpSendMessage     = "sendMessage"
	OpEditMessageText = "editMessageText"
	OpDeleteMessage   = "deleteMessage"
	OpForwardMessage  = "forwardMessage"
	OpChatAction      = "sendChatAction"
	OpGetMe           = "getMe"
)

// The kinds of effect in the ledger. The content of a message is its text or
// caption.
const (
	EffectMessage  = "message"
	EffectEdit     = "edit"
	EffectDelete   = "delete"
	EffectForward  = "forward"
	EffectAction   = "action"
	EffectReaction = "reaction"
	EffectAnswer   = "answer"
)

// Options are the settings of a [Server].
type Options struct {
	// Addr is where to listen. Defaults to a free port of 127.0.0.1.
	Addr string
	// Tokens are the bot tokens that are accepted; if empty, any that has the
	// form of one ("123:abc").
	Tokens []string
	// Now is the clock. Defaults to time.Now.
	Now func() time.Time
}

// Server is a Telegram Bot API on a loopback port.
type Server struct {
	*simulator.Server
	platform *platform
}

// Start listens and serves. It fails if the address cannot be listened on.
func Start(o Options) (*Server, error) {
	p := &platform{
		tokens: map[string]bool{}, chats: map[string]*chat{},
		missing: map[string]bool{}, blocked: map[string]bool{}, migrated: map[string]int64{},
	}
	for _, t := range o.Tokens {
		p.tokens[t] = true
	}
	s, err := simulator.Start(p, simulator.Options{Addr: o.Addr, Now: o.Now})
	if err != nil {
		return nil, err
	}
	return &Server{Server: s, platform: p}, nil
}

// Missing makes chats unknown (400, chat not found).
func (s *Server) Missing(chats ...int64) { s.platform.mark(s.platform.missing, chats) }

// Blocked makes users that blocked the bot (403).
func (s *Server) Blocked(chats ...int64) { s.platform.mark(s.platform.blocked, chats) }

// Migrate makes a group answer with the supergroup that it became.
func (s *Server) Migrate(from, to int64) {
	s.platform.mu.Lock()
	defer s.platform.mu.Unlock()
	s.platform.migrated[strconv.FormatInt(from, 10)] = to
}

// Messages returns the messages of a chat that were not deleted, oldest first.
func (s *Server) Messages(chatID int64) []Message {
	s.platform.mu.Lock()
	defer s.platform.mu.Unlock()
	var out []Message
	for _, m := range s.platform.chat(strconv.FormatInt(chatID, 10)).messages {
		out = append(out, *m)
	}
	return out
}

// response is the envelope of every answer.
type response struct {
	OK          bool        `json:"ok"`
	Result      any         `json:"result,omitempty"`
	ErrorCode   int         `json:"error_code,omitempty"`
	Description string      `json:"description,omitempty"`
	Parameters  *parameters `json:"parameters,omitempty"`
}

type parameters struct {
	RetryAfter int   `json:"retry_after,omitempty"`
	MigrateTo  int64 `json:"migrate_to_chat_id,omitempty"`
}

// FloodWait is flood control: 429 with a wait in seconds.
func FloodWait(seconds int) simulator.Step {
	return simulator.JSON(http.StatusTooManyRequests, response{
		ErrorCode:   http.StatusTooManyRequests,
		Description: fmt.Sprintf("Too Many Requests: retry after %d", seconds),
		Parameters:  &parameters{RetryAfter: seconds},
	}).As(fmt.Sprintf("429, retry after %d s", seconds))
}

// Fail is an error answer in Telegram's form, without an effect: Fail(400, "Bad
// Request: message thread not found"), Fail(421, "Misdirected Request").
func Fail(code int, description string) simulator.Step {
	return simulator.JSON(code, response{ErrorCode: code, Description: description})
}

// Faults is a mix of faults for random scripts in which about rate of the
// requests fail, each kind as often as the others.
func Faults(rate float64) []simulator.RandomFault {
	steps := []simulator.Step{
		FloodWait(1), Fail(421, "Misdirected Request"), simulator.EffectThenReset(), simulator.EffectThenClose(),
		simulator.Reset(), simulator.HTML(502, "<html>502 Bad Gateway</html>"), simulator.CutBytes(20),
	}
	var faults []simulator.RandomFault
	for _, step := range steps {
		faults = append(faults, simulator.RandomFault{Rate: rate / float64(len(steps)), Step: step})
	}
	return faults
}

type platform struct {
	mu       sync.Mutex
	tokens   map[string]bool
	chats    map[string]*chat
	missing  map[string]bool
	blocked  map[string]bool
	migrated map[string]int64
}

func (p *platform) mark(set map[string]bool, ids []int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, id := range ids {
		set[strconv.FormatInt(id, 10)] = true
	}
}

func (p *platform) chat(id string) *chat {
	c := p.chats[id]
	if c == nil {
		c = &chat{}
		p.chats[id] = c
	}
	return c
}

// split takes a path apart into the token and the method.
func split(path string) (token, method string, ok bool) {
	rest, ok := strings.CutPrefix(path, "/bot")
	if !ok {
		return "", "", false
	}
	token, method, ok = strings.Cut(rest, "/")
	return token, method, ok && token != ""
}

// Identify names a request by its method; the key is the chat. No query is kept,
// for a call by GET has its text there.
func (p *platform) Identify(r *http.Request, body []byte) simulator.Identity {
	token, method, ok := split(r.URL.Path)
	if !ok {
		return simulator.Identity{Op: "other", Path: "/:unknown"}
	}
	id := simulator.Identity{Op: method, Path: "/bot:token/" + method, Credential: token}
	if in, err := read(r, body); err == nil {
		id.Key = in.text("chat_id")
	}
	return id
}

// Serve checks the token and calls the method.
func (p *platform) Serve(c *simulator.Call) simulator.Answer {
	p.mu.Lock()
	defer p.mu.Unlock()
	token, method, ok := split(c.Request.URL.Path)
	if !ok {
		return fail(http.StatusNotFound, "Not Found")
	}
	if !p.known(token) {
		return fail(http.StatusUnauthorized, "Unauthorized")
	}
	in, err := read(c.Request, c.Body)
	if err != nil {
		return fail(http.StatusBadRequest, "Bad Request: can't parse request body")
	}
	if method == OpGetMe {
		return result(me(token))
	}
	if strings.EqualFold(method, "answerCallbackQuery") {
		c.Effect(EffectAnswer, in.text("callback_query_id"), in.text("text"))
		return result(true)
	}
	if refused, ok := p.admit(in.text("chat_id")); !ok {
		return refused
	}
	return p.call(c, method, in, token)
}

// known says whether a token is accepted.
func (p *platform) known(token string) bool {
	if len(p.tokens) > 0 {
		return p.tokens[token]
	}
	id, secret, ok := strings.Cut(token, ":")
	_, err := strconv.ParseInt(id, 10, 64)
	return ok && err == nil && secret != ""
}

// admit refuses chats that the bot cannot write to.
func (p *platform) admit(chatID string) (simulator.Answer, bool) {
	switch {
	case chatID == "":
		return fail(http.StatusBadRequest, "Bad Request: chat_id is empty"), false
	case p.missing[chatID]:
		return fail(http.StatusBadRequest, "Bad Request: chat not found"), false
	case p.blocked[chatID]:
		return fail(http.StatusForbidden, "Forbidden: bot was blocked by the user"), false
	}
	if to, ok := p.migrated[chatID]; ok {
		return simulator.JSONAnswer(http.StatusBadRequest, response{
			ErrorCode:   http.StatusBadRequest,
			Description: "Bad Request: group chat was upgraded to a supergroup chat",
			Parameters:  &parameters{MigrateTo: to},
		}), false
	}
	return simulator.Answer{}, true
}

func fail(code int, description string) simulator.Answer {
	return simulator.JSONAnswer(code, response{ErrorCode: code, Description: description})
}

func badRequest(description string) simulator.Answer {
	return fail(http.StatusBadRequest, "Bad Request: "+description)
}

func result(v any) simulator.Answer {
	return simulator.JSONAnswer(http.StatusOK, response{OK: true, Result: v})
}

// User is the bot.
type User struct {
	ID        int64  `json:"id"`
	IsBot     bool   `json:"is_bot"`
	FirstName string `json:"first_name"`
	Username  string `json:"username"`
}

// me is the bot of a token, whose id is the part before the colon.
func me(token string) User {
	text, _, _ := strings.Cut(token, ":")
	id, _ := strconv.ParseInt(text, 10, 64)
	return User{ID: id, IsBot: true, FirstName: "Simulated", Username: "simulated_bot"}
}

// fields are the parameters of a call, whichever way they came.
type fields map[string]json.RawMessage

// text is a parameter as text; a number in JSON is its digits.
func (f fields) text(name string) string {
	raw := f[name]
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	return string(raw)
}

func (f fields) number(name string) int64 {
	n, _ := strconv.ParseInt(f.text(name), 10, 64)
	return n
}
