package discord_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/holdfast-dev/holdfast/simulator"
	"github.com/holdfast-dev/holdfast/simulator/discord"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const room = "111"

// bot is a plain HTTP client of a simulator.
type bot struct {
	t     *testing.T
	s     *discord.Server
	token string
	http  *http.Client
}

func start(t *testing.T, o discord.Options) *bot {
	t.Helper()
	s, err := discord.Start(o)
	if err != nil {
		t.Fatal(err)
	}
	tr := &http.Transport{}
	t.Cleanup(func() { tr.CloseIdleConnections(); s.Close() })
	return &bot{t, s, "token", &http.Client{Transport: tr}}
}

type reply struct {
	status int
	header http.Header
	body   string
	err    error
}

func (r reply) into(t *testing.T, v any) {
	t.Helper()
	if err := json.Unmarshal([]byte(r.body), v); err != nil {
		t.Fatalf("%v in %s", err, r.body)
	}
}

func (r reply) code(t *testing.T) int {
	t.Helper()
	var e struct{ Code int }
	r.into(t, &e)
	return e.Code
}

func (b *bot) do(method, path, contentType, body string) reply {
	b.t.Helper()
	req, err := http.NewRequest(method, b.s.APIURL()+path, strings.NewReader(body))
	if err != nil {
		b.t.Fatal(err)
	}
	req.GetBody = nil
	req.Header.Set("Authorization", "Bot "+b.token)
	req.Header.Set("Content-Type", contentType)
	resp, err := b.http.Do(req)
	if err != nil {
		return reply{err: err}
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	return reply{resp.StatusCode, resp.Header, string(data), err}
}

func (b *bot) call(method, path string, v any) reply {
	b.t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		b.t.Fatal(err)
	}
	return b.do(method, path, "application/json", string(data))
}

func (b *bot) create(v map[string]any) reply {
	b.t.Helper()
	return b.call("POST", "/channels/"+room+"/messages", v)
}

func (b *bot) ids(query string) []string {
	b.t.Helper()
	var list []discord.Message
	b.call("GET", "/channels/"+room+"/messages"+query, nil).into(b.t, &list)
	ids := []string{}
	for _, m := range list {
		if m.Nonce != nil {
			b.t.Error("a read tells the nonce")
		}
		ids = append(ids, m.ID)
	}
	return ids
}

// C2.1: a nonce makes a create harmless to repeat, inside its window only.
func TestNonce(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	now := time.Unix(1_800_000_000, 0)
	clock := func() time.Time { mu.Lock(); defer mu.Unlock(); return now }
	pass := func(d time.Duration) { mu.Lock(); defer mu.Unlock(); now = now.Add(d) }
	b := start(t, discord.Options{NonceWindow: 2 * time.Minute, Now: clock})
	in := map[string]any{"content": "hello", "nonce": "n1", "enforce_nonce": true}
	var first, again, plain, later discord.Message
	b.create(in).into(t, &first)
	pass(119 * time.Second)
	b.create(in).into(t, &again)
	if first.ID == "" || first.ID != again.ID || string(again.Nonce) != `"n1"` {
		t.Errorf("first %s, again %s with nonce %s", first.ID, again.ID, again.Nonce)
	}
	b.create(map[string]any{"content": "hello", "nonce": "n1"}).into(t, &plain)
	if plain.ID == first.ID {
		t.Error("a nonce that is not enforced deduplicated")
	}
	pass(2 * time.Minute)
	b.create(in).into(t, &later)
	if later.ID == first.ID || later.ID == plain.ID {
		t.Error("the nonce outlived its window")
	}
	if got := len(b.s.Ledger().Effects(discord.EffectMessage)); got != 3 {
		t.Errorf("%d messages, want 3", got)
	}
	b.call("DELETE", "/channels/"+room+"/messages/"+later.ID, nil)
	if r := b.create(in); r.status != 404 || r.code(t) != discord.CodeUnknownMessage {
		t.Errorf("the nonce of a deleted message: %d %s", r.status, r.body)
	}
}

