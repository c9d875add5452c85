package policies

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// verdictCase is one row of a verdict table.
type verdictCase struct {
	name   string
	fault  Fault
	reason Reason
	retry  bool
	effect Effect
	rule   string
}

func (tc verdictCase) check(t *testing.T, surface Surface) {
	t.Helper()
	tc.fault.Surface = surface
	v := Judge(&tc.fault)
	if v.Reason != tc.reason || v.RetrySame != tc.retry || v.Effect != tc.effect || v.Rule != tc.rule {
		t.Errorf("%s: %+v, want %s retry=%v %s %s", tc.name, v, tc.reason, tc.retry, tc.effect, tc.rule)
	}
	if v.Failover || v.Permanent && v.RetrySame {
		t.Errorf("%s: %+v", tc.name, v)
	}
}

func body(s string) []byte { return []byte(s) }

func TestJudgeDiscord(t *testing.T) {
	t.Parallel()
	const in, out = time.Minute, NonceWindow + time.Nanosecond
	for _, tc := range []verdictCase{
		// C2.1: a create repeats on 429, not started, and inside the nonce window.
		{"create 429", Fault{Operation: OpCreate, Status: 429, SinceFirst: out}, ReasonRateLimit, true, EffectNotSent, "C2.1/rate_limit"},
		{"create not started", Fault{Operation: OpCreate, NotStarted: true, Code: "UND_ERR_CONNECT_TIMEOUT", SinceFirst: out}, ReasonTimeout, true, EffectNotSent, "C2.1/not_started"},
		{"create 502 in window", Fault{Operation: OpCreate, Status: 502, SinceFirst: in}, ReasonServerError, true, EffectUnknown, "C2.1/server_error"},
		{"create 502 at its end", Fault{Operation: OpCreate, Status: 502, SinceFirst: NonceWindow}, ReasonServerError, true, EffectUnknown, "C2.1/server_error"},
		{"create 502 late", Fault{Operation: OpCreate, Status: 502, SinceFirst: out}, ReasonServerError, false, EffectUnknown, "C2.1/nonce_window_over"},
		{"create reset in window", Fault{Operation: OpCreate, Started: true, Code: "ECONNRESET", SinceFirst: in}, ReasonTimeout, true, EffectUnknown, "C2.1/transport"},
		{"create reset late", Fault{Operation: OpCreate, Started: true, Code: "ECONNRESET", SinceFirst: out}, ReasonTimeout, false, EffectUnknown, "C2.1/nonce_window_over"},
		{"create timeout in window", Fault{Operation: OpCreate, Started: true, Code: "UND_ERR_HEADERS_TIMEOUT"}, ReasonTimeout, true, EffectUnknown, "C2.1/transport"},
		{"create receipt lost", Fault{Operation: OpCreate, Status: 200, Started: true, Code: "UND_ERR_SOCKET"}, ReasonTimeout, true, EffectUnknown, "C2.1/receipt_lost"},
		{"create receipt lost late", Fault{Operation: OpCreate, Status: 200, SinceFirst: out}, ReasonTimeout, false, EffectUnknown, "C2.1/nonce_window_over"},
		{"create 503 with a floor past the window", Fault{Operation: OpCreate, Status: 503, Header: http.Header{"Retry-After": {"120"}}, SinceFirst: in}, ReasonServerError, false, EffectUnknown, "C2.1/nonce_window_over"},
		{"create 429 past the window after a loss", Fault{Operation: OpCreate, Status: 429, Body: body(`{"retry_after":90}`), SinceFirst: in, LostEarlier: true}, ReasonRateLimit, false, EffectUnknown, "C2.1/nonce_window_over"},
		{"create 403 after a loss", Fault{Operation: OpCreate, Status: 403, LostEarlier: true}, ReasonPermission, false, EffectUnknown, "C2.1/permission"},
		{"create gone after a loss", Fault{Operation: OpCreate, Status: 404, Body: body(`{"code":10008}`), LostEarlier: true}, ReasonNotFound, false, EffectUnknown, "C2.1/created_and_gone"},
		{"create 421", Fault{Operation: OpCreate, Status: 421}, ReasonMisdirected, true, EffectNotSent, "C2.1/misdirected"},
		{"create certificate", Fault{Operation: OpCreate, NotStarted: true, Code: "CERT_HAS_EXPIRED"}, ReasonTLS, false, EffectNotSent, "C2.1/certificate"},

		// C2: 401, 403, 404 are never retried; 400 is a format error; an error
		// body that cannot be read leaves the status in force.
		{"401", Fault{Operation: OpEdit, Status: 401}, ReasonAuth, false, EffectNotSent, "C2.3/auth"},
		{"403", Fault{Operation: OpEdit, Status: 403, Started: true, Code: "UND_ERR_SOCKET"}, ReasonPermission, false, EffectNotSent, "C2.3/permission"},
		{"404", Fault{Operation: OpCreate, Status: 404}, ReasonNotFound, false, EffectNotSent, "C2.1/not_found"},
		{"400", Fault{Operation: OpCreate, Status: 400, Body: body(`{"code":50035}`)}, ReasonFormat, false, EffectNotSent, "C2.1/format"},

		// C2.2: webhooks repeat on 429 and not started only.
		{"webhook 429", Fault{Operation: OpWebhook, Status: 429}, ReasonRateLimit, true, EffectNotSent, "C2.2/rate_limit"},
		{"webhook not started", Fault{Operation: OpWebhook, NotStarted: true}, ReasonTimeout, true, EffectNotSent, "C2.2/not_started"},
		{"webhook 500", Fault{Operation: OpWebhook, Status: 500}, ReasonServerError, false, EffectUnknown, "C2.2/server_error"},
		{"webhook reset", Fault{Operation: OpWebhook, Started: true, Code: "ECONNRESET"}, ReasonTimeout, false, EffectUnknown, "C2.2/transport"},
		{"webhook receipt lost", Fault{Operation: OpWebhook, Status: 200}, ReasonTimeout, false, EffectUnknown, "C2.2/receipt_lost"},
		{"started beats a code that proves", Fault{Operation: OpWebhook, Started: true, Code: "ECONNREFUSED"}, ReasonTimeout, false, EffectUnknown, "C2.2/transport"},

		// C2.3: idempotent operations repeat on everything transient.
		{"edit 408", Fault{Operation: OpEdit, Status: 408}, ReasonTimeout, true, EffectUnknown, "C2.3/timeout"},
		{"pin 503", Fault{Operation: OpPin, Status: 503}, ReasonServerError, true, EffectUnknown, "C2.3/server_error"},
		{"react reset", Fault{Operation: OpReact, Started: true, Code: "ECONNRESET"}, ReasonTimeout, true, EffectUnknown, "C2.3/transport"},
		{"read reset", Fault{Operation: OpRead, Started: true, Code: "ECONNRESET"}, ReasonTimeout, true, EffectNone, "C2.3/transport"},
		{"read unreadable", Fault{Operation: OpRead, Status: 200}, ReasonTimeout, true, EffectNone, "C2.3/answer_unreadable"},
		{"typing unknown text", Fault{Operation: OpTyping, Message: "odd"}, ReasonUnclassified, false, EffectUnknown, "C2.3/unclassified"},
		{"redirect", Fault{Operation: OpEdit, Status: 302}, ReasonUnclassified, false, EffectUnknown, "C2.3/redirect"},

		// C2.4: other writes wait up to 5 min for a 429.
		{"write 429", Fault{Operation: OpWrite, Status: 429, Body: body(`{"retry_after":300}`)}, ReasonRateLimit, true, EffectNotSent, "C2.4/rate_limit"},
		{"write 429 too long", Fault{Operation: OpWrite, Status: 429, Body: body(`{"retry_after":301}`)}, ReasonRateLimit, false, EffectNotSent, "C2.4/rate_limit_too_long"},
		{"write 500", Fault{Operation: OpWrite, Status: 500}, ReasonServerError, false, EffectUnknown, "C2.4/server_error"},
		{"write not started", Fault{Operation: OpWrite, NotStarted: true}, ReasonTimeout, true, EffectNotSent, "C2.4/not_started"},
	} {
		tc.check(t, SurfaceDiscord)
	}
}

