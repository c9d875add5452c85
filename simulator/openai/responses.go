package openai

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast-dev/holdfast/simulator"
)

// response is the response object. Fields that the API always sends are always
// there.
type response struct {
	ID                string            `json:"id"`
	Object            string            `json:"object"`
	CreatedAt         int64             `json:"created_at"`
	Status            string            `json:"status"`
	Model             string            `json:"model"`
	Output            []any             `json:"output"`
	Error             any               `json:"error"`
	IncompleteDetails any               `json:"incomplete_details"`
	Instructions      any               `json:"instructions"`
	Metadata          map[string]string `json:"metadata"`
	ParallelToolCalls bool              `json:"parallel_tool_calls"`
	Tools             []any             `json:"tools"`
	ToolChoice        string            `json:"tool_choice"`
	Usage             *usage            `json:"usage"`
}

type usage struct {
	InputTokens        int            `json:"input_tokens"`
	InputTokensDetails map[string]int `json:"input_tokens_details"`
	OutputTokens       int            `json:"output_tokens"`
	OutputDetails      map[string]int `json:"output_tokens_details"`
	TotalTokens        int            `json:"total_tokens"`
}

// message and call are output items.
type message struct {
	ID      string        `json:"id"`
	Type    string        `json:"type"`
	Status  string        `json:"status"`
	Role    string        `json:"role"`
	Content []contentPart `json:"content"`
}

type contentPart struct {
	Type        string `json:"type"`
	Text        string `json:"text"`
	Annotations []any  `json:"annotations"`
}

