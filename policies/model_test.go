package policies

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

var testNow = time.Date(2026, 9, 20, 12, 0, 0, 0, time.UTC)

// P4.1–P4.12: answers of real providers, as they come over the wire.
func TestJudgeModelProviderBodies(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name     string
		provider string
		status   int
		body     string
		want     Reason
		rule     string
	}{
		// P4.1: 429 and what it may be instead.
		{"openai tpm", "openai", 429, `{"error":{"message":"Rate limit reached for gpt-4o in organization org-x on tokens per min (TPM): Limit 30000, Used 28000, Requested 4000. Please try again in 4s.","type":"tokens","code":"rate_limit_exceeded"}}`, ReasonRateLimit, "P4.1/rate_limit"},
		{"gemini per minute", "google", 429, `[{"error":{"code":429,"message":"Quota exceeded","status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":[{"quotaId":"GenerateRequestsPerMinutePerProjectPerModel-FreeTier"}]}]}}]`, ReasonRateLimit, "P4.1/rate_limit"},
		{"azure", "azure-openai", 429, `{"error":{"code":"429","message":"Requests to the ChatCompletions_Create Operation have exceeded token rate limit of your current OpenAI S0 pricing tier. Please retry after 20 seconds."}}`, ReasonRateLimit, "P4.1/rate_limit"},
		{"zai arrears", "zai", 429, `{"error":{"code":"1113","message":"Insufficient balance or no resource package. Please recharge."}}`, ReasonBilling, "P4.1/billing"},
		{"zai concurrency", "zai", 429, `{"error":{"code":"1302","message":"High concurrency usage of this API, please reduce concurrency"}}`, ReasonRateLimit, "P4.1/rate_limit"},
		{"balance is a rate elsewhere", "openai", 429, `{"error":{"message":"insufficient account balance"}}`, ReasonRateLimit, "P4.1/rate_limit"},
		{"balance is money at moonshot", "moonshot", 429, `{"error":{"message":"insufficient account balance"}}`, ReasonBilling, "P4.1/billing"},
		{"overflow at 429", "anthropic", 429, `{"error":{"message":"prompt is too long: 300000 tokens > 200000 maximum"}}`, ReasonContextOverflow, "P4.1/context_overflow"},
		{"groq too large", "groq", 413, `{"error":{"message":"Request too large for model x on tokens per minute (TPM): Limit 6,000, Requested 9,000, please reduce your message size","type":"tokens","code":"rate_limit_exceeded"}}`, ReasonRequestTooLarge, "P4.7/request_too_large"},
		{"openai too large", "openai", 429, `{"error":{"message":"Request too large for gpt-4o on tokens per min (TPM): Limit 30000, Requested 40000.","code":"rate_limit_exceeded"}}`, ReasonRequestTooLarge, "P4.7/request_too_large"},
		{"bedrock throttle in 400", "bedrock", 400, `{"__type":"com.amazon.coral.service#ThrottlingException","message":"Rate exceeded"}`, ReasonRateLimit, "P4.1/rate_limit"},
		// P4.2 and P4.3
		{"anthropic overloaded in a stream", "anthropic", 200, "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n", ReasonOverloaded, "P4.2/overloaded"},
		{"at capacity in camel case", "", 500, `{"error":"ModelAtCapacity: engine AtCapacity"}`, ReasonOverloaded, "P4.2/overloaded"},
		{"llama.cpp loading", "llamacpp", 503, `{"error":{"code":503,"message":"Loading model","type":"unavailable_error"}}`, ReasonOverloaded, "P4.2/overloaded"},
		{"page that mentions a rate limit", "openai", 503, "<!DOCTYPE html><html><body>Rate limit exceeded, billing, context length exceeded</body></html>", ReasonServerError, "P4.3/server_error"},
		{"page at 403", "openai", 403, "  <HTML><body>key revoked</body></HTML>", ReasonPermission, "P4.4/permission"},
		{"page inside JSON", "openai", 502, `{"error":{"message":"<html><body>insufficient credits</body></html>"}}`, ReasonServerError, "P4.3/server_error"},
		{"billing words do not outrank 500", "openai", 500, `{"error":{"message":"insufficient credits"}}`, ReasonServerError, "P4.3/server_error"},
		{"530", "openai", 530, `origin`, ReasonServerError, "P4.3/server_error"},
		// P4.4
		{"revoked", "openai", 401, `{"error":{"message":"This key was revoked","code":"invalid_api_key"}}`, ReasonAuthPermanent, "P4.4/auth_permanent"},
		{"billing at 403", "xai", 403, `{"error":"Your team has used all available credits"}`, ReasonBilling, "P4.4/billing"},
		{"xai away", "xai", 401, `{"error":"Authentication required"}`, ReasonTimeout, "P4.4/xai_transient"},
		{"others are not away", "openai", 401, `{"error":"Authentication required"}`, ReasonAuth, "P4.4/auth"},
		{"proxy", "openai", 407, `{"error":"Proxy Authentication Required"}`, ReasonAuth, "P4.4/proxy_auth"},
		{"402 weekly", "openai", 402, `{"error":"Weekly usage limit reached"}`, ReasonQuotaExhausted, "P4.6/long_window"},
		{"openrouter credits", "openrouter", 402, `{"error":{"message":"This request requires more credits, or fewer max_tokens.","code":402}}`, ReasonBilling, "P4.4/billing"},
		// P4.5
		{"400 without a body", "openai", 400, "", ReasonUnclassified, "P4.5/no_body"},
		{"422 of blanks", "openai", 422, " \n", ReasonUnclassified, "P4.5/no_body"},
		{"400 as the SDK puts it", "openai", 0, "400 status code (no body)", ReasonUnclassified, "P4.5/no_body"},
		{"fastapi", "vllm", 422, `{"detail":[{"type":"missing","loc":["body","model"],"msg":"Field required"}]}`, ReasonFormat, "P4.5/validation"},
		{"timeout as a parameter", "openai", 400, `{"error":{"message":"Invalid value for parameter 'timeout'"}}`, ReasonFormat, "P4.5/format"},
		{"code against prose", "openai", 400, `{"error":{"message":"Bad tools","code":"RATE_LIMITED"}}`, ReasonRateLimit, "P4.1/rate_limit"},
		{"409 of an SDK that retries it", "anthropic", 409, `{"error":{"message":"conflict"}}`, ReasonServerError, "P4.5/conflict"},
		{"409 elsewhere", "ollama", 409, `{"error":"conflict"}`, ReasonFormat, "P4.5/conflict_format"},
		{"410 model", "openai", 410, `{"error":"model x has been retired"}`, ReasonModelNotFound, "P4.8/model_not_found"},
		{"410 else", "openai", 410, `{"error":"gone"}`, ReasonTimeout, "P4.5/gone"},
		{"auth at 400", "google", 400, `{"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT","details":[{"reason":"API_KEY_INVALID"}]}}`, ReasonAuth, "P4.4/auth"},
		// P4.6
		{"insufficient quota", "openai", 429, `{"error":{"message":"You exceeded your current quota, please check your plan and billing details.","type":"insufficient_quota","code":"insufficient_quota"}}`, ReasonQuotaExhausted, "P4.6/long_window"},
		{"chatgpt plan", "openai-codex", 429, `{"error":{"type":"usage_limit_reached","message":"The usage limit has been reached","plan_type":"plus","resets_in_seconds":7200}}`, ReasonQuotaExhausted, "P4.6/long_window"},
		{"gemini per day", "google", 429, `{"error":{"code":429,"message":"Resource has been exhausted","status":"RESOURCE_EXHAUSTED","details":[{"violations":[{"quotaId":"GenerateRequestsPerDayPerProjectPerModel-FreeTier"}]}]}}`, ReasonQuotaExhausted, "P4.6/long_window"},
		{"short hint keeps it", "google", 429, `{"error":{"code":429,"message":"You exceeded your current quota. Please retry in 38.2s.","status":"RESOURCE_EXHAUSTED"}}`, ReasonRateLimit, "P4.1/rate_limit"},
		{"short unit keeps it", "google", 429, `{"error":{"message":"Daily quota fine, but quota exceeded for requests per minute"}}`, ReasonRateLimit, "P4.1/rate_limit"},
		{"long retry-after alone", "openai", 429, `{"error":{"message":"Rate limit exceeded, try again in 3 hours"}}`, ReasonRateLimit, "P4.1/rate_limit"},
		{"chinese weekly", "zai", 429, `{"error":{"message":"已达到每周/每月使用上限"}}`, ReasonQuotaExhausted, "P4.6/long_window"},
		{"chinese pace", "zai", 429, `{"error":{"message":"请求过于频繁，额度已用尽"}}`, ReasonRateLimit, "P4.1/rate_limit"},
		{"kimi weekly", "kimi", 403, `{"error":{"type":"access_terminated_error","message":"You've reached your weekly usage limit"}}`, ReasonQuotaExhausted, "P4.6/long_window"},
		{"anthropic spend", "anthropic", 400, `{"type":"error","error":{"type":"invalid_request_error","message":"You have reached your specified API usage limits. You will regain access on 2026-10-01."}}`, ReasonQuotaExhausted, "P4.6/long_window"},
		// P4.8
		{"ollama", "ollama", 404, `{"error":"model \"llama9\" not found, try pulling it first"}`, ReasonModelNotFound, "P4.8/model_not_found"},
		{"azure deployment", "azure", 404, `{"error":{"code":"DeploymentNotFound","message":"The API deployment for this resource does not exist."}}`, ReasonModelNotFound, "P4.8/model_not_found"},
		{"bedrock id", "bedrock", 400, `{"message":"The provided model identifier is invalid."}`, ReasonModelNotFound, "P4.8/model_not_found"},
		{"codex account", "openai-codex", 400, `{"detail":"The 'gpt-9' model is not supported when using Codex with a ChatGPT account."}`, ReasonModelNotFound, "P4.8/model_not_found"},
		{"images to a blind model", "openrouter", 404, `{"error":{"message":"No endpoints found that support image input","code":404}}`, ReasonFormat, "P4.5/format"},
		{"llama.cpp context", "llamacpp", 400, `{"error":{"code":400,"message":"the request exceeds the available context size, try increasing it","type":"exceed_context_size_error","n_ctx":4096}}`, ReasonContextOverflow, "P4.8/context_overflow"},
		{"vllm context", "vllm", 400, `{"object":"error","message":"This model's maximum context length is 4096 tokens. However, you requested 5000 tokens","type":"BadRequestError","code":400}`, ReasonContextOverflow, "P4.8/context_overflow"},
		{"bedrock context", "bedrock", 400, `{"message":"Input is too long for requested model."}`, ReasonContextOverflow, "P4.8/context_overflow"},
		{"gemini context", "google", 400, `{"error":{"code":400,"message":"The input token count (1050000) exceeds the maximum number of tokens allowed (1048576).","status":"INVALID_ARGUMENT"}}`, ReasonContextOverflow, "P4.8/context_overflow"},
		{"anthropic 413", "anthropic", 413, `{"type":"error","error":{"type":"request_too_large","message":"Request exceeds the maximum size"}}`, ReasonContextOverflow, "P4.8/context_overflow"},
		{"nginx 413", "openai", 413, "<html>413 Request Entity Too Large</html>", ReasonContextOverflow, "P4.8/context_overflow"},
		// P4.9
		{"azure filter", "azure", 400, `{"error":{"code":"content_filter","message":"The response was filtered","innererror":{"code":"ResponsibleAIPolicyViolation"}}}`, ReasonRefusal, "P4.9/refusal"},
		{"openai policy", "openai", 400, `{"error":{"code":"invalid_prompt","message":"Invalid prompt: your prompt was flagged as potentially violating our usage policy."}}`, ReasonRefusal, "P4.9/refusal"},
		// P4.10: inside a 200 stream
		{"response.failed", "openai", 200, `{"type":"response.failed","response":{"status":"failed","instructions":"never say rate limit","error":{"code":"server_error","message":"An error occurred while processing your request."}}}`, ReasonServerError, "P4.3/server_error"},
		{"response.failed rate", "openai", 200, `{"type":"response.failed","response":{"error":{"code":"rate_limit_exceeded","message":"Slow down"}}}`, ReasonRateLimit, "P4.1/rate_limit"},
		{"chat frame", "groq", 200, `data: {"error":{"message":"Rate limit exceeded","status_code":429}}`, ReasonRateLimit, "P4.1/rate_limit"},
		{"gemini frame", "google", 200, `{"error":{"code":503,"message":"The model is overloaded.","status":"UNAVAILABLE"}}`, ReasonOverloaded, "P4.2/overloaded"},
		// Precedence: the concrete cause beneath the wrapper.
		{"openrouter raw", "openrouter", 502, `{"error":{"message":"Provider returned error","code":502,"metadata":{"raw":"{\"error\":{\"code\":429,\"message\":\"Too many\"}}"}}}`, ReasonRateLimit, "P4.1/rate_limit"},
		{"doubled", "", 200, `{"error":{"message":"{\"error\":{\"message\":\"{\\\"error\\\":{\\\"type\\\":\\\"overloaded_error\\\"}}\"}}"}}`, ReasonOverloaded, "P4.2/overloaded"},
		{"cut short", "anthropic", 0, `{"type":"error","error":{"type":"overloaded_error","message":"Over`, ReasonOverloaded, "P4.2/overloaded"},
		{"echoed input is not evidence", "openai", 400, `{"error":{"message":"Bad tools"},"input":"rate limit exceeded, insufficient credits"}`, ReasonFormat, "P4.5/format"},
		{"corporate limit", "openai", 0, "corporate limited", ReasonUnclassified, "P4.13/unclassified"},
		{"article", "openai", 0, "# Billing\nHow to top up.\n## Credits\nBuy credits here.\n", ReasonUnclassified, "P4.13/unclassified"},
		{"redirect", "openai", 302, "moved", ReasonUnclassified, "P4.13/unclassified"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := JudgeModel(&Fault{Surface: SurfaceModel, Provider: tt.provider, Status: tt.status, Body: []byte(tt.body), Now: testNow})
			if got.Reason != tt.want || got.Rule != tt.rule {
				t.Errorf("got %s by %s, want %s by %s", got.Reason, got.Rule, tt.want, tt.rule)
			}
			if got.Effect != EffectNone {
				t.Errorf("effect = %s, want none", got.Effect)
			}
		})
	}
}