// C2.1: an answer that was lost is found again by its nonce, even when the
// network repeats the request.
func TestLostAnswer(t *testing.T) {
	t.Parallel()
	b := start(t, discord.Options{})
	b.s.Script(simulator.EffectThenReset(), simulator.Twice())
	in := map[string]any{"content": "hello", "nonce": "n1", "enforce_nonce": true}
	if r := b.create(in); r.err == nil {
		t.Fatalf("first: %+v", r)
	}
	var m discord.Message
	b.create(in).into(t, &m)
	effects := b.s.Ledger().Effects("")
	if len(effects) != 1 || effects[0].ID != m.ID || effects[0].Request != 1 || effects[0].Content != "hello" {
		t.Errorf("effects %+v", effects)
	}
}

// C2: each refusal has its status and code.
func TestRefusals(t *testing.T) {
	t.Parallel()
	b := start(t, discord.Options{Tokens: map[string]string{"token": "42"}})
	b.s.Missing("404")
	b.s.Forbidden("403")
	stranger := b.s.Post(room, "7", "not ours")
	tests := []struct {
		name         string
		method, path string
		body         any
		status, code int
	}{
		{"long", "POST", "/channels/111/messages", map[string]any{"content": strings.Repeat("ü", 2001)}, 400, 50035},
		{"long enough", "POST", "/channels/111/messages", map[string]any{"content": strings.Repeat("😀", 2000)}, 200, 0},
		{"empty", "POST", "/channels/111/messages", map[string]any{"content": " "}, 400, 50006},
		{"long nonce", "POST", "/channels/111/messages", map[string]any{"content": "a", "nonce": strings.Repeat("n", 26)}, 400, 50035},
		{"reply to nothing", "POST", "/channels/111/messages", map[string]any{"content": "a", "message_reference": map[string]any{"message_id": "5"}}, 400, 50035},
		{"reply to nothing, allowed", "POST", "/channels/111/messages", map[string]any{"content": "a", "message_reference": map[string]any{"message_id": "5", "fail_if_not_exists": false}}, 200, 0},
		{"missing channel", "POST", "/channels/404/messages", map[string]any{"content": "a"}, 404, 10003},
		{"forbidden channel", "GET", "/channels/403/messages", nil, 403, 50001},
		{"missing message", "DELETE", "/channels/111/messages/5", nil, 404, 10008},
		{"edit of another's", "PATCH", "/channels/111/messages/" + stranger, map[string]any{"content": "a"}, 403, 50005},
		{"reaction", "PUT", "/channels/111/messages/" + stranger + "/reactions/%F0%9F%91%8D/@me", nil, 204, 0},
		{"pin", "PUT", "/channels/111/pins/" + stranger, nil, 204, 0},
		{"typing", "POST", "/channels/111/typing", nil, 204, 0},
		{"unknown path", "GET", "/gateway/bot", nil, 404, 0},
	}
	for _, tt := range tests {
		r := b.call(tt.method, tt.path, tt.body)
		code := 0
		if r.status >= 400 {
			code = r.code(t)
		}
		if r.status != tt.status || code != tt.code {
			t.Errorf("%s: %d %s, want %d with code %d", tt.name, r.status, r.body, tt.status, tt.code)
		}
	}
	b.token = "wrong"
	if r := b.call("GET", "/users/@me", nil); r.status != 401 {
		t.Errorf("a wrong token: %d %s", r.status, r.body)
	}
}

