package discord

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/holdfast-dev/holdfast/simulator"
)

const (
	maxContent = 2000 // code points
	maxNonce   = 25   // characters
)

// User is an author.
type User struct {
	ID       string `json:"id"`
	Username string `json:"username"`
	Bot      bool   `json:"bot,omitempty"`
}

// Message is a message as the API tells it.
type Message struct {
	ID          string            `json:"id"`
	ChannelID   string            `json:"channel_id"`
	Author      User              `json:"author"`
	Content     string            `json:"content"`
	Timestamp   time.Time         `json:"timestamp"`
	Edited      *time.Time        `json:"edited_timestamp"`
	Type        int               `json:"type"`
	Reference   *Reference        `json:"message_reference,omitempty"`
	Attachments []Attachment      `json:"attachments"`
	Embeds      []json.RawMessage `json:"embeds"`
	// Nonce is only in the answer to the create.
	Nonce json.RawMessage `json:"nonce,omitempty"`
}

// Reference names the message that a reply answers.
type Reference struct {
	MessageID       string `json:"message_id"`
	ChannelID       string `json:"channel_id,omitempty"`
	FailIfNotExists *bool  `json:"fail_if_not_exists,omitempty"`
}

// Attachment is a file of a message.
type Attachment struct {
	ID       string `json:"id"`
	Filename string `json:"filename"`
	Size     int    `json:"size"`
}

type nonceKey struct{ author, channel, nonce string }

type nonceUse struct {
	message string
	at      time.Time
}

// channel holds its messages, oldest first.
type channel struct{ messages []*Message }

func (c *channel) find(id string) *Message {
	i := slices.IndexFunc(c.messages, func(m *Message) bool { return m.ID == id })
	if i < 0 {
		return nil
	}
	return c.messages[i]
}

func (c *channel) remove(id string) {
	c.messages = slices.DeleteFunc(c.messages, func(m *Message) bool { return m.ID == id })
}

func (p *platform) channel(id string) *channel {
	c := p.channels[id]
	if c == nil {
		c = &channel{}
		p.channels[id] = c
	}
	return c
}

// createRequest is the body of a create or an edit.
type createRequest struct {
	Content      *string           `json:"content"`
	Nonce        json.RawMessage   `json:"nonce"`
	EnforceNonce bool              `json:"enforce_nonce"`
	Reference    *Reference        `json:"message_reference"`
	Embeds       []json.RawMessage `json:"embeds"`
	Stickers     []string          `json:"sticker_ids"`
	Poll         json.RawMessage   `json:"poll"`
	files        []Attachment
}

func (in *createRequest) text() string {
	if in.Content == nil {
		return ""
	}
	return *in.Content
}

func (in *createRequest) empty() bool {
	return strings.TrimSpace(in.text()) == "" && len(in.Embeds) == 0 && len(in.Stickers) == 0 && len(in.files) == 0 && in.Poll == nil
}

func (p *platform) create(c *simulator.Call, rt route, user User) simulator.Answer {
	in, err := parse(c.Request)
	if err != nil {
		return fail(http.StatusBadRequest, 50109, "The request body contains invalid JSON.")
	}
	nonce := strings.Trim(string(in.Nonce), `"`)
	switch {
	case utf8.RuneCountInString(in.text()) > maxContent:
		return invalid("content", "BASE_TYPE_MAX_LENGTH", "Must be 2000 or fewer in length.")
	case utf8.RuneCountInString(nonce) > maxNonce:
		return invalid("nonce", "BASE_TYPE_MAX_LENGTH", "Must be 25 or fewer in length.")
	case in.empty():
		return fail(http.StatusBadRequest, CodeEmptyMessage, "Cannot send an empty message")
	}
	if ref := in.Reference; ref != nil && p.channel(rt.channel).find(ref.MessageID) == nil {
		if ref.FailIfNotExists == nil || *ref.FailIfNotExists {
			return invalid("message_reference", "REPLIES_UNKNOWN_MESSAGE", "Unknown message")
		}
		in.Reference = nil
	}
	key := nonceKey{user.ID, rt.channel, nonce}
	if nonce != "" && in.EnforceNonce {
		if answer, ok := p.existing(c, key, in.Nonce); ok {
			return answer
		}
	}
	m := p.add(rt.channel, Message{Author: user, Content: in.text(), Reference: in.Reference, Attachments: in.files, Embeds: in.Embeds})
	if nonce != "" {
		p.nonces[key] = nonceUse{m.ID, c.Now()}
	}
	c.Effect(EffectMessage, m.ID, m.Content)
	out := *m
	out.Nonce = in.Nonce
	return simulator.JSONAnswer(http.StatusOK, out)
}

// existing answers a create whose nonce was used within the window.
func (p *platform) existing(c *simulator.Call, key nonceKey, nonce json.RawMessage) (simulator.Answer, bool) {
	use, ok := p.nonces[key]
	if !ok || c.Now().Sub(use.at) >= p.options.NonceWindow {
		return simulator.Answer{}, false
	}
	m := p.channel(key.channel).find(use.message)
	if m == nil {
		return fail(http.StatusNotFound, CodeUnknownMessage, "Unknown Message"), true
	}
	out := *m
	out.Nonce = nonce
	return simulator.JSONAnswer(http.StatusOK, out), true
}

