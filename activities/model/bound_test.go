package model_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast/contract"
	"github.com/holdfast-dev/holdfast/internal/transcript"
)

// response is a finished response with a text, as a document.
func response(t *testing.T, fields map[string]any, text string) string {
	t.Helper()
	r := map[string]any{
		"id": "resp_1", "object": "response", "status": "completed", "model": "gpt-x-1",
		"output": []any{map[string]any{"type": "message", "role": "assistant", "content": []any{map[string]any{"type": "output_text", "text": text}}}},
	}
	for name, value := range fields {
		r[name] = value
	}
	data, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func deltaOf(t *testing.T, text string) string {
	t.Helper()
	data, err := json.Marshal(map[string]string{"type": "response.output_text.delta", "delta": text})
	if err != nil {
		t.Fatal(err)
	}
	return "data: " + string(data) + "\n\n"
}

// M5: an answer that no payload can hold is a failure that says the limit, final
// and without failover; one just below it passes.
func TestAnswerTooLarge(t *testing.T) {
	t.Parallel()
	const mib = 1 << 20
	for name, tc := range map[string]struct {
		text string
		fits bool
	}{
		"1 MiB":                  {strings.Repeat("a", mib), true},
		"more than 1 MiB":        {strings.Repeat("a", mib+1), false},
		"2 MiB":                  {strings.Repeat("a", 2*mib), false},
		"short, long as JSON":    {strings.Repeat("<", mib/3), false},
		"short, shorter as JSON": {strings.Repeat("<", mib/5), true},
	} {
		document := response(t, nil, tc.text)
		for way, answer := range map[string]string{
			"document":          jsonHead + document,
			"terminal snapshot": streamHead + created + "data: {\"type\":\"response.completed\",\"response\":" + document + "}\n\n",
			"deltas": streamHead + created + deltaOf(t, tc.text[:len(tc.text)/2]) + deltaOf(t, tc.text[len(tc.text)/2:]) +
				"data: {\"type\":\"response.completed\",\"response\":" + response(t, map[string]any{"output": []any{}}, "") + "}\n\n",
		} {
			t.Run(name+", "+way, func(t *testing.T) {
				t.Parallel()
				got := attempt(t, activities(t, provider(say(t, answer))), request())
				if tc.fits {
					if got.failure != nil || got.Text != tc.text {
						t.Fatalf("failure %+v, %d bytes", got.failure, len(got.Text))
					}
					return
				}
				f := got.fails(t, "format", "body")
				if f.Rule != "M5/answer_too_large" || !f.Permanent || f.Failover || f.RetrySame || f.Effect != "none" || !strings.Contains(f.Message, "1 MiB of text") {
					t.Errorf("failure %+v", f)
				}
				if len(got.Text) > 2<<10 {
					t.Errorf("%d bytes travel with the failure", len(got.Text))
				}
			})
		}
	}
}

// M5: a stream that never ends is read no further than an answer may be.
func TestEndlessAnswerIsStopped(t *testing.T) {
	t.Parallel()
	gone := make(chan struct{})
	piece := deltaOf(t, strings.Repeat("a", 32<<10))
	s := serve(t, func(s *server, c net.Conn) {
		if s.read(bufio.NewReader(c)) == nil {
			return
		}
		_, err := io.WriteString(c, streamHead+created)
		for err == nil {
			_, err = io.WriteString(c, piece)
		}
		close(gone)
	})
	f := attempt(t, activities(t, provider(s)), request()).fails(t, "format", "body")
	if f.Rule != "M5/answer_too_large" {
		t.Errorf("failure %+v", f)
	}
	await(t, gone, "the end of the connection")
}

// G9: what a provider calls its model and its answer is kept in history, so it
// is bounded, a single word, and never the key, whether the attempt succeeds or
// not. Counts that no call has are none.
func TestProviderWordsAreChecked(t *testing.T) {
	t.Parallel()
	usage := func(in, out, cached, reasoning int64) map[string]any {
		return map[string]any{
			"input_tokens": in, "output_tokens": out, "input_tokens_details": map[string]any{"cached_tokens": cached},
			"output_tokens_details": map[string]any{"reasoning_tokens": reasoning},
		}
	}
	for name, tc := range map[string]struct {
		fields map[string]any
		want   transcript.Answer
	}{
		"as they should be": {
			map[string]any{"usage": usage(3, 2, 1, 1e12)},
			transcript.Answer{Served: "gpt-x-1", ResponseID: "resp_1", Usage: contract.Usage{InputTokens: 3, OutputTokens: 2, CachedTokens: 1, ReasoningTokens: 1e12}},
		},
		"spaces and controls": {map[string]any{"id": "Bearer " + secret, "model": "a\nb"}, transcript.Answer{}},
		"beyond ASCII":        {map[string]any{"id": "é", "model": "a\u007f"}, transcript.Answer{}},
		"longest":             {map[string]any{"id": strings.Repeat("i", 200), "model": strings.Repeat("m", 201)}, transcript.Answer{ResponseID: strings.Repeat("i", 200)}},
		"absurd counts": {
			map[string]any{"usage": usage(-3, 1e12+1, -1, 1<<62)}, transcript.Answer{Served: "gpt-x-1", ResponseID: "resp_1"},
		},
	} {
		for _, status := range []string{"completed", "failed"} {
			t.Run(name+", "+status, func(t *testing.T) {
				t.Parallel()
				fields := map[string]any{"status": status}
				for k, v := range tc.fields {
					fields[k] = v
				}
				got := attempt(t, activities(t, provider(say(t, jsonHead+response(t, fields, "one")))), request())
				if (got.failure != nil) != (status == "failed") {
					t.Fatalf("failure %+v", got.failure)
				}
				want := tc.want
				want.Text, want.Finish = "one", status
				if diff := cmp.Diff(want, got.Answer); diff != "" {
					t.Errorf("answer (-want +got):\n%s", diff)
				}
			})
		}
	}
	echo := map[string]any{"id": secret, "model": "m-" + secret, "incomplete_details": map[string]any{"reason": secret}}
	for _, answer := range []string{
		jsonHead + response(t, echo, "one"),
		streamHead + "data: {\"type\":\"response.created\",\"response\":" + response(t, echo, "") + "}\n\n" + deltaOne,
	} {
		got := attempt(t, activities(t, provider(say(t, answer))), request())
		if kept := fmt.Sprintf("%+v %+v", got.Answer, got.failure); strings.Contains(kept, secret) {
			t.Errorf("kept: %s", kept)
		}
	}
}