func TestDiscordDeleteOfNothing(t *testing.T) {
	t.Parallel()
	// C2.3: success only after an earlier lost response, and only for 10008.
	gone := Fault{Surface: SurfaceDiscord, Operation: OpDelete, Status: 404, Body: body(`{"message":"Unknown Message","code":10008}`)}
	if v := Judge(&gone); v.Success || v.Reason != ReasonNotFound || !v.Permanent {
		t.Errorf("first attempt: %+v", v)
	}
	gone.LostEarlier = true
	if v := Judge(&gone); !v.Success || v.Effect != EffectSent || v.RetrySame {
		t.Errorf("after a loss: %+v", v)
	}
	gone.Body = body(`{"message":"Unknown Channel","code":10003}`)
	if v := Judge(&gone); v.Success {
		t.Errorf("unknown channel: %+v", v)
	}
	gone.Body = nil
	if v := Judge(&gone); v.Success || v.RetrySame {
		t.Errorf("unreadable body: %+v", v)
	}
}

func TestDiscordRateLimit(t *testing.T) {
	t.Parallel()
	// C2: a global 429 is told from one of a bucket.
	for _, f := range []Fault{
		{Body: body(`{"global":true}`)},
		{Header: http.Header{"X-Ratelimit-Global": {"true"}}},
		{Header: http.Header{"X-Ratelimit-Scope": {"global"}}},
	} {
		if !DiscordRateLimit(&f).Global {
			t.Errorf("%+v: want global", f)
		}
	}
	f := Fault{Body: body(`{"global":false}`), Header: http.Header{"X-Ratelimit-Bucket": {"abc"}, "X-Ratelimit-Scope": {"user"}}}
	if got := DiscordRateLimit(&f); got != (DiscordLimit{Bucket: "abc"}) {
		t.Errorf("%+v", got)
	}
}

