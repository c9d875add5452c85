// Package telegram makes single requests to the Telegram Bot API: one activity,
// one request, one receipt or one verdict.
//
// Parameters and answers use telego's types; the request is ours, on a fresh
// connection for each new message. Telegram has neither an idempotency key nor
// a way for a bot to read history, so a request whose answer is lost is never
// repeated (C2.5): its outcome is unknown, and the send asks for review (C4).
package telegram