// P4.5, P4.8: at 404 and 5xx a typed validation code decides; at 401, 402,
// 429, 499 and 529 the status does.
func TestJudgeModelValidationCode(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]Reason{
		400: ReasonFormat, 404: ReasonFormat, 422: ReasonFormat, 500: ReasonFormat, 502: ReasonFormat, 503: ReasonFormat,
		401: ReasonAuth, 402: ReasonBilling, 429: ReasonRateLimit, 499: ReasonTimeout, 529: ReasonOverloaded,
	} {
		got := JudgeModel(&Fault{Status: status, Code: "unsupported_parameter", Message: "Unsupported parameter: 'x'"})
		if got.Reason != want {
			t.Errorf("%d: %s by %s, want %s", status, got.Reason, got.Rule, want)
		}
	}
}

// P4: a code counts only for a provider that owns it.
func TestJudgeModelOwnership(t *testing.T) {
	t.Parallel()
	tests := []struct {
		provider, code string
		want           Reason
	}{
		{"google", "SERVER_ERROR", ReasonUnclassified},
		{"openai", "SERVER_ERROR", ReasonServerError},
		{"anthropic", "INSUFFICIENT_QUOTA", ReasonUnclassified},
		{"openai", "insufficient_quota", ReasonQuotaExhausted},
		{"openai", "INTERNAL", ReasonUnclassified},
		{"google", "INTERNAL", ReasonServerError},
		{"google-vertex", "DEADLINE_EXCEEDED", ReasonTimeout},
		{"google", "UNAVAILABLE", ReasonOverloaded},
		{"openai", "UNAVAILABLE", ReasonUnclassified},
		{"openai", "1302", ReasonUnclassified},
		{"zai", "1302", ReasonRateLimit},
		{"", "Throttling_Exception", ReasonRateLimit},
	}
	for _, tt := range tests {
		if got := JudgeModel(&Fault{Provider: tt.provider, Code: tt.code}); got.Reason != tt.want {
			t.Errorf("%s at %q = %s by %s, want %s", tt.code, tt.provider, got.Reason, got.Rule, tt.want)
		}
	}
}