func TestJudgeTelegram(t *testing.T) {
	t.Parallel()
	described := func(code, text string) []byte {
		return body(`{"ok":false,"error_code":` + code + `,"description":"` + text + `"}`)
	}
	for _, tc := range []verdictCase{
		// C2.5: flood control, not started, 421, and nothing else.
		{"send 429", Fault{Operation: OpSend, Status: 429}, ReasonRateLimit, true, EffectNotSent, "C2.5/rate_limit"},
		{"send not started", Fault{Operation: OpSend, NotStarted: true}, ReasonTimeout, true, EffectNotSent, "C2.5/not_started"},
		{"send 421", Fault{Operation: OpSend, Status: 421}, ReasonMisdirected, true, EffectNotSent, "C2.5/misdirected"},
		{"send 500", Fault{Operation: OpSend, Status: 500, Body: described("500", "Internal")}, ReasonServerError, false, EffectUnknown, "C2.5/server_error"},
		{"send reset", Fault{Operation: OpSend, Started: true, Code: "ECONNRESET"}, ReasonTimeout, false, EffectUnknown, "C2.5/transport"},
		{"send connect timeout of a foreign client", Fault{Operation: OpSend, Code: "UND_ERR_CONNECT_TIMEOUT"}, ReasonTimeout, false, EffectUnknown, "C2.5/transport"},
		{"send receipt lost", Fault{Operation: OpSend, Status: 200}, ReasonTimeout, false, EffectUnknown, "C2.5/receipt_lost"},
		{"send 403", Fault{Operation: OpSend, Status: 403, Body: described("403", "Forbidden: bot was blocked by the user")}, ReasonPermission, false, EffectNotSent, "C2.5/permission"},
		{"send chat not found", Fault{Operation: OpSend, Status: 400, Body: described("400", "Bad Request: chat not found")}, ReasonNotFound, false, EffectNotSent, "C2.5/not_found"},
		{"send no rights", Fault{Operation: OpSend, Status: 400, Body: described("400", "Bad Request: not enough rights to send text messages to the chat")}, ReasonPermission, false, EffectNotSent, "C2.5/permission"},
		{"send empty", Fault{Operation: OpSend, Status: 400, Body: described("400", "Bad Request: message text is empty")}, ReasonFormat, false, EffectNotSent, "C2.5/format"},
		{"text 500 does not count", Fault{Operation: OpSend, Message: "500: Internal Server Error"}, ReasonUnclassified, false, EffectUnknown, "C2.5/unclassified"},
		{"aggregate with one that proves nothing", Fault{Operation: OpSend, Causes: []Fault{{Code: "ECONNREFUSED"}, {Code: "ECONNRESET"}}}, ReasonTimeout, false, EffectUnknown, "C2.5/transport"},
		{"aggregate that proves", Fault{Operation: OpSend, Code: "ERR_NETWORK", Causes: []Fault{{Code: "ECONNREFUSED"}, {Code: "ENETUNREACH"}}}, ReasonTimeout, true, EffectNotSent, "C2.5/not_started"},
		{"error_code behind a proxy's 200", Fault{Operation: OpSend, Status: 200, Body: described("403", "Forbidden")}, ReasonPermission, false, EffectNotSent, "C2.5/permission"},

		// C2.6: edits, deletes, reactions, chat actions, callback answers.
		{"edit 500", Fault{Operation: OpEdit, Status: 500}, ReasonServerError, true, EffectUnknown, "C2.6/server_error"},
		{"edit reset", Fault{Operation: OpEdit, Started: true, Code: "ECONNRESET"}, ReasonTimeout, true, EffectUnknown, "C2.6/transport"},
		{"edit gone", Fault{Operation: OpEdit, Status: 400, Body: described("400", "Bad Request: message to edit not found")}, ReasonNotFound, false, EffectNotSent, "C2.6/target_gone"},
		{"edit not allowed", Fault{Operation: OpEdit, Status: 400, Body: described("400", "Bad Request: message can't be edited")}, ReasonNotFound, false, EffectNotSent, "C2.6/target_gone"},
		{"edit invalid id", Fault{Operation: OpEdit, Status: 400, Body: described("400", "Bad Request: MESSAGE_ID_INVALID")}, ReasonNotFound, false, EffectNotSent, "C2.6/target_gone"},
		{"poll reset", Fault{Operation: OpPoll, Started: true, Code: "ECONNRESET"}, ReasonTimeout, true, EffectNone, "C2.6/transport"},
		{"poll conflict", Fault{Operation: OpPoll, Status: 409}, ReasonConflict, false, EffectNone, "C2.6/conflict"},

		// C2.7: a parse error is no retry; the caller sends plain text.
		{"parse error", Fault{Operation: OpSend, Status: 400, Body: described("400", "Bad Request: can't parse entities: Unsupported start tag")}, ReasonParseError, false, EffectNotSent, "C2.7/parse_error"},
		{"rich message", Fault{Operation: OpSend, Status: 400, Body: described("400", "Bad Request: RICH_MESSAGE_INVALID")}, ReasonParseError, false, EffectNotSent, "C2.7/parse_error"},
		{"parse error of an edit", Fault{Operation: OpEdit, Message: "Bad Request: can't parse entities"}, ReasonParseError, false, EffectNotSent, "C2.7/parse_error"},
		{"a 500 is no parse error", Fault{Operation: OpSend, Status: 500, Message: "can't parse entities"}, ReasonServerError, false, EffectUnknown, "C2.5/server_error"},
	} {
		tc.check(t, SurfaceTelegram)
	}
}

