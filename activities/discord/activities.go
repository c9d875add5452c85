package discord

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/bwmarrin/discordgo"

	"github.com/holdfast-dev/holdfast/activities/channel"
	"github.com/holdfast-dev/holdfast/contract"
	"github.com/holdfast-dev/holdfast/internal/attempt"
	"github.com/holdfast-dev/holdfast/policies"
)

// Account is one bot account.
type Account struct {
	// Token resolves the bot token; called for each request, so that a rotated
	// token is picked up.
	Token func(context.Context) (string, error)
	// APIURL is the REST base, such as "https://discord.com/api/v10".
	APIURL string
}

// Config of the activities.
type Config struct {
	// Accounts by name; required.
	Accounts map[string]Account
	// UserAgent of every request. Defaults to Discord's required bot form.
	UserAgent string
	// Transport options. Fresh is always set: a create must not be repeated by
	// the HTTP client on a reused connection.
	Transport attempt.Options
}

// Activities holds the Discord activities.
type Activities struct {
	accounts  map[string]Account
	userAgent string
	client    *http.Client
}

// New checks c and returns the activities.
func New(c Config) (*Activities, error) {
	for name, a := range c.Accounts {
		u, err := url.Parse(a.APIURL)
		if err != nil || u.Host == "" {
			return nil, fmt.Errorf("discord account %q: the API URL is not a URL", name)
		}
		if a.Token == nil {
			return nil, fmt.Errorf("discord account %q: no token", name)
		}
	}
	if c.UserAgent == "" {
		c.UserAgent = "DiscordBot (https://github.com/holdfast-dev/holdfast, 1)"
	}
	c.Transport.Fresh = true
	return &Activities{
		accounts:  c.Accounts,
		userAgent: c.UserAgent,
		client:    attempt.NewClient(c.Transport),
	}, nil
}

// messageCreate is a create with the two fields that discordgo lacks.
type messageCreate struct {
	*discordgo.MessageSend
	Nonce        string `json:"nonce,omitempty"`
	EnforceNonce bool   `json:"enforce_nonce,omitempty"`
}

// CreateMessage sends one message (C2.1). Its error is a [contract.Failure]
// built by package failure.
func (a *Activities) CreateMessage(ctx context.Context, in contract.MessageInput) (contract.MessageResult, error) {
	at := channel.Begin(ctx, in, channel.Attempt{
		Surface: policies.SurfaceDiscord, Operation: policies.OpCreate, Envelope: policies.EnvelopeDiscordSend,
	})
	if at.Unproven() && !at.Repeatable(time.Now()) {
		return contract.MessageResult{}, at.Unknown("C2.1/nonce_window_passed")
	}
	if err := at.Refuse(ctx); err != nil {
		return contract.MessageResult{}, err
	}
	channelID := in.To
	if in.Thread != "" {
		channelID = in.Thread
	}
	defer at.Heartbeat(ctx)()

	var message discordgo.Message
	c := call{
		op: policies.OpCreate, account: in.Account, method: http.MethodPost,
		path: "/channels/" + url.PathEscape(channelID) + "/messages", body: messageOf(in), sinceFirst: time.Since(at.FirstAt),
	}
	reqCtx, cancel := at.Request(ctx)
	defer cancel()
	if fault, err := a.do(reqCtx, c, &message); err != nil {
		return contract.MessageResult{}, a.fail(ctx, at, fault, err)
	}
	result := contract.MessageResult{MessageID: message.ID, Attempts: at.Number}
	if message.Author != nil {
		result.AuthorID = message.Author.ID
	}
	return result, nil
}

func messageOf(in contract.MessageInput) messageCreate {
	send := messageCreate{
		MessageSend: &discordgo.MessageSend{
			Content: in.Text,
			// A model's words must not ping a whole server.
			AllowedMentions: &discordgo.MessageAllowedMentions{
				Parse: []discordgo.AllowedMentionType{discordgo.AllowedMentionTypeUsers},
			},
		},
		Nonce:        in.Nonce,
		EnforceNonce: in.Nonce != "",
	}
	if in.ReplyTo != "" {
		// Discord's default fails a reply whose target is gone; the text matters
		// more than the thread line.
		noFail := false
		send.Reference = &discordgo.MessageReference{MessageID: in.ReplyTo, FailIfNotExists: &noFail}
	}
	return send
}

func (a *Activities) fail(ctx context.Context, at *channel.Attempt, fault policies.Fault, err error) error {
	var setup *channel.SetupError
	if errors.As(err, &setup) {
		return at.Setup(setup)
	}
	fault.LostEarlier = at.Unproven()
	return at.Fail(ctx, &fault, policies.Judge(&fault), explain(&fault))
}

