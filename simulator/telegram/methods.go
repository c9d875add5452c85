package telegram

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"

	"github.com/holdfast-dev/holdfast/simulator"
)

const (
	maxText    = 4096 // UTF-16 units
	maxCaption = 1024 // UTF-16 units
)

// Message is a message as the API tells it, and how it was sent.
type Message struct {
	ID        int64          `json:"message_id"`
	Thread    int64          `json:"message_thread_id,omitempty"`
	From      User           `json:"from"`
	Chat      Chat           `json:"chat"`
	Date      int64          `json:"date"`
	EditDate  int64          `json:"edit_date,omitempty"`
	Text      string         `json:"text,omitempty"`
	Caption   string         `json:"caption,omitempty"`
	ReplyTo   *ReplyTo       `json:"reply_to_message,omitempty"`
	Origin    map[string]any `json:"forward_origin,omitempty"`
	ParseMode string         `json:"-"`
	// Method is the one that sent it.
	Method string `json:"-"`
}

// Chat is where a message is.
type Chat struct {
	ID   int64  `json:"id"`
	Type string `json:"type"`
}

// ReplyTo is the message that another one answers.
type ReplyTo struct {
	ID int64 `json:"message_id"`
}

type chat struct {
	messages []*Message
	last     int64
}

func (c *chat) find(id int64) *Message {
	i := slices.IndexFunc(c.messages, func(m *Message) bool { return m.ID == id })
	if i < 0 {
		return nil
	}
	return c.messages[i]
}

// media are the methods that send a file with a caption, and the parameter that
// has the file.
var media = map[string]string{
	"sendphoto": "photo", "senddocument": "document", "sendvideo": "video", "sendaudio": "audio",
	"sendvoice": "voice", "sendanimation": "animation", "sendsticker": "sticker",
}

func (p *platform) call(c *simulator.Call, method string, in fields, token string) simulator.Answer {
	name := strings.ToLower(method) // Telegram's method names ignore case
	if file, ok := media[name]; ok {
		return p.sendMedia(c, in, token, file)
	}
	switch name {
	case "sendmessage":
		return p.sendMessage(c, in, token)
	case "sendpoll":
		return p.store(c, in, token, Message{Text: in.text("question")})
	case "editmessagetext":
		return p.edit(c, in)
	case "deletemessage":
		return p.delete(c, in)
	case "forwardmessage":
		return p.forward(c, in, token)
	case "sendchataction":
		c.Effect(EffectAction, in.text("chat_id"), in.text("action"))
		return result(true)
	case "setmessagereaction":
		c.Effect(EffectReaction, in.text("message_id"), in.text("reaction"))
		return result(true)
	}
	return fail(404, "Not Found: method not found")
}

func units(s string) int { return len(utf16.Encode([]rune(s))) }

func (p *platform) sendMessage(c *simulator.Call, in fields, token string) simulator.Answer {
	text := in.text("text")
	if fault := checkText(text, in.text("parse_mode")); fault != "" {
		return badRequest(fault)
	}
	return p.store(c, in, token, Message{Text: text})
}

// checkText says what is wrong with a text, in Telegram's words.
func checkText(text, mode string) string {
	if strings.TrimSpace(text) == "" {
		return "message text is empty"
	}
	if fault := checkEntities(text, mode); fault != "" {
		return fault
	}
	if units(visible(text, mode)) > maxText {
		return "message is too long"
	}
	return ""
}

func (p *platform) sendMedia(c *simulator.Call, in fields, token, file string) simulator.Answer {
	caption := in.text("caption")
	if in.text(file) == "" {
		return badRequest(fmt.Sprintf("there is no %s in the request", file))
	}
	if fault := checkEntities(caption, in.text("parse_mode")); fault != "" {
		return badRequest(fault)
	}
	if units(visible(caption, in.text("parse_mode"))) > maxCaption {
		return badRequest("message caption is too long")
	}
	return p.store(c, in, token, Message{Caption: caption})
}

// store makes a message of what was sent.
func (p *platform) store(c *simulator.Call, in fields, token string, m Message) simulator.Answer {
	chatID := in.text("chat_id")
	if reply := replyOf(in); reply != 0 {
		if p.chat(chatID).find(reply) == nil {
			return badRequest("message to be replied not found")
		}
		m.ReplyTo = &ReplyTo{ID: reply}
	}
	m.Thread, m.ParseMode, m.Method = in.number("message_thread_id"), in.text("parse_mode"), c.Op
	return result(p.add(c, EffectMessage, chatID, token, m))
}

// replyOf is the message to answer, in the newer or the older form.
func replyOf(in fields) int64 {
	var reply struct {
		MessageID int64 `json:"message_id"`
	}
	if in.decode("reply_parameters", &reply) && reply.MessageID != 0 {
		return reply.MessageID
	}
	return in.number("reply_to_message_id")
}

func (p *platform) add(c *simulator.Call, effect, chatID, token string, m Message) *Message {
	ch := p.chat(chatID)
	ch.last++
	m.ID, m.From, m.Date = ch.last, me(token), c.Now().Unix()
	m.Chat.ID, _ = strconv.ParseInt(chatID, 10, 64)
	m.Chat.Type = "private"
	if strings.HasPrefix(chatID, "-") {
		m.Chat.Type = "supergroup"
	}
	ch.messages = append(ch.messages, &m)
	content := m.Text
	if content == "" {
		content = m.Caption
	}
	c.Effect(effect, strconv.FormatInt(m.ID, 10), content)
	return &m
}

func (p *platform) edit(c *simulator.Call, in fields) simulator.Answer {
	m := p.chat(in.text("chat_id")).find(in.number("message_id"))
	text, mode := in.text("text"), in.text("parse_mode")
	if fault := checkText(text, mode); fault != "" {
		return badRequest(fault)
	}
	switch {
	case m == nil:
		return badRequest("message to edit not found")
	case m.Text == text && m.ParseMode == mode:
		return badRequest("message is not modified: specified new message content and reply markup are exactly the same as a current content and reply markup of the message")
	}
	m.Text, m.ParseMode, m.EditDate = text, mode, c.Now().Unix()
	c.Effect(EffectEdit, strconv.FormatInt(m.ID, 10), text)
	return result(m)
}

func (p *platform) delete(c *simulator.Call, in fields) simulator.Answer {
	ch, id := p.chat(in.text("chat_id")), in.number("message_id")
	if ch.find(id) == nil {
		return badRequest("message to delete not found")
	}
	ch.messages = slices.DeleteFunc(ch.messages, func(m *Message) bool { return m.ID == id })
	c.Effect(EffectDelete, strconv.FormatInt(id, 10), "")
	return result(true)
}

// forward copies a message of one chat into another.
func (p *platform) forward(c *simulator.Call, in fields, token string) simulator.Answer {
	m := p.chat(in.text("from_chat_id")).find(in.number("message_id"))
	if m == nil {
		return badRequest("message to forward not found")
	}
	origin := map[string]any{"type": "user", "sender_user": m.From, "date": m.Date}
	return result(p.add(c, EffectForward, in.text("chat_id"), token, Message{Text: m.Text, Caption: m.Caption, Origin: origin, Method: c.Op}))
}