func TestTelegramSuccesses(t *testing.T) {
	t.Parallel()
	// C2.6: "message is not modified" is success, whatever came before.
	f := Fault{Surface: SurfaceTelegram, Operation: OpEdit, Status: 400, Body: body(`{"error_code":400,"description":"Bad Request: message is not modified: …"}`)}
	if v := Judge(&f); !v.Success || v.Effect != EffectSent || v.RetrySame || v.Permanent {
		t.Errorf("%+v", v)
	}
	f = Fault{Surface: SurfaceTelegram, Operation: OpDelete, Status: 400, Message: "Bad Request: message to delete not found"}
	if v := Judge(&f); v.Success || v.Reason != ReasonNotFound {
		t.Errorf("first delete: %+v", v)
	}
	f.LostEarlier = true
	if v := Judge(&f); !v.Success {
		t.Errorf("delete after a loss: %+v", v)
	}
}

func TestTelegramMigration(t *testing.T) {
	t.Parallel()
	// C2: migrate_to_chat_id retargets once.
	f := Fault{Surface: SurfaceTelegram, Operation: OpSend, Status: 400, Body: body(`{"ok":false,"error_code":400,"description":"Bad Request: group chat was upgraded to a supergroup chat","parameters":{"migrate_to_chat_id":-1001234567890123}}`)}
	if id, ok := TelegramMigration(&f); !ok || id != "-1001234567890123" {
		t.Errorf("%q, %v", id, ok)
	}
	if v := Judge(&f); v.Permanent || v.RetrySame || v.Effect != EffectNotSent || v.Rule != "C2/migrated" {
		t.Errorf("%+v", v)
	}
	f.Body = body(`{"parameters":{"migrate_to_chat_id":1.5}}`)
	if _, ok := TelegramMigration(&f); ok {
		t.Error("1.5 is no chat")
	}
}

