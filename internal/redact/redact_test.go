package redact

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// G9, I4: no credential appears in logs or errors, whatever wrote them.
func TestStringShapes(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, in, want string }{
		{"bearer header", "Authorization: Bearer abc.def-123", "Authorization: [redacted]"},
		{"header to the end of its line", "authorization: Digest a=\"b\", c=\"d\"\nHost: x", "authorization: [redacted]\nHost: x"},
		{"Go header map", "map[Authorization:[Bearer abcdef12] Host:[x]]", "map[Authorization:[redacted] Host:[x]]"},
		{"JSON header", `{"Authorization":"Bearer abc","status":500}`, `{"Authorization":"[redacted]","status":500}`},
		{"JSON header with an escape", `{"Authorization":"a\"b c","status":500}`, `{"Authorization":"[redacted]","status":500}`},
		{"JSON in JSON", `{"m":"{\"x-api-key\":\"abc\",\"a\":1}"}`, `{"m":"{\"x-api-key\":\"[redacted]\",\"a\":1}"}`},
		{"proxy header", "Proxy-Authorization: Basic dXNlcjpwYXNz", "Proxy-Authorization: [redacted]"},
		{"cookie", "Set-Cookie: a=b; c=d", "Set-Cookie: [redacted]"},
		{"bearer in words", "sent bearer abc12345 twice", "sent bearer [redacted] twice"},
		{"bearer as a word", "Bearer authentication failed", "Bearer authentication failed"},
		{"basic in words", "used Basic dXNlcjpwYXNz here", "used Basic [redacted] here"},
		{"basic as a word", "basic requirements are met", "basic requirements are met"},
		{"telegram path", `Post "http://127.0.0.1:9003/bot123:ABC-d_e/sendMessage": EOF`, `Post "http://127.0.0.1:9003/bot[redacted]/sendMessage": EOF`},
		{"telegram path, escaped", "/bot123%3AABC/getMe", "/bot[redacted]/getMe"},
		{"telegram token alone", "token 123456789:AAExampleExampleExampleExampleExampl0 bad", "token [redacted] bad"},
		{"time of day", "12:30 and 1234567:30", "12:30 and 1234567:30"},
		{"discord token", "x MTIzNDU2Nzg5MDEyMzQ1Njc4.GabcdE.abcdefghijklmnopqrstuvwxyz0123 y", "x [redacted] y"},
		{"discord webhook", "https://discord.com/api/webhooks/123/abc_DEF-1?wait=true", "https://discord.com/api/webhooks/123/[redacted]?wait=true"},
		{"openai key", "Incorrect API key provided: sk-proj-abcdEFGH1234.", "Incorrect API key provided: [redacted]."},
		{"not a key", "task-management and risk-averse", "task-management and risk-averse"},
		{"google key", "AIzaSyA1234567890123456789012345678901", "[redacted]"},
		{"github token", "ghp_abcdefghijklmnopqrstuvwxyz0123456789", "[redacted]"},
		{"jwt", "got eyJhbGciOiJI.eyJzdWIiOiIx.c2ln", "got [redacted]"},
		{"userinfo", "clone https://user:p@ss@example.com/x.git failed", "clone https://[redacted]@example.com/x.git failed"},
		{"address in a path", "https://example.com/@user", "https://example.com/@user"},
		{"query", "GET /v1?a=1&access_token=abc&key=def#x", "GET /v1?a=1&access_token=[redacted]&key=[redacted]"},
		{"a workflow key is no secret", "key=send/123 tokens=50", "key=send/123 tokens=50"},
		{"assignment, quoted", `password="a b\"c" x=1`, `password="[redacted]" x=1`},
		{"JSON member", `{"refresh_token": "abc", "n": 1}`, `{"refresh_token": "[redacted]", "n": 1}`},
		{"JSON member in JSON", `"{\"api_key\": \"abc\"}"`, `"{\"api_key\": \"[redacted]\"}"`},
		{"private key", "a\n-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n-----END OPENSSH PRIVATE KEY-----\nb", "a\n[redacted]\nb"},
		{"private key, cut", "-----BEGIN RSA PRIVATE KEY-----\nAAAA", "[redacted]"},
		{"plain", "[RETRY] openai/gpt-5.1 attempt=2/16 reason=rate_limit floor=2s next_in=2.1s", "[RETRY] openai/gpt-5.1 attempt=2/16 reason=rate_limit floor=2s next_in=2.1s"},
		{"empty", "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := String(tt.in); got != tt.want {
				t.Errorf("String(%q)\n got %q\nwant %q", tt.in, got, tt.want)
			}
			if again := String(tt.want); again != tt.want {
				t.Errorf("not stable: %q became %q", tt.want, again)
			}
		})
	}
}

