// Package discord makes single requests to the Discord REST API: one activity,
// one request, one receipt or one verdict.
//
// Payloads and answers use discordgo's types; the request is ours, because that
// library waits under a lock, repeats by itself, knows no nonce and loses the
// status of some answers. A message create carries a nonce with enforce_nonce,
// so that Discord answers a repeat within a few minutes with the message that
// exists (C2.1).
package discord
