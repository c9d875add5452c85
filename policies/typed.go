package policies

import "strings"

// vendor is a set of providers whose typed codes mean what their own reference
// says. A code counts only for a provider that owns it (P4).
type vendor uint8

const (
	openAI    vendor = 1 << iota // OpenAI and the many that speak its dialect
	anthropic                    // Anthropic's own API
	google                       // Gemini API and Vertex AI
	bedrock
	zai
	kimi
	xai

	anyVendor = openAI | anthropic | google | bedrock | zai | kimi | xai
)

// vendorOf names whose codes a provider speaks. A gateway that passes on the
// errors of others, like a provider without a name, may speak all of them.
func vendorOf(provider string) vendor {
	p := strings.ToLower(provider)
	switch {
	case p == "", strings.Contains(p, "openrouter"), strings.Contains(p, "litellm"), strings.Contains(p, "gateway"),
		strings.Contains(p, "copilot"), strings.Contains(p, "opencode"), strings.Contains(p, "proxy"):
		return anyVendor
	case strings.Contains(p, "bedrock"):
		return bedrock | anthropic
	case strings.Contains(p, "google"), strings.Contains(p, "gemini"), strings.Contains(p, "vertex"):
		if strings.Contains(p, "anthropic") {
			return google | anthropic
		}
		return google
	case strings.Contains(p, "anthropic"), strings.Contains(p, "claude"):
		return anthropic
	case p == "zai", strings.HasPrefix(p, "z.ai"), strings.HasPrefix(p, "zai-"), strings.HasPrefix(p, "z-ai"), strings.Contains(p, "zhipu"), strings.Contains(p, "bigmodel"), strings.Contains(p, "glm"):
		return openAI | zai
	case strings.Contains(p, "kimi"), strings.Contains(p, "moonshot"):
		return openAI | kimi
	case p == "xai", strings.HasPrefix(p, "xai-"), strings.HasPrefix(p, "x-ai"), strings.Contains(p, "grok"):
		return openAI | xai
	}
	return openAI
}

// retries409 reports whether the clients of a provider take 409 for a lock
// that clears (P4.5): the SDKs of OpenAI and Anthropic do, and those generated
// like them.
func retries409(provider string) bool {
	p := strings.ToLower(provider)
	for _, name := range [...]string{"openai", "azure", "chatgpt", "codex", "anthropic", "claude", "groq", "cerebras", "together", "openrouter"} {
		if strings.Contains(p, name) {
			return true
		}
	}
	return false
}

// class is what a typed code says.
type class uint8

const (
	cRate class = iota
	cThrottle
	cOverload
	cServer  // weak: a text beside it says more
	cTimeout // weak
	cBilling
	cQuota
	cTerminated // Kimi: access terminated, for one of two reasons
	cAuth
	cPermission
	cDead
	cModelGone
	cNotFound // weak
	cSession
	cOverflow
	cRefusal
	cValidation
	cFormat // weak
	cOutputLimit
	cCertificate
	cConnect // transport codes by the phase they prove
	cHeaders
	cBody
	cTransport
)

// typedSet is the set of classes of the typed codes of one failure.
type typedSet uint32

func (s typedSet) has(c class) bool { return s&(1<<c) != 0 }

func (s typedSet) any(cs ...class) bool {
	for _, c := range cs {
		if s.has(c) {
			return true
		}
	}
	return false
}

func (s *typedSet) add(code string, provider vendor) {
	var buf [128]byte
	key := normalise(buf[:0], code)
	if t, ok := typedCodes[string(key)]; ok {
		if t.owner&provider != 0 {
			*s |= 1 << t.class
		}
		return
	}
	// AWS qualifies its types: "com.amazon.coral.service#ThrottlingException".
	if _, name, ok := strings.Cut(string(key), "#"); ok {
		s.add(name, provider)
		return
	}
	if strings.HasPrefix(string(key), "und err ") || strings.HasPrefix(string(key), "err http2 ") {
		*s |= 1 << cTransport
	}
	if strings.HasPrefix(string(key), "err tls cert ") {
		*s |= 1 << cCertificate
	}
}

type typedCode struct {
	class class
	owner vendor
}

var typedCodes = buildTypedCodes()