func TestRegistry(t *testing.T) {
	t.Parallel()
	var r Registry
	r.Add("hunter2-long", "2-longer", "a b/c\"dé", "short", " padded-value\n", "")
	tests := []struct{ name, in, want string }{
		{"alone", "hunter2-long", Mark},
		{"twice", "hunter2-long,hunter2-long", Mark + "," + Mark},
		{"touching", "hunter2-longhunter2-long", Mark + Mark},
		{"overlapping", "x hunter2-longer y", "x " + Mark + " y"},
		{"as a query", "?q=a+b%2Fc%22d%C3%A9", "?q=" + Mark},
		{"as JSON", `{"m":"a b/c\"dé"}`, `{"m":"` + Mark + `"}`},
		{"trimmed", "<padded-value>", "<" + Mark + ">"},
		{"too short to hide", "short", "short"},
		{"a beginning only", "hunter2-lon", "hunter2-lon"},
	}
	for _, tt := range tests {
		if got := r.String(tt.in); got != tt.want {
			t.Errorf("%s: String(%q) = %q, want %q", tt.name, tt.in, got, tt.want)
		}
	}
}

func TestRegistryForgetsTheOldest(t *testing.T) {
	t.Parallel()
	var r Registry
	r.Add("oldest-value")
	for i := range maxKnown {
		r.Add("value-" + strings.Repeat("x", 3) + string(rune('a'+i%26)) + strings.Repeat("y", i/26))
	}
	if got := r.String("oldest-value"); got != "oldest-value" {
		t.Errorf("a registry of %d values still knows the one before them: %q", maxKnown, got)
	}
	if len(r.order) != maxKnown {
		t.Errorf("%d values are kept, want %d", len(r.order), maxKnown)
	}
}

// A registered value is gone wherever it stands, and the rest stays.
func TestRegistryProperty(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		secrets := rapid.SliceOfN(rapid.StringMatching(`[a-c]{6,12}`), 1, 4).Draw(t, "secrets")
		text := rapid.StringMatching(`[a-c .]{0,60}`).Draw(t, "text")
		at := rapid.IntRange(0, len(text)).Draw(t, "at")
		secret := rapid.SampledFrom(secrets).Draw(t, "secret")
		var r Registry
		r.Add(secrets...)
		got := r.String(text[:at] + secret + text[at:])
		for _, s := range secrets {
			if strings.Contains(got, s) {
				t.Fatalf("%q is left in %q", s, got)
			}
		}
		if strings.Count(got, ".") != strings.Count(text, ".") {
			t.Fatalf("text around the secrets was lost: %q became %q", text, got)
		}
	})
}

func TestError(t *testing.T) {
	t.Parallel()
	if got := Error(nil); got != "" {
		t.Errorf("Error(nil) = %q", got)
	}
}

func FuzzString(f *testing.F) {
	for _, seed := range []string{
		"Authorization: Bearer abc", `{"Authorization":"x"}`, "https://u:p@h/", "bot1:a", "?key=a&token=b",
		`{"token":"a\"b"}`, "sk-aaaaaaaaaa", "cookie=[", "api-key: \\\"x\\\"", "bearer bearer bearer 1",
		"-----BEGIN PRIVATE KEY-----", "\xff\xfe=token=\xff", "password=[redacted]", "the-registered-value",
	} {
		f.Add(seed)
	}
	var r Registry
	r.Add("the-registered-value")
	f.Fuzz(func(t *testing.T, s string) {
		once := r.String(s)
		if twice := r.String(once); twice != once {
			t.Errorf("not stable: %q, %q, %q", s, once, twice)
		}
		if strings.Contains(once, "the-registered-value") {
			t.Errorf("the registered value is left in %q", once)
		}
	})
}

func BenchmarkString64KiB(b *testing.B) {
	text := strings.Repeat("token= bearer x authorization ", 64<<10/30)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		String(text)
	}
}