// P4.11: transport faults carry the phase; certificate faults are their own
// reason and are never retried.
func TestJudgeModelTransport(t *testing.T) {
	t.Parallel()
	tests := []struct {
		fault Fault
		want  Reason
		rule  string
		phase Phase
	}{
		{Fault{Code: "ENOTFOUND"}, ReasonTimeout, "P4.11/connect", PhaseConnect},
		{Fault{Code: "UND_ERR_HEADERS_TIMEOUT"}, ReasonTimeout, "P4.11/headers", PhaseHeaders},
		{Fault{Code: "UND_ERR_BODY_TIMEOUT", Phase: PhaseFirstEvent}, ReasonTimeout, "P4.11/first_event", PhaseFirstEvent},
		{Fault{Code: "ECONNRESET", Phase: PhaseBody}, ReasonTimeout, "P4.11/body", PhaseBody},
		{Fault{Code: "ETIMEDOUT", Syscall: "connect"}, ReasonTimeout, "P4.11/connect", PhaseConnect},
		{Fault{Message: "http2: server sent GOAWAY and closed the connection", Phase: PhaseHeaders}, ReasonTimeout, "P4.11/headers", PhaseHeaders},
		{Fault{Message: "stream error: stream ID 5; INTERNAL_ERROR; received from peer", Phase: PhaseBody}, ReasonStreamInterrupted, "P4.11/stream_interrupted", PhaseBody},
		{Fault{Message: "dial tcp 127.0.0.1:1: connect: connection refused"}, ReasonTimeout, "P4.11/connect", PhaseConnect},
		{Fault{Message: "tls: failed to verify certificate: x509: certificate signed by unknown authority"}, ReasonTLS, "P4.11/tls_certificate", ""},
		{Fault{Code: "ERR_TLS_CERT_ALTNAME_INVALID"}, ReasonTLS, "P4.11/tls_certificate", ""},
		{Fault{NotStarted: true}, ReasonTimeout, "P4.11/connect", PhaseConnect},
		{Fault{Phase: PhaseFirstEvent}, ReasonTimeout, "P4.11/first_event", PhaseFirstEvent},
	}
	for _, tt := range tests {
		got := JudgeModel(&tt.fault)
		if got.Reason != tt.want || got.Rule != tt.rule || got.Phase != tt.phase {
			t.Errorf("%+v = %s by %s in %q, want %s by %s in %q", tt.fault, got.Reason, got.Rule, got.Phase, tt.want, tt.rule, tt.phase)
		}
	}
}