type call struct {
	ID        string `json:"id"`
	Type      string `json:"type"`
	Status    string `json:"status"`
	CallID    string `json:"call_id"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

func (p *platform) respond(c *simulator.Call) simulator.Answer {
	var in request
	if err := json.Unmarshal(c.Body, &in); err != nil {
		return fail(http.StatusBadRequest, "", "invalid_request_error", "We could not parse the JSON body of your request.")
	}
	if in.Model == "" {
		return fail(http.StatusBadRequest, "missing_required_parameter", "invalid_request_error", "Missing required parameter: 'model'.")
	}
	if len(p.options.Models) > 0 && !slices.Contains(p.options.Models, in.Model) {
		return noModel(in.Model)
	}
	prompt, err := in.prompt(c.Body)
	if err != nil {
		return fail(http.StatusBadRequest, "invalid_type", "invalid_request_error", "Invalid type for 'input'.")
	}
	reply := p.options.Answer(prompt)
	chunks, incomplete := reply.cut(in.MaxOutputTokens)
	if incomplete {
		reply.Calls = nil
	}
	text := strings.Join(chunks, "")
	r := p.response(c, in, reply, text, len(chunks))
	if incomplete {
		r.Status, r.IncompleteDetails = "incomplete", map[string]string{"reason": "max_output_tokens"}
	}
	c.Effect(EffectResponse, r.ID, text)
	var answer simulator.Answer
	if in.Stream {
		answer = stream(r, chunks, reply.Calls)
		answer.Pace = p.options.Pace
	} else {
		answer = simulator.JSONAnswer(http.StatusOK, r)
	}
	limitHeaders(answer.Header, r.ID)
	return answer
}

// cut splits the text into its deltas, a token each, and stops at max tokens.
func (r Reply) cut(max int) (chunks []string, incomplete bool) {
	chunks = r.Chunks
	if chunks == nil && r.Text != "" {
		chunks = strings.SplitAfter(r.Text, " ")
	}
	if max > 0 && len(chunks) > max {
		return chunks[:max], true
	}
	return chunks, false
}

// response is the finished response.
func (p *platform) response(c *simulator.Call, in request, reply Reply, text string, tokens int) response {
	id := fmt.Sprintf("resp_%08d", p.ids.Add(1))
	r := response{
		ID: id, Object: "response", CreatedAt: c.Now().Unix(), Status: "completed", Model: in.Model, Output: []any{},
		Metadata: map[string]string{}, ParallelToolCalls: true, Tools: []any{}, ToolChoice: "auto",
	}
	if text != "" {
		r.Output = append(r.Output, newMessage(id, "completed", text))
	}
	for i, tc := range reply.Calls {
		r.Output = append(r.Output, newCall(id, i, "completed", tc))
		tokens += 1 + len(tc.Arguments)/4
	}
	input := len(in.Input)/4 + len(in.Instructions)/4 + 1
	r.Usage = &usage{
		InputTokens: input, InputTokensDetails: map[string]int{"cached_tokens": 0},
		OutputTokens: tokens, OutputDetails: map[string]int{"reasoning_tokens": 0}, TotalTokens: input + tokens,
	}
	return r
}

func newMessage(id, status, text string) message {
	m := message{ID: "msg_" + id, Type: "message", Status: status, Role: "assistant", Content: []contentPart{}}
	if status == "completed" {
		m.Content = append(m.Content, contentPart{"output_text", text, []any{}})
	}
	return m
}

func newCall(id string, i int, status string, tc ToolCall) call {
	out := call{ID: fmt.Sprintf("fc_%s_%d", id, i), Type: "function_call", Status: status, CallID: tc.ID, Name: tc.Name}
	if out.CallID == "" {
		out.CallID = fmt.Sprintf("call_%s_%d", id, i)
	}
	if status == "completed" {
		out.Arguments = tc.Arguments
	}
	return out
}

func limitHeaders(h http.Header, id string) {
	h.Set("x-request-id", "req_"+id)
	h.Set("x-ratelimit-limit-requests", "10000")
	h.Set("x-ratelimit-remaining-requests", "9999")
	h.Set("x-ratelimit-reset-requests", "6ms")
	h.Set("x-ratelimit-limit-tokens", "2000000")
	h.Set("x-ratelimit-remaining-tokens", "1999000")
	h.Set("x-ratelimit-reset-tokens", "30ms")
}

// events collects the frames of a stream.
type events struct{ frames [][]byte }

// add makes a frame of an event's fields, with its type and sequence number.
func (e *events) add(kind string, fields map[string]any) {
	fields["type"], fields["sequence_number"] = kind, len(e.frames)
	data, err := json.Marshal(fields)
	if err != nil {
		panic(fmt.Sprintf("openai: event %s: %v", kind, err)) // the fields are our own types
	}
	e.frames = append(e.frames, []byte(frame(kind, string(data))))
}

func frame(kind, data string) string { return "event: " + kind + "\ndata: " + data + "\n\n" }

// stream is the answer as events, in the order the API sends them.
func stream(r response, chunks []string, calls []ToolCall) simulator.Answer {
	e := &events{}
	begun := r
	begun.Status, begun.Output, begun.Usage, begun.IncompleteDetails = "in_progress", []any{}, nil, nil
	e.add("response.created", map[string]any{"response": begun})
	e.add("response.in_progress", map[string]any{"response": begun})
	index := 0
	if len(chunks) > 0 {
		e.text(r.ID, index, chunks)
		index++
	}
	for i, tc := range calls {
		e.call(r.ID, index, i, tc)
		index++
	}
	e.add("response."+r.Status, map[string]any{"response": r})
	return simulator.Answer{
		Status: http.StatusOK,
		Header: http.Header{"Content-Type": {"text/event-stream; charset=utf-8"}, "Cache-Control": {"no-cache"}},
		Frames: e.frames,
		Vars:   map[string]string{"id": r.ID, "model": r.Model, "created_at": strconv.FormatInt(r.CreatedAt, 10)},
	}
}

func (e *events) text(id string, index int, chunks []string) {
	whole := strings.Join(chunks, "")
	item := newMessage(id, "in_progress", "")
	at := func(fields map[string]any) map[string]any {
		fields["item_id"], fields["output_index"], fields["content_index"] = item.ID, index, 0
		return fields
	}
	e.add("response.output_item.added", map[string]any{"output_index": index, "item": item})
	e.add("response.content_part.added", at(map[string]any{"part": contentPart{"output_text", "", []any{}}}))
	for _, chunk := range chunks {
		e.add("response.output_text.delta", at(map[string]any{"delta": chunk, "logprobs": []any{}}))
	}
	e.add("response.output_text.done", at(map[string]any{"text": whole, "logprobs": []any{}}))
	e.add("response.content_part.done", at(map[string]any{"part": contentPart{"output_text", whole, []any{}}}))
	e.add("response.output_item.done", map[string]any{"output_index": index, "item": newMessage(id, "completed", whole)})
}

func (e *events) call(id string, index, i int, tc ToolCall) {
	item := newCall(id, i, "in_progress", tc)
	e.add("response.output_item.added", map[string]any{"output_index": index, "item": item})
	size := tc.ChunkSize
	if size <= 0 {
		size = 16
	}
	for from := 0; from < len(tc.Arguments); from += size {
		delta := tc.Arguments[from:min(from+size, len(tc.Arguments))]
		e.add("response.function_call_arguments.delta", map[string]any{"item_id": item.ID, "output_index": index, "delta": delta})
	}
	e.add("response.function_call_arguments.done", map[string]any{"item_id": item.ID, "output_index": index, "name": tc.Name, "arguments": tc.Arguments})
	e.add("response.output_item.done", map[string]any{"output_index": index, "item": newCall(id, i, "completed", tc)})
}