func buildTypedCodes() map[string]typedCode {
	table := map[string]typedCode{}
	for _, row := range typedRows {
		for _, code := range row.codes {
			table[code] = typedCode{row.class, row.owner}
		}
	}
	return table
}

// typedRows are the typed codes and types, spelled as normalise spells them.
var typedRows = []struct {
	class class
	owner vendor
	codes []string
}{
	{cRate, anyVendor, []string{
		"resource exhausted", "rate limit", "rate limited", "rate limit exceeded", "rate limit error", "rate limit reached",
		"rate limit reached error", "too many requests", "too many requests error", "user rate limit exceeded", "model cooldown",
		"limit requests", "limit burst rate", "concurrency limit exceeded", "requests limit exceeded", "tokens limit exceeded",
		"throttling.ratequota", "throttling.rate quota", "throttling.burstrate", "throttling.burst rate",
	}},
	{cThrottle, anyVendor, []string{
		"throttled", "throttling", "throttling exception", "throttlingexception", "throttled exception", "throttling error",
		"too many requests exception", "request limit exceeded", "provisioned throughput exceeded exception",
	}},
	{cRate, zai, []string{"1302", "1303"}},
	{cQuota, zai, []string{"1304", "1308", "1310"}},
	{cOverload, zai, []string{"1305", "1312"}},
	{cBilling, zai, []string{"1309", "1311"}},
	{cRefusal, zai, []string{"1301"}},
	{cModelGone, zai, []string{"1211"}},
	{cAuth, zai, []string{"1000", "1001", "1002", "1003", "1113"}},
	{cAuth, anyVendor, []string{"ce 011"}},
	{cOverload, anyVendor, []string{
		"overloaded", "overloaded error", "overload", "server is overloaded", "server overloaded", "model overloaded",
		"engine overloaded", "engine overloaded error", "engine overloaded exception", "model not ready", "model not ready exception",
		"service unavailable", "service unavailable error", "service unavailable exception", "service quota exceeded temporarily",
		"slow down", "capacity exceeded", "no capacity", "at capacity", "high demand", "server busy",
	}},
	{cOverload, google, []string{"unavailable"}},
	{cServer, openAI, []string{"server error"}},
	{cServer, google, []string{"internal", "unknown", "data loss"}},
	{cServer, anyVendor, []string{
		"internal server error", "internal error", "internal server exception", "internal failure", "upstream error", "api error",
		"bad gateway", "backend error", "model error exception", "model stream error exception", "model error", "inference error",
	}},
	{cTimeout, google, []string{"deadline exceeded", "aborted"}},
	{cTimeout, anyVendor, []string{"timeout", "timeout error", "request timeout", "gateway timeout", "model timeout exception", "upstream timeout"}},
	{cBilling, anyVendor, []string{
		"billing error", "payment required", "insufficient balance", "insufficient account balance", "insufficient credits",
		"insufficient credit", "insufficient funds", "insufficient user quota", "billing not active", "billing hard limit reached",
		"credits exhausted", "credit balance too low", "invalid subscription", "arrearage", "account overdue", "usage not included",
		"prepaid balance exhausted", "spend limit reached",
	}},
	{cQuota, openAI, []string{"insufficient quota"}},
	{cQuota, anyVendor, []string{
		"quota exceeded", "quota exceeded error", "quota exhausted", "usage limit reached", "usage limit exceeded",
		"usage limit error", "free usage limit error", "go usage limit error", "exceeded current quota error",
		"exceeded current quota", "daily limit exceeded", "monthly limit exceeded", "weekly limit exceeded",
		"service quota exceeded exception", "allocationquota.freetieronly", "allocation quota.free tier only",
		"throttling.allocationquota", "throttling.allocation quota",
	}},
	{cTerminated, anyVendor, []string{"access terminated error"}},
	{cAuth, anyVendor, []string{
		"invalid api key", "invalid api key error", "invalidapikey", "incorrect api key", "authentication error",
		"invalid authentication", "invalid authentication error", "incorrect api key error", "unauthorized", "missing api key",
		"no api key", "invalid token", "token expired", "expired token", "expired token exception", "unrecognized client exception",
		"invalid signature exception", "missing authentication token", "api key expired", "no auth credentials",
	}},
	{cAuth, google, []string{"unauthenticated", "api key invalid", "access token expired"}},
	{cPermission, anyVendor, []string{
		"permission error", "permission denied", "permission denied error", "access denied", "access denied exception", "accessdenied",
		"forbidden", "insufficient permissions", "model access denied", "unsupported country region territory",
	}},
	{cDead, anyVendor, []string{
		"deactivated workspace", "workspace deactivated", "account deactivated", "user deactivated", "account disabled",
		"organization disabled", "api key revoked", "api key disabled", "api key deleted", "key revoked", "token revoked",
		"organization deactivated",
	}},
	{cModelGone, anyVendor, []string{
		"model not found", "model not supported", "model not available", "model not exist", "unsupported model", "invalid model",
		"unknown model", "model is deactivated", "model deactivated", "model deprecated", "deployment not found",
		"resource not found exception", "no such model",
	}},
	{cNotFound, anyVendor, []string{"not found error", "not found", "resource not found error"}},
	{cSession, anyVendor, []string{"session expired", "session not found", "invalid session"}},
	{cOverflow, anyVendor, []string{
		"context length exceeded", "context window exceeded", "context window exceeded error", "context length exceeded error",
		"exceed context size error", "context overflow", "request too large", "input too long", "prompt too long",
		"model context window exceeded", "max context length exceeded",
	}},
	{cRefusal, anyVendor, []string{
		"content filter", "content filtered", "content filter error", "refusal", "content policy violation", "content policy",
		"responsible ai policy violation", "prohibited content", "blocklist", "safety", "spii", "recitation", "data inspection failed",
		"usage policy violation", "guardrail intervened", "guardrail triggered", "content moderation",
	}},
	{cValidation, anyVendor, []string{
		"unknown parameter", "unsupported parameter", "invalid parameter", "invalid parameter error", "unsupported value",
		"missing required parameter", "missing required field", "invalid type", "invalid value", "invalid function parameters",
		"invalid json", "invalid json schema", "invalid schema", "integer above max value", "integer below min value",
		"decimal above max value", "decimal below min value", "string below min length", "array above max length",
		"array below min length", "empty array", "empty string", "unknown field", "validation error", "unprocessable entity",
	}},
	{cFormat, anyVendor, []string{
		"invalid request error", "invalid request", "bad request", "bad request error", "invalid argument", "validation exception",
		"invalid prompt", "malformed request",
	}},
	{cFormat, google, []string{"failed precondition", "out of range", "unimplemented"}},
	{cOutputLimit, anyVendor, []string{"max output tokens"}},
	{cCertificate, anyVendor, []string{
		"unable to get issuer cert", "unable to get issuer cert locally", "unable to get crl", "unable to get crl issuer",
		"unable to decrypt cert signature", "unable to decrypt crl signature", "unable to decode issuer public key",
		"cert signature failure", "crl signature failure", "cert not yet valid", "cert has expired", "crl not yet valid",
		"crl has expired", "error in cert not before field", "error in cert not after field", "error in crl last update field",
		"error in crl next update field", "depth zero self signed cert", "self signed cert in chain",
		"unable to verify leaf signature", "cert chain too long", "cert revoked", "invalid ca", "path length exceeded",
		"invalid purpose", "cert untrusted", "cert rejected", "hostname mismatch", "err ssl certificate verify failed",
		"err tls cert altname invalid", "subject issuer mismatch", "akid skid mismatch", "akid issuer serial mismatch",
		"keyusage no certsign",
	}},
	{cConnect, anyVendor, []string{
		"econnrefused", "enotfound", "eai again", "eai fail", "eai nodata", "eai noname", "ehostunreach", "enetunreach", "ehostdown",
		"enetdown", "und err connect timeout", "und err dns resolve failed", "connect timeout error",
	}},
	{cHeaders, anyVendor, []string{"und err headers timeout", "headers timeout error"}},
	{cBody, anyVendor, []string{
		"und err body timeout", "err stream premature close", "body timeout error", "und err res content length mismatch",
		"err stream destroyed",
	}},
	{cTransport, anyVendor, []string{
		"econnreset", "econnaborted", "etimedout", "esockettimedout", "enetreset", "epipe", "err network", "err socket closed",
		"err socket connection timeout", "eproto", "abort err", "abort error", "timeout err", "und err socket", "und err aborted",
		"stream read error", "goaway", "network error",
	}},
}