func (p *platform) edit(c *simulator.Call, m *Message, user User) simulator.Answer {
	if m.Author.ID != user.ID {
		return fail(http.StatusForbidden, CodeCannotEdit, "Cannot edit a message authored by another user")
	}
	in, err := parse(c.Request)
	if err != nil {
		return fail(http.StatusBadRequest, 50109, "The request body contains invalid JSON.")
	}
	if utf8.RuneCountInString(in.text()) > maxContent {
		return invalid("content", "BASE_TYPE_MAX_LENGTH", "Must be 2000 or fewer in length.")
	}
	if in.Content != nil {
		m.Content = *in.Content
	}
	now := c.Now().UTC()
	m.Edited = &now
	c.Effect(EffectEdit, m.ID, m.Content)
	return simulator.JSONAnswer(http.StatusOK, m)
}

// list answers with messages, newest first: those before or after an id, around
// one, or the latest.
func (p *platform) list(c *simulator.Call, rt route) simulator.Answer {
	q := c.Request.URL.Query()
	limit := 50
	if text := q.Get("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > 100 {
			return invalid("limit", "NUMBER_TYPE_MAX", "int value should be between 1 and 100.")
		}
		limit = n
	}
	all := p.channel(rt.channel).messages
	if p.hidden[rt.channel] {
		all = nil
	}
	at := func(name string) int {
		id, _ := strconv.ParseUint(q.Get(name), 10, 64)
		return slices.IndexFunc(all, func(m *Message) bool { return number(m.ID) >= id })
	}
	from, to := max(0, len(all)-limit), len(all)
	switch {
	case q.Has("around"):
		if i := at("around"); i >= 0 {
			from = max(0, i-limit/2)
			to = min(len(all), from+limit)
		}
	case q.Has("before"):
		if i := at("before"); i >= 0 {
			from, to = max(0, i-limit), i
		}
	case q.Has("after"):
		id, _ := strconv.ParseUint(q.Get("after"), 10, 64)
		from = len(all)
		if i := slices.IndexFunc(all, func(m *Message) bool { return number(m.ID) > id }); i >= 0 {
			from = i
		}
		to = min(len(all), from+limit)
	}
	out := slices.Clone(all[from:to])
	slices.Reverse(out)
	if out == nil {
		out = []*Message{}
	}
	return simulator.JSONAnswer(http.StatusOK, out)
}

func number(id string) uint64 {
	n, _ := strconv.ParseUint(id, 10, 64)
	return n
}

// add stores a message under a new id; the caller holds the lock.
func (p *platform) add(channelID string, m Message) *Message {
	now := p.options.Now().UTC()
	m.ID, m.ChannelID, m.Timestamp = p.snowflake(now), channelID, now
	if m.Attachments == nil {
		m.Attachments = []Attachment{}
	}
	if m.Embeds == nil {
		m.Embeds = []json.RawMessage{}
	}
	for i := range m.Attachments {
		m.Attachments[i].ID = p.snowflake(now)
	}
	c := p.channel(channelID)
	c.messages = append(c.messages, &m)
	return &m
}

// epoch is the first second of 2015, from which snowflakes count milliseconds.
const epoch = 1420070400000

// Snowflake is the least id that a message of a time can have.
func Snowflake(t time.Time) string {
	return strconv.FormatInt((t.UnixMilli()-epoch)<<22, 10)
}

// snowflake is a new id, greater than every one before it.
func (p *platform) snowflake(now time.Time) string {
	p.last = max(p.last+1, uint64(now.UnixMilli()-epoch)<<22)
	return strconv.FormatUint(p.last, 10)
}

// parse reads a JSON body, or the payload_json and the files of a multipart one.
func parse(r *http.Request) (*createRequest, error) {
	in := &createRequest{}
	kind, params, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if kind != "multipart/form-data" {
		return in, json.NewDecoder(r.Body).Decode(in)
	}
	parts := multipart.NewReader(r.Body, params["boundary"])
	for {
		part, err := parts.NextPart()
		if err == io.EOF {
			return in, nil
		}
		if err != nil {
			return nil, err
		}
		data, err := io.ReadAll(part)
		if err != nil {
			return nil, err
		}
		if part.FormName() == "payload_json" {
			if err := json.NewDecoder(bytes.NewReader(data)).Decode(in); err != nil {
				return nil, err
			}
		} else if part.FileName() != "" {
			in.files = append(in.files, Attachment{Filename: part.FileName(), Size: len(data)})
		}
	}
}

// invalid is Discord's answer to a form that breaks a rule.
func invalid(field, code, message string) simulator.Answer {
	errors := fmt.Sprintf(`{%q:{"_errors":[{"code":%q,"message":%q}]}}`, field, code, message)
	return simulator.JSONAnswer(http.StatusBadRequest, apiError{Message: "Invalid Form Body", Code: CodeInvalidForm, Errors: json.RawMessage(errors)})
}