// P4: a wrapper never outranks a concrete cause beneath it, and an error body
// that cannot be read leaves the status in force.
func TestJudgeModelCauses(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		fault Fault
		want  Reason
	}{
		{"certificate", Fault{Message: "fetch failed", Causes: []Fault{{Message: "request failed", Causes: []Fault{{Code: "CERT_HAS_EXPIRED"}}}}}, ReasonTLS},
		{"status beneath", Fault{Message: "LLM request failed.", Causes: []Fault{{Status: 429}}}, ReasonRateLimit},
		{"quota beneath a 429", Fault{Status: 429, Message: "Too many requests", Causes: []Fault{{Message: "insufficient_quota"}}}, ReasonQuotaExhausted},
		{"overload beneath a 502", Fault{Status: 502, Message: "Bad gateway", Causes: []Fault{{Message: "the model is at capacity"}}}, ReasonOverloaded},
		{"body lost", Fault{Status: 503, Causes: []Fault{{Code: "ECONNRESET"}}}, ReasonServerError},
		{"body lost at 401", Fault{Status: 401, Causes: []Fault{{Message: "unexpected EOF"}}}, ReasonAuth},
		{"words above a lost socket", Fault{Message: "rate limit exceeded", Causes: []Fault{{Code: "ECONNRESET"}}}, ReasonRateLimit},
		{"nothing beneath", Fault{Message: "fetch failed", Causes: []Fault{{Message: "hm"}}}, ReasonTimeout},
	}
	for _, tt := range tests {
		if got := JudgeModel(&tt.fault); got.Reason != tt.want {
			t.Errorf("%s: %s by %s, want %s", tt.name, got.Reason, got.Rule, tt.want)
		}
	}
	deep := Fault{Message: "fetch failed"}
	for range 200 {
		deep = Fault{Message: "fetch failed", Causes: []Fault{deep, deep}}
	}
	if got := JudgeModel(&deep); got.Reason != ReasonTimeout {
		t.Errorf("deep: %s", got.Reason)
	}
}

