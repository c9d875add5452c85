package policies

// Families of phrases. What a family means depends on the status and on the
// other families of the same text; see classify.go. Their sources are the
// public error references of OpenAI, Anthropic, Google, AWS Bedrock, Azure,
// Groq, OpenRouter, z.ai, Moonshot, DeepSeek, Alibaba, Ollama, vLLM and
// llama.cpp, and the families listed in the published policy (P4).
const (
	mRate             mark = iota // a rate limit in so many words
	mShort                        // a short unit: per minute, TPM, RPM
	mLong                         // a long window: daily, weekly, per month, plan
	mQuota                        // a spent quota by name, no unit needed
	mUsageLimit                   // "usage limit"
	mLimit                        // the bare word limit or quota
	mHit                          // a limit was exceeded, reached, exhausted
	mRefill                       // it refills by itself
	mReset                        // it resets
	mAgain                        // try again, retry, temporary
	mOrgScope                     // organization, workspace
	mSpend                        // spend limit
	mPlanUpgrade                  // asks to upgrade
	mOverload                     // overloaded, high demand, at capacity
	mUnavailable                  // "service unavailable" in words
	mBilling                      // money
	mHardLimit                    // a spending limit that does not refill
	mPayment                      // the reason phrase of 402
	mBalance                      // "insufficient account balance": ambiguous at 429
	mAuth                         // bad or missing credentials
	mPermission                   // good credentials, not allowed
	mDead                         // revoked, disabled, deactivated, deleted
	mAccount                      // key, token, account, workspace
	mDeadAccount                  // both in one phrase
	mSession                      // the session is gone
	mModel                        // the word model
	mGone                         // not found, does not exist
	mModelGone                    // both in one phrase
	mOverflow                     // the context does not fit
	mRefusal                      // the answer or the prompt was refused
	mValidation                   // a parameter is wrong
	mFormat                       // the request or the transcript is malformed
	mFieldWord                    // words of complaints about fields
	mImage                        // image size or dimension
	mServer                       // generic provider error
	mFinishError                  // finish reason "error"
	mStreamEnded                  // "stream ended", "ended without"
	mStreamHow                    // … before its terminal event
	mStreamOther                  // … of something that is no answer
	mCut                          // an answer that broke off
	mTimeout                      // slow or lost
	mNetwork                      // socket and DNS faults
	mCertificate                  // certificate faults
	mNoDetails                    // the error that says nothing
	mPlan                         // the word plan
	mUnsupportedInput             // images to a model without eyes
	mConnect                      // network faults that come before a connection
	mContext                      // the context window, the length of the prompt
	mNamesTokens                  // names the bucket of tokens
	mNamesRequests                // names the bucket of requests
	mNamesProject                 // names the project
	mNamesInput                   // names input tokens
	mNamesOutput                  // names output tokens
	mDelay                        // "retry delay"
	mAuthRequired                 // "authentication required"
	mGenericFailure               // a wrapper that says only "failed"
)

