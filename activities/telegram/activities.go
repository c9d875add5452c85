package telegram

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/mymmrac/telego"
	"github.com/mymmrac/telego/telegoapi"

	"github.com/holdfast-dev/holdfast/activities/channel"
	"github.com/holdfast-dev/holdfast/contract"
	"github.com/holdfast-dev/holdfast/failure"
	"github.com/holdfast-dev/holdfast/internal/attempt"
	"github.com/holdfast-dev/holdfast/policies"
)

// Account is one bot account.
type Account struct {
	// Token resolves the bot token; called for each request, so that a rotated
	// token is picked up.
	Token func(context.Context) (string, error)
	// APIURL is the server's base, such as "https://api.telegram.org".
	APIURL string
}

// Config of the activities.
type Config struct {
	// Accounts by name; required.
	Accounts map[string]Account
	// Transport options. Fresh is always set: new messages use a connection of
	// their own, so that the HTTP client cannot repeat them.
	Transport attempt.Options
}

// Activities holds the Telegram activities.
type Activities struct {
	accounts map[string]Account
	client   *http.Client
}

// New checks c and returns the activities.
func New(c Config) (*Activities, error) {
	for name, a := range c.Accounts {
		u, err := url.Parse(a.APIURL)
		if err != nil || u.Host == "" {
			return nil, fmt.Errorf("telegram account %q: the API URL is not a URL", name)
		}
		if a.Token == nil {
			return nil, fmt.Errorf("telegram account %q: no token", name)
		}
	}
	c.Transport.Fresh = true
	return &Activities{accounts: c.Accounts, client: attempt.NewClient(c.Transport)}, nil
}

// SendMessage sends one text message (C2.5). Its error is a
// [contract.Failure] built by package failure; a parse error (C2.7) is benign.
func (a *Activities) SendMessage(ctx context.Context, in contract.MessageInput) (contract.MessageResult, error) {
	at := channel.Begin(ctx, in, channel.Attempt{
		Surface: policies.SurfaceTelegram, Operation: policies.OpSend, Envelope: policies.EnvelopeChannel,
	})
	if at.Unproven() {
		// The retry policy keeps a lost attempt from coming back; an operator's
		// reset of the activity must not double the message either.
		return contract.MessageResult{}, at.Unknown("C2.8/lost_attempt")
	}
	if err := at.Refuse(ctx); err != nil {
		return contract.MessageResult{}, err
	}
	params, setup := sendParams(in)
	if setup != nil {
		return contract.MessageResult{}, at.Setup(setup)
	}
	defer at.Heartbeat(ctx)()
	reqCtx, cancel := at.Request(ctx)
	defer cancel()

	var message telego.Message
	fault, err := a.call(reqCtx, in.Account, "sendMessage", params, &message)
	if err == nil {
		return contract.MessageResult{MessageID: strconv.Itoa(message.MessageID), Attempts: at.Number}, nil
	}
	if errors.As(err, &setup) {
		return contract.MessageResult{}, at.Setup(setup)
	}
	fault.Operation = policies.OpSend
	verdict := policies.Judge(&fault)
	if verdict.Reason == policies.ReasonParseError {
		f := failure.FromVerdict(&fault, verdict, explain(&fault))
		f.Attempts = at.Number - in.Used
		return contract.MessageResult{}, failure.New(f, failure.Options{})
	}
	return contract.MessageResult{}, at.Fail(ctx, &fault, verdict, explain(&fault))
}

func sendParams(in contract.MessageInput) (*telego.SendMessageParams, *channel.SetupError) {
	params := &telego.SendMessageParams{ChatID: telego.ChatID{Username: in.To}, Text: in.Text}
	if id, err := strconv.ParseInt(in.To, 10, 64); err == nil {
		params.ChatID = telego.ChatID{ID: id}
	}
	switch in.Format {
	case contract.FormatMarkdown:
		params.ParseMode = telego.ModeMarkdownV2
	case contract.FormatHTML:
		params.ParseMode = telego.ModeHTML
	}
	if in.Thread != "" {
		thread, err := strconv.Atoi(in.Thread)
		if err != nil {
			return nil, channel.Invalid("a Telegram thread is a number (message_thread_id)")
		}
		params.MessageThreadID = thread
	}
	if in.ReplyTo != "" {
		reply, err := strconv.Atoi(in.ReplyTo)
		if err != nil {
			return nil, channel.Invalid("a Telegram message id is a number (--reply-to)")
		}
		params.ReplyParameters = &telego.ReplyParameters{MessageID: reply, AllowSendingWithoutReply: true}
	}
	return params, nil
}

var (
	errRefused   = errors.New("telegram refused the request")
	errNoReceipt = errors.New("telegram's answer names no message")
)

// call makes one Bot API request. The token is part of the URL, so no error
// text of the HTTP client may pass: only the recorder's facts do.
func (a *Activities) call(ctx context.Context, name, method string, params, into any) (policies.Fault, error) {
	name, account, err := channel.Pick("telegram", a.accounts, name)
	if err != nil {
		return policies.Fault{}, err
	}
	token, err := account.Token(ctx)
	if err != nil {
		return policies.Fault{}, channel.NoToken("telegram", name)
	}
	data, err := json.Marshal(params)
	if err != nil {
		return policies.Fault{}, channel.Invalid("the message cannot be written as JSON")
	}
	rec := attempt.New()
	target := strings.TrimSuffix(account.APIURL, "/") + "/bot" + token + "/" + method
	req, err := http.NewRequestWithContext(attempt.With(ctx, rec), http.MethodPost, target, bytes.NewReader(data))
	if err != nil {
		return policies.Fault{}, channel.Invalid("the bot token does not form a valid URL")
	}
	req.Header.Set("Content-Type", "application/json")
	refusal, err := a.roundTrip(req, into)
	if err == nil {
		return policies.Fault{}, nil
	}
	fault := rec.Fault(policies.SurfaceTelegram, err, time.Now())
	if refusal != nil {
		fault.Body = refusal
	}
	return fault, err
}

// roundTrip makes the request and decodes a successful answer. A proxy may have
// changed the status of a refusal, so its body is returned as well.
func (a *Activities) roundTrip(req *http.Request, into any) (refusal []byte, err error) {
	resp, err := a.client.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		channel.Discard(resp)
		return nil, errRefused
	}
	data, err := channel.ReadAnswer(resp)
	if err != nil {
		return nil, err
	}
	var answer telegoapi.Response
	if err := json.Unmarshal(data, &answer); err != nil {
		return nil, err
	}
	if !answer.Ok && answer.Error != nil && answer.Error.ErrorCode >= 400 {
		return data[:min(len(data), policies.MaxBody)], errRefused
	}
	if err := json.Unmarshal(answer.Result, into); err != nil {
		return nil, err
	}
	if m, ok := into.(*telego.Message); ok && m.MessageID <= 0 {
		return nil, errNoReceipt
	}
	return nil, nil
}
