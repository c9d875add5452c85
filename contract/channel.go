package contract

import "time"

// MessageInput asks a channel activity for one message. It names an account;
// the worker resolves the token.
type MessageInput struct {
	Account string `json:"account"`
	To      string `json:"to"`
	Thread  string `json:"thread,omitempty"`
	ReplyTo string `json:"reply_to,omitempty"`
	Text    string `json:"text"`
	Format  Format `json:"format"`
	// Nonce makes a Discord create harmless to repeat (C2.1): at most 25
	// characters, the same for every attempt of a part.
	Nonce string `json:"nonce,omitempty"`
	// Used is how many attempts of the envelope earlier activities spent on
	// this part; FirstAt is when the first of them began.
	Used    int       `json:"used,omitempty"`
	FirstAt time.Time `json:"first_at,omitzero"`
	// ExpiresAt is the end of the send's time to live; a floor that passes it is
	// not waited for (P2).
	ExpiresAt time.Time `json:"expires_at,omitzero"`
}

// MessageResult is the receipt of one message.
type MessageResult struct {
	MessageID string `json:"message_id"`
	AuthorID  string `json:"author_id,omitempty"`
	// Attempts is how many requests it took.
	Attempts int `json:"attempts"`
}

// DiscordListInput asks for the messages of a channel after an anchor.
type DiscordListInput struct {
	Account string `json:"account"`
	Channel string `json:"channel"`
	// After is a message id or a made-up snowflake; exactly one of After and
	// Before is set.
	After  string `json:"after,omitempty"`
	Before string `json:"before,omitempty"`
	Limit  int    `json:"limit,omitempty"`
	// Author is whose content is wanted; that of others is left out.
	Author string `json:"author,omitempty"`
}

// DiscordListResult holds messages, oldest first.
type DiscordListResult struct {
	Messages []DiscordMessage `json:"messages"`
}

// DiscordMessage is what reconciliation needs of a message.
type DiscordMessage struct {
	ID       string `json:"id"`
	AuthorID string `json:"author_id"`
	Content  string `json:"content,omitempty"`
	// Attachments is how many files the message carries.
	Attachments int `json:"attachments,omitempty"`
}

// DiscordUserResult is the account's own user.
type DiscordUserResult struct {
	ID string `json:"id"`
}
