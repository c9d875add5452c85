package telegram_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/holdfast-dev/holdfast/simulator"
	"github.com/holdfast-dev/holdfast/simulator/telegram"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const token = "42:s3cret"

func start(t *testing.T, o telegram.Options) *telegram.Server {
	t.Helper()
	s, err := telegram.Start(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

type reply struct {
	OK          bool
	Result      json.RawMessage
	ErrorCode   int `json:"error_code"`
	Description string
	Parameters  struct {
		RetryAfter int   `json:"retry_after"`
		MigrateTo  int64 `json:"migrate_to_chat_id"`
	}
	status int
	err    error
}

func send(t *testing.T, req *http.Request) reply {
	t.Helper()
	req.GetBody = nil
	tr := &http.Transport{DisableKeepAlives: true}
	resp, err := (&http.Client{Transport: tr}).Do(req)
	if err != nil {
		return reply{err: err}
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	r := reply{status: resp.StatusCode, err: err}
	if err == nil {
		if err := json.Unmarshal(body, &r); err != nil {
			t.Fatalf("%v in %s", err, body)
		}
	}
	return r
}

// call calls a method with JSON.
func call(t *testing.T, s *telegram.Server, method string, in map[string]any) reply {
	t.Helper()
	body, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequest("POST", s.URL()+"/bot"+token+"/"+method, strings.NewReader(string(body)))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	return send(t, req)
}

// C2.5: a text comes in as JSON, as a form or in the query; each is a message.
func TestSendMessage(t *testing.T) {
	t.Parallel()
	s := start(t, telegram.Options{})
	form := url.Values{"chat_id": {"7"}, "text": {"two"}}
	post, _ := http.NewRequest("POST", s.URL()+"/bot"+token+"/sendMessage", strings.NewReader(form.Encode()))
	post.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	get, _ := http.NewRequest("GET", s.URL()+"/bot"+token+"/sendMessage?chat_id=7&text=three", nil)
	for _, r := range []reply{
		call(t, s, "sendMessage", map[string]any{"chat_id": 7, "text": "one"}), send(t, post), send(t, get),
		call(t, s, "sendMessage", map[string]any{"chat_id": 7, "text": "four", "reply_parameters": map[string]any{"message_id": 1}, "message_thread_id": 9}),
	} {
		if !r.OK || r.status != 200 {
			t.Errorf("%+v", r)
		}
	}
	var texts []string
	messages := s.Messages(7)
	for _, m := range messages {
		texts = append(texts, m.Text)
	}
	if diff := cmp.Diff([]string{"one", "two", "three", "four"}, texts); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if m := messages[3]; m.ReplyTo == nil || m.ReplyTo.ID != 1 || m.Thread != 9 || m.From.ID != 42 {
		t.Errorf("%+v", m)
	}
	ledger, err := json.Marshal(s.Ledger().Requests("sendMessage"))
	if err != nil || strings.Contains(string(ledger), "s3cret") || strings.Contains(string(ledger), "three") {
		t.Errorf("a secret or a text in %s, %v", ledger, err)
	}
	if r := s.Ledger().Requests("")[2]; r.Path != "/bot:token/sendMessage" || r.Key != "7" {
		t.Errorf("ledger %+v", r)
	}
}

// C2.5, C2.6: each refusal has its code and its words.
func TestRefusals(t *testing.T) {
	t.Parallel()
	s := start(t, telegram.Options{})
	s.Missing(404)
	s.Blocked(403)
	s.Migrate(-5, -1005)
	call(t, s, "sendMessage", map[string]any{"chat_id": 7, "text": "one"})
	long := strings.Repeat("😀", 2049) // two UTF-16 units each
	tests := []struct {
		method string
		in     map[string]any
		code   int
		says   string
	}{
		{"sendMessage", map[string]any{"chat_id": 7, "text": long}, 400, "Bad Request: message is too long"},
		{"sendMessage", map[string]any{"chat_id": 7, "text": long[4:]}, 0, ""},
		{"sendMessage", map[string]any{"chat_id": 7, "text": " "}, 400, "Bad Request: message text is empty"},
		{"sendMessage", map[string]any{"text": "a"}, 400, "Bad Request: chat_id is empty"},
		{"sendMessage", map[string]any{"chat_id": 404, "text": "a"}, 400, "Bad Request: chat not found"},
		{"sendMessage", map[string]any{"chat_id": 403, "text": "a"}, 403, "Forbidden: bot was blocked by the user"},
		{"sendMessage", map[string]any{"chat_id": -5, "text": "a"}, 400, "Bad Request: group chat was upgraded to a supergroup chat"},
		{"sendPhoto", map[string]any{"chat_id": 7, "photo": "id", "caption": strings.Repeat("a", 1025)}, 400, "Bad Request: message caption is too long"},
		{"sendPhoto", map[string]any{"chat_id": 7, "photo": "id", "caption": "a"}, 0, ""},
		{"editMessageText", map[string]any{"chat_id": 7, "message_id": 99, "text": "a"}, 400, "Bad Request: message to edit not found"},
		{"editMessageText", map[string]any{"chat_id": 7, "message_id": 1, "text": "one"}, 400, "Bad Request: message is not modified"},
		{"editMessageText", map[string]any{"chat_id": 7, "message_id": 1, "text": "uno"}, 0, ""},
		{"forwardMessage", map[string]any{"chat_id": 8, "from_chat_id": 7, "message_id": 1}, 0, ""},
		{"forwardMessage", map[string]any{"chat_id": 8, "from_chat_id": 7, "message_id": 99}, 400, "Bad Request: message to forward not found"},
		{"deleteMessage", map[string]any{"chat_id": 7, "message_id": 1}, 0, ""},
		{"deleteMessage", map[string]any{"chat_id": 7, "message_id": 1}, 400, "Bad Request: message to delete not found"},
		{"sendChatAction", map[string]any{"chat_id": 7, "action": "typing"}, 0, ""},
		{"noSuchMethod", map[string]any{"chat_id": 7}, 404, "Not Found: method not found"},
	}
	for _, tt := range tests {
		r := call(t, s, tt.method, tt.in)
		if r.ErrorCode != tt.code || !strings.HasPrefix(r.Description, tt.says) || r.OK != (tt.code == 0) || tt.code != 0 && r.status != tt.code {
			t.Errorf("%s %.60v: %+v, want %d %q", tt.method, tt.in, r, tt.code, tt.says)
		}
	}
	if r := call(t, s, "sendMessage", map[string]any{"chat_id": -5, "text": "a"}); r.Parameters.MigrateTo != -1005 {
		t.Errorf("migration: %+v", r)
	}
	if got := s.Messages(8); len(got) != 1 || got[0].Text != "uno" {
		t.Errorf("forwarded: %+v", got)
	}
}

// C2.7: text that its parse mode cannot read is refused, good text is not.
func TestParseModes(t *testing.T) {
	t.Parallel()
	s := start(t, telegram.Options{})
	tests := []struct {
		mode, text, says string
	}{
		{"HTML", `<b>bold <i>both</i></b> &amp; <a href="https://x.example/">link</a>`, ""},
		{"HTML", `<pre><code class="language-go">x</code></pre>`, ""},
		{"HTML", `<b>bold`, "end tag"},
		{"HTML", `<b><i>x</b></i>`, "Unmatched end tag"},
		{"HTML", `x</b>`, "Unexpected end tag"},
		{"HTML", `<div>x</div>`, "Unsupported start tag"},
		{"HTML", `a < b`, "Unclosed start tag"},
		{"HTML", `< >`, "Unsupported start tag"},
		{"MarkdownV2", `*bold* _it_ __under__ ~gone~ ||secret|| \. ` + "`a.b`", ""},
		{"MarkdownV2", "```go\nx := a.b()\n```", ""},
		{"MarkdownV2", `[link](https://x.example/a.b)`, ""},
		{"MarkdownV2", ">quote\n>more", ""},
		{"MarkdownV2", `The end.`, "Character '.' is reserved"},
		{"MarkdownV2", `a > b`, "Character '>' is reserved"},
		{"MarkdownV2", `Hi!`, "Character '!' is reserved"},
		{"MarkdownV2", `(x)`, "Character '(' is reserved"},
		{"MarkdownV2", `*bold`, "Can't find end of Bold entity"},
		{"MarkdownV2", "`code", "Can't find end of Code entity"},
		{"Markdown", `*bold* and _it_`, ""},
		{"Markdown", `snake_case`, "Can't find end of the entity"},
		{"", `<b>a.b!`, ""},
	}
	for _, tt := range tests {
		r := call(t, s, "sendMessage", map[string]any{"chat_id": 7, "text": tt.text, "parse_mode": tt.mode})
		if tt.says == "" && !r.OK {
			t.Errorf("%s %q: %+v", tt.mode, tt.text, r)
		}
		if tt.says != "" && (!strings.HasPrefix(r.Description, "Bad Request: can't parse entities: ") || !strings.Contains(r.Description, tt.says)) {
			t.Errorf("%s %q: %+v, want %q", tt.mode, tt.text, r, tt.says)
		}
	}
}

// C2.5: without an idempotency key a repeated text is a second message, and only
// flood control and 421 say that nothing was done.
func TestFaults(t *testing.T) {
	t.Parallel()
	s := start(t, telegram.Options{})
	s.Script(telegram.FloodWait(3), telegram.Fail(421, "Misdirected Request"), simulator.EffectThenReset())
	in := map[string]any{"chat_id": 7, "text": "a"}
	flood := call(t, s, "sendMessage", in)
	if flood.ErrorCode != 429 || flood.Parameters.RetryAfter != 3 || flood.status != 429 {
		t.Errorf("flood: %+v", flood)
	}
	if r := call(t, s, "sendMessage", in); r.ErrorCode != 421 {
		t.Errorf("421: %+v", r)
	}
	if r := call(t, s, "sendMessage", in); r.err == nil {
		t.Errorf("reset: %+v", r)
	}
	if r := call(t, s, "sendMessage", in); !r.OK {
		t.Errorf("last: %+v", r)
	}
	if got := len(s.Ledger().Effects(telegram.EffectMessage)); got != 2 {
		t.Errorf("%d messages, want 2", got)
	}
	if early := s.Ledger().Early(0); len(early) != 3 {
		t.Errorf("early: %+v, want the three after the flood wait", early)
	}
}

// Q1: a bad token is refused.
func TestToken(t *testing.T) {
	t.Parallel()
	s := start(t, telegram.Options{Tokens: []string{"1:other"}})
	if r := call(t, s, "getMe", nil); r.ErrorCode != 401 {
		t.Errorf("%+v", r)
	}
	any := start(t, telegram.Options{})
	if r := call(t, any, "getMe", nil); !r.OK || !strings.Contains(string(r.Result), `"id":42`) {
		t.Errorf("%+v", r)
	}
}