var englishPhrases = map[mark][]string{
	mRate: {
		"rate limit", "ratelimit", "rate exceeded", "rate is limited", "too many requests", "toomanyrequests", "too many tokens",
		"too many concurrent", "request limit", "requests limit", "token limit exceeded for", "throttl", "resource exhausted", "resourceexhausted",
		"resource has been exhausted", "concurrency limit", "concurrent request", "concurrency quota", "model cooldown", "tokens per",
		"requests per", "quota limit", "hour limit", "hour usage limit", "slow down", "tpm|", "rpm|", "tpd|", "rpd|", "quota exceeded",
		"exceeded quota", "exceeds quota", "exceeded your current quota",
	},
	mShort: {
		"per minute", "per min|", "/min", "/ min", "per second", "per sec|", "/ sec", "/sec|", "/s|", "a minute|", "each minute",
		"rpm|", "tpm|", "rps|", "qps|", "qpm|", "ipm|", "model cooldown", "concurrency", "concurrent",
	},
	mLong: {
		"daily", "weekly", "monthly", "yearly", "annual", "per day", "per week", "per month", "/day", "/week", "/month", "a day|",
		"tpd|", "rpd|", "tomorrow", "subscription", "plan limit", "plan s limit", "plan quota", "plan usage", "token plan",
		"coding plan", "billing period", "billing cycle", "7 day|", "30 day|",
		"free models per day", "free tier quota", "go usage limit", "free usage limit",
	},
	mQuota: {
		"insufficient quota", "insufficientquota", "quota exceeded", "quotaexceeded", "exceeded quota", "exceeded the quota",
		"exceeded your quota", "exceeds quota",
		"quota exhausted", "quota has been exhausted", "quota is exhausted", "exhausted your quota", "current quota", "out of quota",
		"quota used up", "allocated quota exceeded",
		"go usage limit", "free usage limit", "free usage is exhausted", "available balance", "out of budget", "quota is not enough",
		"free allocated quota", "quota has been exceeded",
	},
	mUsageLimit: {"usage limit", "usage cap", "usage quota"},
	mLimit:      {"limit", "quota", "usage", "allowance"},
	mHit:        {"exceed", "reached", "exhausted", "used up", "hit your", "hit the", "over the", "breached", "billing period"},
	mRefill: {
		"automatic quota refresh", "quota refresh", "rolling time window", "rolling window", "quota will reset", "quota resets",
		"limit will reset", "limit resets", "usage will reset", "will refresh", "replenish",
	},
	mReset:    {"reset", "refresh"},
	mAgain:    {"try again", "retry", "temporar", "cooldown", "cooling down", "please wait"},
	mOrgScope: {"organization", "organisation", "workspace"},
	mSpend:    {"spend limit", "spending limit", "spend cap", "spending cap"},
	mPlanUpgrade: {
		"subscription", "higher plan", "upgrade your", "upgrade plan", "upgrade to", "please upgrade", "upgrade the", "your current plan", "this plan",
	},
	mOverload: {
		"overload", "high demand", "highdemand", "high load", "heavy load", "high traffic", "high volume of requests", "at capacity", "atcapacity",
		"over capacity", "out of capacity", "no capacity", "capacity limits", "insufficient capacity", "capacity constraints",
		"capacity exceeded", "at full capacity", "at max capacity", "at maximum capacity",
		"model not ready", "modelnotready", "server is busy", "servers are busy", "server busy", "engine is busy",
		"model is currently loading", "is still loading", "loading model",
	},
	mUnavailable: {
		"service unavailable", "serviceunavailable", "service temporarily unavailable", "service is temporarily unavailable",
		"service is unavailable", "service is currently unavailable", "service currently unavailable", "temporarily unavailable",
	},
	mBilling: {
		"insufficient credit", "insufficient fund", "insufficient balance", "insufficientbalance", "insufficient usd",
		"insufficient wallet", "insufficient prepaid",
		"insufficient user quota", "insufficient quota balance", "not enough credit", "not enough balance", "no credits",
		"out of credit", "ran out of credit", "run out of credit", "credits exhausted", "credits are exhausted", "credit exhausted",
		"credits have been exhausted",
		"more credits", "available credits", "remaining credits", "add credits", "purchase credits", "buy credits", "buy more credits",
		"prepaid credits", "prepayment credits",
		"credit balance", "credits balance", "balance is too low", "balance too low", "balance is insufficient", "balance not enough",
		"balance is not enough", "available balance", "negative balance", "exceeded balance", "no balance", "top up", "topup",
		"recharge",
		"out of budget", "budget exceeded", "budget has been exceeded", "exceeded budget", "out of extra usage",
		"extra usage is required", "extra usage required", "out of usage credits", "usage credits", "free usage limit",
		"go usage limit",
		"billing hard limit", "billing not active", "check your billing", "billing issue", "billing error", "billing is not",
		"billing account", "enable billing", "billing details on", "billing disabled",
		"invalid subscription", "no active subscription", "subscription plan does not", "subscription does not",
		"subscription expired", "subscription has expired", "not include access", "not available in your current plan",
		"not available in your plan", "not included in your", "plans & billing", "plans and billing",
		"payment method", "overdue", "arrear", "unpaid", "delinquent", "good standing", "exhausted your credit",
	},
	mHardLimit:    {"hard limit", "maximum allowed"},
	mPayment:      {"payment required", "paymentrequired"},
	mBalance:      {"insufficient account balance"},
	mAuthRequired: {"authentication required"},
	mAuth: {
		"invalid api key", "invalid apikey", "invalid x api key", "api key not valid", "api key is invalid", "api key invalid",
		"apikey invalid", "incorrect api key", "wrong api key", "bad api key", "malformed api key", "unknown api key",
		"invalid key", "no api key", "missing api key", "api key is missing", "api key is required", "api key required",
		"api key not found", "api key expired", "api key has expired", "provide an api key", "provide your api key", "api key missing",
		"didn't provide an api key",
		"invalid token", "invalid access token", "token is invalid", "token invalid", "invalid bearer", "missing bearer",
		"invalid authorization", "missing authorization", "token expired", "token has expired", "token is expired", "expired token",
		"access token expired", "token has been invalidated", "token could not be refreshed", "refresh token", "jwt expired",
		"key expired", "key has expired", "key is expired", "credentials expired", "credentials have expired", "login expired",
		"login has expired", "expired credentials",
		"unauthorized", "unauthorised", "unauthenticated", "not authenticated", "authentication failed", "authentication fail",
		"authentication error", "authentication is required", "authentication required", "authentication credentials",
		"invalid authentication", "auth failed", "authorization failed", "authorization required", "authorization error",
		"no credentials", "invalid credentials", "missing credentials", "bad credentials", "could not validate credentials",
		"could not resolve authentication", "credentials were missing", "unable to locate credentials", "could not load credentials",
		"no auth credentials", "endpoint or credentials",
		"token refresh failed", "re authenticate", "reauthenticate", "run /login", "please log in", "please login", "please sign in",
		"not logged in", "login required", "failed to extract account", "extract accountid", "failed to parse token",
		"failed to decode token", "failed to validate token", "invalid grant", "unrecognized client",
		"security token included in the request", "signature we calculated", "not active or expired",
		"ce 011|",
	},
	mPermission: {
		"forbidden", "access denied", "accessdenied", "permission denied", "permissiondenied", "permission error",
		"insufficient permission", "lacks permission", "do not have permission", "does not have permission", "don't have permission",
		"not have permission", "no permission", "not permitted", "missing scope", "insufficient scope",
		"insufficient authentication scopes", "not authorized to", "not authorised to", "isn't authorized", "is not authorized",
		"don't have access to the model with", "country, region, or territory not supported", "unsupported country",
		"user location is not supported",
	},
	mDead:    {"revoked", "disabled", "deactivated", "deleted"},
	mAccount: {"key|", "keys|", "apikey", "token|", "account", "workspace", "organization", "organisation", "credential", "user|", "project|"},
	mDeadAccount: {
		"key revoked", "key deactivated", "key deleted", "key disabled", "deactivated workspace", "workspace deactivated",
		"account deactivated", "account disabled", "account deleted", "deactivated account", "disabled account", "revoked key",
		"revoked api key", "revoked token", "token revoked", "organization disabled", "organization deactivated",
		"account has been terminated", "account terminated", "account has been suspended", "account is suspended", "account suspended",
		"account has been banned", "not allowed for this organization", "not allowed for this organisation",
	},
	mSession: {
		"session not found", "session expired", "session has expired", "session is expired", "session no longer",
		"session does not exist", "invalid session", "no conversation found", "conversation not found", "conversation expired",
		"session id not found", "no session found", "unknown session", "session invalid", "session was not found", "session has ended",
	},
	mModel: {"model|", "models|", "models/", "model:", "deployment"},
	mGone: {
		"not found", "does not exist", "doesn't exist", "doesn t exist", "not exist", "no longer available", "been deactivated",
		"is deactivated", "been deprecated", "is deprecated", "been retired", "is retired", "been removed", "been decommissioned",
		"been shut down", "not supported", "is not available", "isn't available", "isn t available", "is unavailable for your",
		"is unknown", "been discontinued", "is not a valid model",
	},
	mModelGone: {
		"model not found", "model not exist", "unknown model", "no such model", "invalid model", "unsupported model",
		"no endpoints found", "not a valid model", "model is deactivated", "deactivated model", "model not supported",
		"model identifier is invalid", "model not available", "try pulling it", "deployment not found", "model does not exist",
		"deployment for this resource does not exist", "no allowed providers are available", "not found for api version",
		"not found for account",
	},
	mOverflow: {
		"context length exceeded", "context window exceeded", "context length is exceeded", "context limit exceeded",
		"context size exceeded", "context window is exceeded", "exceeded context", "exceeded the context", "exceed context",
		"exceeds context", "exceed the context", "exceeds the context", "exceeding the context", "exceeds available context",
		"exceeds the available context", "exceed the available context", "exceeds the model's context", "exceeds the model s context",
		"exceeds this model's", "exceeds this model s",
		"context size has been exceeded", "context window has been exceeded", "context length has been exceeded",
		"the configured context size", "context overflow", "context too long", "context is too long", "contextwindowexceeded",
		"contextlengthexceeded", "over the context",
		"maximum context length", "max context length", "maximum context window", "maximum context size", "maximum prompt length",
		"maximum input length", "maximum input token", "maximum number of input tokens", "maximum number of tokens allowed",
		"larger than the maximum context", "greater than the context", "longer than the context", "longer than the model",
		"context budget", "context window of", "larger than the context", "exceeds max context", "exceeds your context",
		"too many tokens in the", "too many tokens for", "prompt is too long", "prompt too long", "prompt is too large",
		"prompt too large", "prompt exceeds", "input is too long", "input too long", "input is too large", "input tokens exceed",
		"input token count", "input length exceeds", "inputs tokens + ", "inputs must have less", "too long for requested model",
		"too long for this model", "too large for model", "too large for the model", "is too long for the model", "messages too long",
		"messages are too long", "conversation is too long", "request too long",
		"request too large", "requesttoolarge", "request is too large", "request entity too large", "payload too large",
		"content too large", "body too large", "request exceeds the maximum", "exceeds the maximum size", "exceeds maximum size",
		"total message size", "request body too large",
		"exceeded model token limit", "exceeds model token limit", "exceeds the model's maximum", "exceeds the model s maximum",
		"exceeds the maximum number of tokens", "exceeds the maximum token", "exceeds the maximum allowed token",
		"exceeds the model limit", "exceeds model limit", "exceed the model limit", "exceeded max tokens",
		"exceeds the maximum allowed number of input", "reduce the length of the messages", "reduce the length of your",
		"reduce the length of either", "reduce your prompt", "shorten the input", "tokens exceed the", "token count exceeds",
		"number of tokens exceeds", "total tokens exceeds", "exceeds the token limit", "exceeds token limit",
		"available context size", "would exceed context", "would exceed the context", "exceed context limit", "max tokens would exceed",
	},
	mContext: {
		"context window", "context length", "context size", "context limit", "token count", "prompt tokens", "prompt length",
		"input tokens", "n ctx|",
	},
	mRefusal: {
		"content filter", "contentfilter", "content policy", "content management policy", "content moderation", "content violat",
		"usage polic", "usage guidelines", "acceptable use", "safety system", "safety filter", "safety reason", "safety setting",
		"responsible ai", "prohibited content", "violates our", "violates the usage", "violates the content", "violates open ai",
		"violates openai", "violation of our", "violating our", "potentially violat", "blocked by safety", "flagged by", "flagged as",
		"blocked due to safety", "blocked because of safety", "prompt was blocked", "response was blocked", "data inspection",
		"inappropriate content", "refusal|", "refused to answer", "refused to respond", "i can't help with", "i can t help with",
		"i cannot help with", "i can't assist", "i can t assist", "i cannot assist", "i'm unable to help", "unable to comply with",
		"can't comply", "cannot comply", "moderation block", "moderation_block", "requires moderation", "input was flagged",
		"unsafe content",
	},
	mValidation: {
		"unknown parameter", "unsupported parameter", "unsupported value", "missing required parameter", "missing required field",
		"unrecognized request argument", "unknown field", "unknown name", "invalid json payload", "invalid parameter",
		"extra inputs are not permitted", "additional properties", "field required",
	},
	mFormat: {
		"invalid request", "malformed request", "bad request", "string should match pattern", "should match pattern", "tool use.id",
		"tool use id", "tool result", "tool call id", "function call turn", "function response", "roles must alternate",
		"role must alternate", "alternate between", "does not support assistant message prefill", "must end with a user message",
		"final assistant content", "text content blocks must be non empty", "cannot be empty", "non empty content",
		"does not support tools", "does not support tool", "does not support thinking", "does not support function",
		"does not support this", "requested agent harness", "is not one of:", "thinking blocks", "reasoning item",
		"without its required following item", "no tool output found", "no tool call found", "incorrect role information",
		"expected thinking", "invalid schema", "invalid function", "json schema", "thought signature", "invalid argument",
		"invalid tool", "invalid image", "could not process image", "max tokens must be", "replay invalid", "previous response",
	},
	mFieldWord: {"invalid", "parameter", "unsupported", "must be", "field", "unrecognized", "argument"},
	mImage:     {"image exceeds", "image dimensions", "image dimension", "image too large", "image is too large", "image size"},
	mServer: {
		"internal server error", "internal error", "internal service error", "internal failure", "server error", "servererror",
		"server had an error", "upstream error", "bad gateway", "provider returned error", "provider returned an error",
		"error occurred while processing", "error occurred processing", "unexpected error occurred", "unexpected error while",
		"an unknown error occurred", "upstream connect", "upstream request", "unknown stream error", "unexpected server",
		"error from upstream", "inference error", "backend error", "stop reason: error", "stop reason: malformed response",
		"model error exception", "error in streaming the response",
	},
	mFinishError: {"finish reason: error", "finish reason error", "finish reason: malformed response"},
	mStreamEnded: {
		"stream ended", "stream closed", "stream ends", "stream finished", "ended without", "ended before", "closed before",
		"finished without", "finished before",
	},
	mStreamHow: {
		"without", "with unresolved", "with an incomplete", "with incomplete", "with a partial", "before a terminal",
		"before terminal", "before the terminal", "before message stop", "before message", "before completion", "before complet",
		"before the complet", "before response", "before the response", "before a response", "before a final", "before final",
		"before the final", "before done", "before [done]", "before a finish", "before finish", "before content", "mid frame",
		"mid tool", "unexpectedly", "prematurely", "early",
	},
	mStreamOther: {"pull stream", "download"},
	mCut: {
		"without sending any chunks", "without sending chunks", "stream was aborted", "stream was closed", "stream aborted",
		"stream read error", "stream interrupted", "stream disconnected", "premature close", "premature end", "prematurely",
		"unexpected end of stream", "unexpected eof", "incomplete chunked", "connection broken", "incomplete stream", "terminated|",
		"response was truncated", "stream reset", "incomplete assistant", "stream error",
	},
	mTimeout: {
		"timeout", "timed out", "time out|", "deadline exceeded", "deadlineexceeded", "operation was aborted", "request was aborted",
		"request aborted", "aborterror", "abort error", "this operation was aborted", "stop reason: abort",
		"stop reason: network error", "finish reason: abort", "finish reason: network error", "finish reason: timeout",
		"repeated internal retries", "llm request failed", "please retry the request", "took too long", "did not respond",
		"no response from", "not responding", "gateway time out",
	},
	mNetwork: {
		"network error", "networkerror", "network request failed", "network failure", "network issue", "network connection",
		"network is unreachable", "no route to host", "host is down", "connection error", "connection refused", "connection reset",
		"connection lost", "connection closed", "connection aborted", "connection terminated", "connection timed",
		"connection was closed", "connection was reset", "connection was lost", "connection was refused", "connection dropped",
		"connection failed", "connection failure", "connection ended", "connection interrupted", "connection unexpectedly",
		"could not connect", "failed to connect", "unable to connect", "error connecting", "connect error", "connecterror",
		"apiconnection error", "apitimeout error", "apiconnectionerror", "api connection error", "lost connection",
		"use of closed network connection", "server closed", "remote end closed", "peer closed", "reset by peer", "broken pipe",
		"other side closed", "fetch failed", "failed to fetch", "socket hang up", "socket connection", "socket closed", "socket error",
		"socket disconnected", "closed unexpectedly", "reset before headers", "reset reason", "web socket closed", "web socket error",
		"web socket connection", "web socket disconnect", "websocket closed", "websocket error", "websocket connection",
		"websocket disconnect", "server misbehaving",
		"econnrefused", "econnreset", "econnaborted", "etimedout", "esockettimedout", "enotfound", "eai again", "enetunreach",
		"ehostunreach", "ehostdown", "enetdown", "enetreset", "epipe|", "err network", "err http2", "err socket",
		"err stream premature close", "und err", "no such host", "temporary failure in name resolution", "name or service not known",
		"getaddrinfo", "dns failure", "dns lookup", "dns error", "dns resolution", "name resolution",
		"goaway", "go away frame", "http/2", "http2:", "http2 ", "rst stream", "stream id ", "nghttp2", "i/o timeout", "lookup failed",
	},
	mConnect: {
		"econnrefused", "enotfound", "eai again", "ehostunreach", "enetunreach", "ehostdown", "enetdown", "und err connect timeout",
		"und err dns", "connection refused", "no such host", "getaddrinfo", "name resolution", "name or service not known",
		"no route to host", "network is unreachable", "failed to connect", "could not connect", "unable to connect", "host is down",
		"dns failure", "dns lookup", "dns error",
	},
	mCertificate: {
		"certificate has expired", "certificate is not yet valid", "certificate is expired", "certificate expired",
		"expired certificate", "certificate not trusted", "certificate is not trusted", "certificate untrusted",
		"untrusted certificate", "certificate rejected", "certificate revoked", "certificate has been revoked",
		"certificate verify failed", "certificate verification failed", "certificate signed by unknown",
		"certificate signature failure", "certificate is valid for", "certificate is not valid for", "certificate chain too long",
		"certificate chain", "failed to verify certificate", "self signed certificate", "self signed cert",
		"unable to verify the first certificate", "unable to verify leaf", "unable to get local issuer", "unable to get issuer cert",
		"unable to get certificate", "unable to get crl", "does not match certificate", "certificate's altnames",
		"certificate s altnames", "x509:", "hostname mismatch", "invalid certificate", "bad certificate",
		"unsupported certificate purpose", "invalid ca certificate", "unknown certificate authority", "altname invalid",
		"cert has expired", "cert not yet valid", "cert untrusted", "cert rejected", "cert revoked", "cert signature failure",
		"cert chain too long", "depth zero self signed", "err tls cert", "err cert", "ssl certificate",
	},
	mNoDetails:   {"no error details"},
	mNamesTokens: {"tokens per", "tpm|", "tpd|", "token limit", "tokens limit", "tokens/min", "of tokens"},
	mNamesRequests: {
		"requests per", "request per", "rpm|", "rpd|", "number of requests", "request limit", "requests limit", "requests/min",
		"requests/day", "free models per",
	},
	mPlan: {"plan|", "plans|"},
	mUnsupportedInput: {
		"support image input", "does not support image", "image input is not supported", "images are not supported",
		"unsupported image",
	},
	mNamesProject: {"project"},
	mNamesInput:   {"input tokens per", "input token"},
	mNamesOutput:  {"output tokens per", "output token"},
	mDelay:        {"retry delay", "retry after", "too quickly"},
	mGenericFailure: {
		"fetch failed", "failed to fetch", "network error", "connection error", "provider returned error", "request failed", "api connection error",
	},
}