func TestJudgeDelivery(t *testing.T) {
	t.Parallel()
	for _, tc := range []verdictCase{
		// D10: permanent refusals fail at once; an adapter that is not ready is transient.
		{"no conversation", Fault{Message: "No conversation reference found for user"}, ReasonNotFound, false, EffectNotSent, "D10/not_found"},
		{"chat not found", Fault{Message: "400: Bad Request: chat not found"}, ReasonNotFound, false, EffectNotSent, "D10/not_found"},
		{"ambiguous", Fault{Message: `Ambiguous Discord recipient "42"`}, ReasonNotFound, false, EffectNotSent, "D10/not_found"},
		{"not in room", Fault{Message: "MatrixError: [403] User @bot:matrix.org not in room !mixedCase"}, ReasonPermission, false, EffectNotSent, "D10/permission"},
		{"not ready", Fault{Message: "Outbound not configured for channel: teams"}, ReasonUnclassified, true, EffectNotSent, "D10/adapter_not_ready"},
		{"403", Fault{Status: 403}, ReasonPermission, false, EffectNotSent, "D10/permission"},
		// D12: proof clears the evidence, everything else makes unknown.
		{"not started", Fault{NotStarted: true}, ReasonTimeout, true, EffectNotSent, "D12/not_started"},
		{"refused", Fault{Code: "ECONNREFUSED", Syscall: "connect"}, ReasonTimeout, true, EffectNotSent, "D12/not_started"},
		{"refused elsewhere", Fault{Code: "ECONNREFUSED", Syscall: "read"}, ReasonTimeout, false, EffectUnknown, "D12/transport"},
		{"refused after start", Fault{Started: true, Code: "ECONNREFUSED", Syscall: "connect"}, ReasonTimeout, false, EffectUnknown, "D12/transport"},
		{"429", Fault{Status: 429}, ReasonRateLimit, true, EffectNotSent, "D12/rate_limit"},
		{"500", Fault{Status: 500}, ReasonServerError, false, EffectUnknown, "D12/server_error"},
		{"anything", Fault{Message: "network down"}, ReasonUnclassified, false, EffectUnknown, "D12/unclassified"},
		{"nothing", Fault{}, ReasonUnclassified, false, EffectUnknown, "D12/unclassified"},
	} {
		tc.check(t, SurfaceDelivery)
	}
}

// anyFault draws faults of all shapes, sensible or not.
func anyFault(surfaces ...Surface) *rapid.Generator[Fault] {
	words := []string{
		"", "ECONNRESET", "ECONNREFUSED", "EAI_AGAIN", "UND_ERR_CONNECT_TIMEOUT", "AbortError", "429", "10008", "timed out", "fetch failed",
		"message is not modified", "can't parse entities", "chat not found", "Connection reset by peer", "cannot lock ref", "403",
	}
	var draw func(t *rapid.T, depth int) Fault
	draw = func(t *rapid.T, depth int) Fault {
		word := rapid.OneOf(rapid.SampledFrom(words), rapid.String())
		f := Fault{
			Surface: rapid.SampledFrom(surfaces).Draw(t, "surface"),
			Operation: rapid.SampledFrom([]Operation{OpCreate, OpSend, OpWebhook, OpEdit, OpDelete, OpReact, OpPin, OpTyping, OpRead, OpWrite, OpPoll,
				OpLsRemote, OpFetch, OpClone, OpPush, "", "odd"}).Draw(t, "operation"),
			Status: rapid.OneOf(rapid.SampledFrom([]int{0, 200, 302, 400, 401, 403, 404, 408, 421, 429, 500, 502, 503}), rapid.Int()).Draw(t, "status"),
			Code:   word.Draw(t, "code"), Message: word.Draw(t, "message"), Stderr: word.Draw(t, "stderr"), Type: word.Draw(t, "type"),
			Syscall:    rapid.SampledFrom([]string{"", "connect", "getaddrinfo", "read"}).Draw(t, "syscall"),
			NotStarted: rapid.Bool().Draw(t, "not started"), LostEarlier: rapid.Bool().Draw(t, "lost"), SinceFirst: anyDuration().Draw(t, "since"),
			Body:   []byte(rapid.SampledFrom([]string{"", "{}", `{"retry_after":1e9}`, `{"parameters":{"retry_after":3}}`, `{"code":10008}`, "<html>"}).Draw(t, "body")),
			Header: http.Header{"Retry-After": {word.Draw(t, "retry-after")}},
		}
		f.Started = !f.NotStarted && rapid.Bool().Draw(t, "started")
		if depth > 0 {
			for range rapid.IntRange(0, 2).Draw(t, "causes") {
				f.Causes = append(f.Causes, draw(t, depth-1))
			}
		}
		return f
	}
	return rapid.Custom(func(t *rapid.T) Fault { return draw(t, 2) })
}

