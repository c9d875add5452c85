// Package telegram simulates the part of the Telegram Bot API that bots send with.
//
// What it takes from Telegram's public documentation: a method is called by GET or
// POST with its parameters in the query, in a form, in a multipart form or as
// JSON; every answer is {"ok": …}; text has at most 4,096 UTF-16 units and a
// caption 1,024; there is no idempotency key and no way to read a chat, so a
// repeated sendMessage is a second message; flood control is 429 with
// parameters.retry_after; a group that became a supergroup answers with
// parameters.migrate_to_chat_id; text with a broken parse_mode is refused with
// "can't parse entities".
//
// The parse modes are checked modestly: HTML for unknown and unbalanced tags,
// MarkdownV2 for reserved characters that are not escaped and for
// entities without an end, Markdown for the latter. Texts are kept as they came.
//
// Any chat id is accepted, unless the chat was declared missing, blocked or
// migrated. The token is in every path; the ledger has "/bot:token/…" in its place.
package telegram