// ListMessages reads up to Limit messages of a channel, for reconciliation
// (C4). Reads have no effect, so the server may repeat them.
func (a *Activities) ListMessages(ctx context.Context, in contract.DiscordListInput) (contract.DiscordListResult, error) {
	query := url.Values{}
	if in.After != "" {
		query.Set("after", in.After)
	}
	if in.Before != "" {
		query.Set("before", in.Before)
	}
	if in.Limit > 0 {
		query.Set("limit", strconv.Itoa(in.Limit))
	}
	path := "/channels/" + url.PathEscape(in.Channel) + "/messages"
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	var messages []discordgo.Message
	if err := a.read(ctx, in.Account, path, &messages); err != nil {
		return contract.DiscordListResult{}, err
	}
	return contract.DiscordListResult{Messages: oldestFirst(messages, in.Author)}, nil
}

// oldestFirst turns Discord's newest-first list around and keeps the content of
// one author's messages only: what others wrote has no place in history.
func oldestFirst(messages []discordgo.Message, author string) []contract.DiscordMessage {
	out := make([]contract.DiscordMessage, 0, len(messages))
	for i := len(messages) - 1; i >= 0; i-- {
		m := contract.DiscordMessage{ID: messages[i].ID, Attachments: len(messages[i].Attachments)}
		if author := messages[i].Author; author != nil {
			m.AuthorID = author.ID
		}
		if m.AuthorID != "" && m.AuthorID == author {
			m.Content = messages[i].Content
		}
		out = append(out, m)
	}
	return out
}

// CurrentUser reads the account's own user.
func (a *Activities) CurrentUser(ctx context.Context, in contract.DiscordListInput) (contract.DiscordUserResult, error) {
	var user discordgo.User
	if err := a.read(ctx, in.Account, "/users/@me", &user); err != nil {
		return contract.DiscordUserResult{}, err
	}
	return contract.DiscordUserResult{ID: user.ID}, nil
}

func (a *Activities) read(ctx context.Context, account, path string, into any) error {
	at := channel.Begin(ctx, contract.MessageInput{}, channel.Attempt{
		Surface: policies.SurfaceDiscord, Operation: policies.OpRead, Envelope: policies.EnvelopeDiscordREST,
	})
	if err := at.Refuse(ctx); err != nil {
		return err
	}
	reqCtx, cancel := context.WithTimeout(ctx, channel.RequestTimeout)
	defer cancel()
	c := call{op: policies.OpRead, account: account, method: http.MethodGet, path: path}
	if fault, err := a.do(reqCtx, c, into); err != nil {
		return a.fail(ctx, at, fault, err)
	}
	return nil
}

// call is one request.
type call struct {
	op         policies.Operation
	account    string
	method     string
	path       string
	body       any
	sinceFirst time.Duration
}

// do makes the request and decodes a successful answer. On failure it returns
// the facts; the error only says that there was one.
func (a *Activities) do(ctx context.Context, c call, into any) (policies.Fault, error) {
	name, account, err := channel.Pick("discord", a.accounts, c.account)
	if err != nil {
		return policies.Fault{}, err
	}
	token, err := account.Token(ctx)
	if err != nil {
		return policies.Fault{}, channel.NoToken("discord", name)
	}
	var body io.Reader
	if c.body != nil {
		data, err := json.Marshal(c.body)
		if err != nil {
			return policies.Fault{}, channel.Invalid("the message cannot be written as JSON")
		}
		body = bytes.NewReader(data)
	}
	rec := attempt.New()
	req, err := http.NewRequestWithContext(attempt.With(ctx, rec), c.method, strings.TrimSuffix(account.APIURL, "/")+c.path, body)
	if err != nil {
		return policies.Fault{}, channel.Invalid("the destination does not form a valid URL")
	}
	req.Header.Set("Authorization", "Bot "+token)
	req.Header.Set("User-Agent", a.userAgent)
	if c.body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	err = a.roundTrip(req, into)
	if err == nil {
		return policies.Fault{}, nil
	}
	fault := rec.Fault(policies.SurfaceDiscord, err, time.Now())
	fault.Operation = c.op
	fault.SinceFirst = c.sinceFirst
	return fault, err
}

var (
	errRefused = errors.New("discord refused the request")
	errBadID   = errors.New("discord's answer holds an id that is none")
)

func (a *Activities) roundTrip(req *http.Request, into any) error {
	resp, err := a.client.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		channel.Discard(resp)
		return errRefused
	}
	data, err := channel.ReadAnswer(resp)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, into); err != nil {
		return err
	}
	return checkIDs(into)
}

// snowflake is an id as Discord writes it. Ids are kept in history, where an
// answer that echoes the request could put the token.
var snowflake = regexp.MustCompile(`^[0-9]{1,20}$`)

// checkIDs refuses an answer whose ids are none, as one that could not be read.
func checkIDs(answer any) error {
	var ids []string
	message := func(m *discordgo.Message) {
		ids = append(ids, m.ID)
		if m.Author != nil {
			ids = append(ids, m.Author.ID)
		}
	}
	switch v := answer.(type) {
	case *discordgo.Message:
		message(v)
	case *[]discordgo.Message:
		for i := range *v {
			message(&(*v)[i])
		}
	case *discordgo.User:
		ids = append(ids, v.ID)
	}
	for _, id := range ids {
		if !snowflake.MatchString(id) {
			return errBadID
		}
	}
	return nil
}
