package channel

import (
	"io"
	"net/http"

	"github.com/holdfast-dev/holdfast/policies"
)

// ReadAnswer reads a successful answer of at most policies.MaxAnswer bytes.
func ReadAnswer(resp *http.Response) ([]byte, error) {
	body, err := io.ReadAll(io.LimitReader(resp.Body, policies.MaxAnswer+1))
	if err != nil {
		return nil, err
	}
	if len(body) > policies.MaxAnswer {
		return nil, io.ErrShortBuffer
	}
	return body, nil
}

// Discard reads an error answer to its end, or until it breaks, so that the
// recorder sees what there was of it.
func Discard(resp *http.Response) {
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, policies.MaxAnswer))
}