var chinesePhrases = map[mark][]string{
	mRate: {
		"请求过于频繁", "请求太频繁", "请求频率", "请求过快", "请求过多", "请求次数过多", "调用频率", "频率限制", "频率超限", "频率过高", "访问过于频繁", "操作过于频繁", "速率限制", "限流", "并发数过高",
		"并发过高", "并发超限", "并发限制", "调用过于频繁", "超过速率",
	},
	mShort: {"请求过于频繁", "请求太频繁", "请求频率", "请求过快", "调用频率", "频率限制", "频率超限", "频率过高", "访问过于频繁", "速率限制", "每分钟", "每秒", "并发", "调用过于频繁"},
	mLong:  {"每日", "每天", "每周", "每月", "当日", "本周", "本月", "套餐", "订阅"},
	mQuota: {
		"用量上限", "使用上限", "额度已用尽", "配额已用尽", "额度已用完", "配额已用完", "额度用尽", "配额用尽", "额度已耗尽", "配额已耗尽", "额度耗尽", "配额耗尽", "额度不足", "配额不足", "配额超限",
		"超出配额", "超过配额", "额度超限", "超出额度", "免费额度", "额度已达上限",
	},
	mLimit:    {"上限", "限制", "额度", "配额", "用量"},
	mHit:      {"已达到", "已用尽", "超出", "超过"},
	mReset:    {"重置", "刷新"},
	mOverload: {"服务过载", "负载过高", "负载较高", "访问量过大", "访问量较大", "模型过载", "系统过载", "服务器过载", "算力不足", "资源不足", "当前使用人数较多"},
	mBilling: {
		"余额不足", "余额已不足", "余额为零", "欠费", "账户余额", "请充值后", "未付费", "付费后", "账单逾期", "套餐未包含", "套餐不包含", "套餐已到期", "套餐已过期", "暂未开放", "无可用资源包",
		"资源包已用完", "资源包余量",
	},
	mAuth: {
		"认证失败", "鉴权失败", "身份验证失败", "身份认证失败", "验证失败", "密钥无效", "密钥错误", "密钥不存在", "密钥已过期", "无效的密钥", "无效密钥", "令牌无效", "令牌已过期", "无效的令牌",
		"令牌验证", "未授权", "未登录", "请重新登录", "登录已过期", "登录失效", "未提供令牌",
	},
	mPermission: {"无权访问", "无权限", "没有权限", "权限不足", "禁止访问", "拒绝访问", "访问被拒绝"},
	mDead:       {"已禁用", "被禁用", "已停用", "被停用", "已吊销", "被吊销", "已注销", "已删除", "已封禁", "被封禁", "已冻结", "被冻结", "已撤销"},
	mAccount:    {"密钥", "令牌", "账户", "账号", "帐户", "帐号", "用户", "组织"},
	mModelGone:  {"模型不存在", "未找到模型", "找不到模型", "模型未找到", "不支持的模型", "模型已下线", "模型不可用", "无效的模型"},
	mOverflow: {
		"上下文过长", "上下文太长", "上下文超", "上下文长度超", "超出最大上下文", "超过最大上下文", "最大上下文长度", "压缩上下文", "上下文窗口超", "超出上下文", "超过上下文", "上下文已满", "输入过长",
		"输入内容过长", "输入超长", "提示词过长", "超出模型最大", "超过模型最大", "上下文溢出", "上下文大小超", "超出模型上下文", "超长文本",
	},
	mRefusal:     {"敏感内容", "敏感信息", "敏感词", "不安全内容", "内容安全", "违规内容", "内容违规", "不当内容", "内容审核", "违反使用政策"},
	mFormat:      {"参数错误", "参数无效", "参数有误", "无效参数", "请求格式", "格式错误", "参数非法", "非法参数", "参数不正确", "参数校验"},
	mServer:      {"内部错误", "服务器错误", "服务器内部", "系统错误", "系统繁忙", "系统异常", "服务器异常", "服务异常", "服务内部", "服务错误", "未知错误"},
	mTimeout:     {"请求超时", "连接超时", "响应超时", "处理超时", "超时", "服务暂时不可用", "服务暂不可用", "服务繁忙", "服务器繁忙", "服务不可用", "暂时不可用"},
	mNetwork:     {"网络错误", "网络异常", "网络故障", "网络超时", "连接错误", "连接失败", "连接异常", "连接中断", "连接被重置", "连接断开", "连接已断开", "网络连接"},
	mCertificate: {"证书已过期", "证书无效", "证书不受信任"},
	mSession:     {"会话已过期", "会话不存在", "会话过期", "会话失效"},
}