// P4.13: the dispositions reach the verdict.
func TestJudgeModelDispositions(t *testing.T) {
	t.Parallel()
	tests := []struct {
		fault                          Fault
		reason                         Reason
		retrySame, failover, permanent bool
	}{
		{Fault{Status: 429}, ReasonRateLimit, true, true, false},
		{Fault{Status: 529}, ReasonOverloaded, true, true, false},
		{Fault{Status: 500}, ReasonServerError, true, true, false},
		{Fault{Status: 402}, ReasonBilling, false, true, true},
		{Fault{Status: 401}, ReasonAuth, false, true, false},
		{Fault{Status: 407}, ReasonAuth, false, false, true},
		{Fault{Status: 403}, ReasonPermission, false, true, true},
		{Fault{Status: 404}, ReasonModelNotFound, false, true, true},
		{Fault{Status: 413}, ReasonContextOverflow, false, true, true},
		{Fault{Status: 400}, ReasonUnclassified, false, true, false},
		{Fault{Status: 400, Message: "Bad request"}, ReasonFormat, false, false, true},
		{Fault{Code: "CERT_UNTRUSTED"}, ReasonTLS, false, false, true},
		{Fault{Status: 400, Code: "content_filter"}, ReasonRefusal, false, false, true},
		{Fault{Status: 400, Code: "rate_limited", Message: "Bad tools"}, ReasonRateLimit, false, true, false},
		{Fault{Status: 400, Code: "rate_limited", Message: "Too many requests"}, ReasonRateLimit, true, true, false},
		{Fault{Status: 400, Code: "ThrottlingException", Message: "Bad tools"}, ReasonRateLimit, true, true, false},
		{Fault{Status: 429, Header: http.Header{"Retry-After": {"99999999999999999999"}}}, ReasonRateLimit, false, true, false},
		{Fault{Code: EngineCode(ReasonWorkerLost)}, ReasonWorkerLost, true, false, false},
		{Fault{Code: EngineCode(ReasonEmptyResponse), Status: 200}, ReasonEmptyResponse, true, true, false},
		{Fault{Code: EngineCode(ReasonOutputLimit), Status: 200}, ReasonOutputLimit, true, false, false},
		{Fault{Code: EngineCode(ReasonDeadline)}, ReasonDeadline, false, false, false},
		{Fault{Status: 200, Body: []byte(`{"error":{"code":"holdfast:cancelled"}}`)}, ReasonUnclassified, false, true, false},
	}
	for _, tt := range tests {
		got := JudgeModel(&tt.fault)
		if got.Reason != tt.reason || got.RetrySame != tt.retrySame || got.Failover != tt.failover || got.Permanent != tt.permanent {
			t.Errorf("%+v: %s retry %v failover %v permanent %v (%s)", tt.fault, got.Reason, got.RetrySame, got.Failover, got.Permanent, got.Rule)
		}
	}
}

// P4.13: text families look at the first 8 KiB of text only.
func TestJudgeModelReadsTheFirst8KiB(t *testing.T) {
	t.Parallel()
	inside := strings.Repeat("x ", 4000) + "insufficient credits"
	beyond := strings.Repeat("x ", 4100) + "insufficient credits"
	if got := JudgeModel(&Fault{Message: inside}); got.Reason != ReasonBilling {
		t.Errorf("inside: %s", got.Reason)
	}
	if got := JudgeModel(&Fault{Message: beyond}); got.Reason != ReasonUnclassified {
		t.Errorf("beyond: %s", got.Reason)
	}
}