// C4: lists come newest first, by anchor; ids follow time; a hidden history is
// empty, not an error.
func TestLists(t *testing.T) {
	t.Parallel()
	b := start(t, discord.Options{})
	before := discord.Snowflake(time.Now())
	var m []string
	for i := range 5 {
		m = append(m, b.s.Post(room, "7", fmt.Sprint(i)))
	}
	tests := map[string][]string{
		"":                              {m[4], m[3], m[2], m[1], m[0]},
		"?limit=2":                      {m[4], m[3]},
		"?after=" + m[1]:                {m[4], m[3], m[2]},
		"?limit=2&after=" + m[0]:        {m[2], m[1]},
		"?limit=2&before=" + m[3]:       {m[2], m[1]},
		"?limit=3&around=" + m[2]:       {m[3], m[2], m[1]},
		"?after=" + m[4]:                {},
		"?limit=1&after=" + before[:17]: {m[0]},
	}
	for query, want := range tests {
		if diff := cmp.Diff(want, b.ids(query)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", query, diff)
		}
	}
	if m[0] < before {
		t.Errorf("the id %s of a message is below that of the time before it, %s", m[0], before)
	}
	var one discord.Message
	b.call("GET", "/channels/"+room+"/messages/"+m[3], nil).into(t, &one)
	if one.Content != "3" {
		t.Errorf("read %+v", one)
	}
	b.s.HideHistory(room)
	if got := b.ids(""); len(got) != 0 {
		t.Errorf("a hidden history: %v", got)
	}
}

// P2, C2: a 429 tells its wait in body and headers, and who came early is found.
func TestRateLimit(t *testing.T) {
	t.Parallel()
	b := start(t, discord.Options{})
	b.s.Script(
		simulator.Pass().On(discord.OpCreateMessage),
		discord.RateLimited(0.7, false).On(discord.OpCreateMessage).Times(2),
		discord.RateLimited(3, true),
	)
	in := map[string]any{"content": "a"}
	var statuses []int
	for range 3 {
		statuses = append(statuses, b.create(in).status)
	}
	global := b.create(in)
	if diff := cmp.Diff([]int{200, 429, 429}, statuses); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	var body map[string]any
	global.into(t, &body)
	want := map[string]any{"message": "You are being rate limited.", "retry_after": 3.0, "global": true, "code": 0.0}
	if diff := cmp.Diff(want, body); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if h := global.header; h.Get("Retry-After") != "3" || h.Get("X-RateLimit-Scope") != "global" {
		t.Errorf("headers %v", h)
	}
	if early := b.s.Ledger().Early(0); len(early) != 2 {
		t.Errorf("early %+v, want the third and the fourth", early)
	}
}

// P2: a limit that the simulator enforces itself.
func TestOwnLimit(t *testing.T) {
	t.Parallel()
	b := start(t, discord.Options{Limit: 2, LimitWindow: time.Hour})
	var got []string
	for range 3 {
		r := b.create(map[string]any{"content": "a"})
		got = append(got, fmt.Sprint(r.status, " ", r.header.Get("X-RateLimit-Limit"), " ", r.header.Get("X-RateLimit-Remaining")))
		if r.header.Get("X-RateLimit-Bucket") == "" || r.header.Get("X-RateLimit-Reset") == "" || r.header.Get("X-RateLimit-Reset-After") == "" {
			t.Errorf("headers %v", r.header)
		}
	}
	if diff := cmp.Diff([]string{"200 2 1", "200 2 0", "429 2 0"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// C5: files come in a multipart form.
func TestAttachments(t *testing.T) {
	t.Parallel()
	b := start(t, discord.Options{})
	var form bytes.Buffer
	w := multipart.NewWriter(&form)
	w.WriteField("payload_json", `{"content":"see","nonce":"n","enforce_nonce":true}`)
	f, _ := w.CreateFormFile("files[0]", "a.txt")
	f.Write([]byte("12345"))
	w.Close()
	var m discord.Message
	b.do("POST", "/channels/"+room+"/messages", w.FormDataContentType(), form.String()).into(t, &m)
	if m.Content != "see" || len(m.Attachments) != 1 || m.Attachments[0].Filename != "a.txt" || m.Attachments[0].Size != 5 {
		t.Errorf("message %+v", m)
	}
	if got := b.s.Messages(room); len(got) != 1 || got[0].ID != m.ID {
		t.Errorf("the channel holds %+v", got)
	}
}

// G9: the token is not in the ledger.
func TestNoToken(t *testing.T) {
	t.Parallel()
	b := start(t, discord.Options{})
	b.token = "s3cret"
	b.create(map[string]any{"content": "a"})
	text, err := json.Marshal(b.s.Ledger().Requests(""))
	if err != nil || strings.Contains(string(text), "s3cret") {
		t.Errorf("%s, %v", text, err)
	}
}
