package starter

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode"

	"github.com/holdfast-dev/holdfast/contract"
)

// object prints the one JSON object: the workflow's ids, then the fields of
// result.
func (s *session) object(id, runID *string, result any) {
	ids, _ := json.Marshal(struct {
		WorkflowID *string `json:"workflow_id"`
		RunID      *string `json:"run_id"`
	}{id, runID})
	var fields bytes.Buffer
	enc := json.NewEncoder(&fields)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(result); err != nil {
		fmt.Fprintln(s.Err, "starter:", err)
		return
	}
	s.said = true
	body := bytes.TrimSpace(fields.Bytes())
	fmt.Fprintf(s.Out, "%s,%s\n", bytes.TrimSuffix(ids, []byte("}")), bytes.TrimPrefix(body, []byte("{")))
}

// clean takes the control characters out of text of the other side, which a
// terminal would obey; newlines and tabs stay.
func clean(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' && r != '\t' {
			return -1
		}
		return r
	}, text)
}

// printf prints text that may hold words of the other side.
func printf(w io.Writer, format string, args ...any) {
	_, _ = io.WriteString(w, clean(fmt.Sprintf(format, args...)))
}

// end is the exit status of an outcome, as an error.
func end(o contract.Outcome) error {
	if status := o.ExitStatus(); status != contract.ExitOK {
		return &endError{status}
	}
	return nil
}

// lament prints why work did not reach its good outcome: one line first, then
// the detail.
func (s *session) lament(id string, o contract.Outcome, e *contract.Error) {
	if e == nil {
		printf(s.Err, "%s: %s\n", id, o)
		return
	}
	printf(s.Err, "%s: %s: %s\n", id, o, e.Message)
	detail := fmt.Sprintf("  reason %s", e.Reason)
	if e.Rule != "" {
		detail += ", rule " + e.Rule
	}
	if e.Attempts > 0 {
		detail += fmt.Sprintf(", attempts %d", e.Attempts)
	}
	if e.ResetAt != "" {
		detail += ", reset at " + e.ResetAt
	}
	printf(s.Err, "%s\n", detail)
}