func TestVerdictsAreTotal(t *testing.T) {
	t.Parallel()
	// P4.14, C2: every fault has a verdict, always the same, and one that keeps
	// the third rule: no second request without proof or a key.
	rapid.Check(t, func(t *rapid.T) {
		f := anyFault(SurfaceDiscord, SurfaceTelegram, SurfaceGit, SurfaceDelivery).Draw(t, "fault")
		wantSoundVerdict(t, &f)
	})
}

func wantSoundVerdict(t interface{ Fatalf(string, ...any) }, f *Fault) {
	v := Judge(f)
	again := *f
	if v != Judge(&again) {
		t.Fatalf("two verdicts on %+v", f)
	}
	switch {
	case !surfaceReasons[v.Reason], v.Effect == "", !strings.Contains(v.Rule, "/"), v.Failover:
		t.Fatalf("not a verdict: %+v", v)
	case v.RetrySame && (v.Permanent || v.Success || v.Effect == EffectSent):
		t.Fatalf("repeated in vain: %+v", v)
	case v.Floor.Wait < 0 || !v.Floor.Asked() && v.Floor != (Floor{}):
		t.Fatalf("floor: %+v", v)
	}
	once := f.Surface == SurfaceDelivery || f.Surface == SurfaceTelegram && telegramRules(f.Operation).class == repeatProved ||
		f.Surface == SurfaceDiscord && discordRules(f.Operation).class == repeatProved
	switch {
	case once && v.RetrySame && v.Effect != EffectNotSent:
		t.Fatalf("%s %s: a repeat could double: %+v", f.Surface, f.Operation, v)
	case f.Surface == SurfaceDiscord && f.Operation == OpCreate && v.RetrySame && v.Effect == EffectUnknown && f.SinceFirst > NonceWindow:
		t.Fatalf("a create outside its window: %+v", v)
	case f.Surface == SurfaceGit && f.Operation == OpPush && v.RetrySame:
		t.Fatalf("a push is repeated: %+v", v)
	}
}

// surfaceReasons are the words of P4.14.
var surfaceReasons = map[Reason]bool{
	ReasonRateLimit: true, ReasonServerError: true, ReasonTimeout: true, ReasonAuth: true, ReasonPermission: true,
	ReasonNotFound: true, ReasonFormat: true, ReasonParseError: true, ReasonMisdirected: true, ReasonConflict: true,
	ReasonNoSpace: true, ReasonLock: true, ReasonTLS: true, ReasonKeyConflict: true, ReasonWorkerLost: true,
	ReasonUnclassified: true, ReasonCancelled: true, ReasonDeadline: true,
}

func FuzzJudgeChannel(f *testing.F) {
	for _, s := range []struct {
		surface, op string
		status      int
		body, code  string
		started     bool
	}{
		{"discord", "create", 429, `{"retry_after":0.5,"global":true}`, "", true},
		{"discord", "create", 502, `<html>bad gateway</html>`, "", true},
		{"discord", "delete", 404, `{"code":10008}`, "", true},
		{"discord", "webhook", 0, ``, "ECONNREFUSED", false},
		{"discord", "edit", 0, ``, "UND_ERR_SOCKET", true},
		{"discord", "write", 429, `{"retry_after":1e308}`, "", true},
		{"telegram", "send", 429, `{"error_code":429,"parameters":{"retry_after":5}}`, "", true},
		{"telegram", "send", 400, `{"error_code":400,"description":"can't parse entities"}`, "", true},
		{"telegram", "edit", 400, `{"error_code":400,"description":"message is not modified"}`, "", true},
		{"telegram", "send", 400, `{"parameters":{"migrate_to_chat_id":-100}}`, "", true},
		{"telegram", "poll", 0, ``, "ENOTFOUND", false},
		{"delivery", "", 0, `{"description":"chat not found"}`, "EAI_AGAIN", false},
	} {
		f.Add(s.surface, s.op, s.status, []byte(s.body), s.code, "5", s.started)
	}
	f.Fuzz(func(t *testing.T, surface, op string, status int, body []byte, code, header string, started bool) {
		if surface != "discord" && surface != "telegram" {
			surface = "delivery"
		}
		wantSoundVerdict(t, &Fault{
			Surface: Surface(surface), Operation: Operation(op), Status: status, Body: body, Code: code, Message: string(body),
			Header: http.Header{"Retry-After": {header}}, Started: started, Now: time.Unix(1_790_000_000, 0),
		})
	})
}
