package openai

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"strings"
)

// Prompt is what a request asks.
type Prompt struct {
	Model        string
	Instructions string
	// Input holds the items of the input in order; a plain text is one item of
	// the user.
	Input []Item
	// Tools are the names of the functions that may be called.
	Tools []string
	// Raw is the body of the request.
	Raw json.RawMessage
}

// Item is one item of the input: a message, or the output of a tool.
type Item struct {
	Type   string
	Role   string
	Text   string
	CallID string
}

// LastUser is the text of the last message of the user.
func (p Prompt) LastUser() string {
	for i := len(p.Input) - 1; i >= 0; i-- {
		if p.Input[i].Role == "user" {
			return p.Input[i].Text
		}
	}
	return ""
}

// ToolOutput says whether the input ends with the output of a tool, which is what
// a model sees after its calls have run.
func (p Prompt) ToolOutput() bool {
	return len(p.Input) > 0 && p.Input[len(p.Input)-1].Type == "function_call_output"
}

// Reply is what the model says: a text, calls, or both.
type Reply struct {
	Text  string
	Calls []ToolCall
	// Chunks, where set, are the deltas that the text is sent in; else its words.
	Chunks []string
}

// ToolCall is a function call. Arguments are JSON, sent in pieces of ChunkSize
// bytes (default 16). An empty ID is made up from the response's id.
type ToolCall struct {
	ID        string
	Name      string
	Arguments string
	ChunkSize int
}

var sentences = []string{
	"Here is what I can say about that.",
	"The first thing to look at is what was asked, and what has been done about it so far.",
	"Several steps follow from it, and each of them can be checked on its own.",
	"None of them depends on luck, so the result is the same when they are done again.",
	"Where something is unknown, it is better to say so than to guess.",
	"A short list of the open points helps whoever comes next.",
	"With those settled, the rest is routine.",
	"That is all there is to it; ask again if a part of it is unclear.",
}

// DefaultAnswer is a text of eight sentences that names the prompt; the same
// prompt gives the same text.
func DefaultAnswer(p Prompt) Reply {
	said := p.LastUser()
	h := fnv.New32a()
	h.Write([]byte(said))
	turn := int(h.Sum32() % uint32(len(sentences)))
	var b strings.Builder
	fmt.Fprintf(&b, "You asked: %s.", strings.TrimRight(first(said, 80), ".!? \n"))
	for i := range sentences {
		b.WriteString(" ")
		b.WriteString(sentences[(turn+i)%len(sentences)])
	}
	return Reply{Text: b.String()}
}

// first is the start of a text, at most n code points.
func first(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:n])
	}
	return s
}

// request is the body of POST /v1/responses, as far as the simulator reads it.
type request struct {
	Model           string          `json:"model"`
	Instructions    string          `json:"instructions"`
	Input           json.RawMessage `json:"input"`
	Stream          bool            `json:"stream"`
	MaxOutputTokens int             `json:"max_output_tokens"`
	Tools           []struct {
		Name string `json:"name"`
	} `json:"tools"`
}

func modelOf(body []byte) string {
	var in struct {
		Model string `json:"model"`
	}
	// A body that is not JSON has no model; Serve says so.
	_ = json.Unmarshal(body, &in)
	return in.Model
}

func (in request) prompt(raw []byte) (Prompt, error) {
	p := Prompt{Model: in.Model, Instructions: in.Instructions, Raw: raw}
	for _, t := range in.Tools {
		if t.Name != "" {
			p.Tools = append(p.Tools, t.Name)
		}
	}
	var text string
	if json.Unmarshal(in.Input, &text) == nil {
		p.Input = []Item{{Type: "message", Role: "user", Text: text}}
		return p, nil
	}
	var items []struct {
		Type    string          `json:"type"`
		Role    string          `json:"role"`
		Content json.RawMessage `json:"content"`
		CallID  string          `json:"call_id"`
		Output  json.RawMessage `json:"output"`
	}
	if err := json.Unmarshal(in.Input, &items); err != nil {
		return p, err
	}
	for _, it := range items {
		item := Item{Type: it.Type, Role: it.Role, Text: textOf(it.Content), CallID: it.CallID}
		if item.Type == "" {
			item.Type = "message"
		}
		if it.Output != nil {
			item.Text = textOf(it.Output)
		}
		p.Input = append(p.Input, item)
	}
	return p, nil
}

// textOf joins the texts of a content, which is a string or a list of parts.
func textOf(content json.RawMessage) string {
	var text string
	if json.Unmarshal(content, &text) == nil {
		return text
	}
	var parts []struct {
		Text string `json:"text"`
	}
	if json.Unmarshal(content, &parts) != nil {
		return ""
	}
	var out []string
	for _, part := range parts {
		out = append(out, part.Text)
	}
	return strings.Join(out, "")
}
