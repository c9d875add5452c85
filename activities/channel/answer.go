package channel

import (
	"io"
	"net/http"
)

// MaxAnswer is how much of a successful answer is read (4 MiB).
const MaxAnswer = 4 << 20

// ReadAnswer reads a successful answer of at most MaxAnswer bytes.
func ReadAnswer(resp *http.Response) ([]byte, error) {
	body, err := io.ReadAll(io.LimitReader(resp.Body, MaxAnswer+1))
	if err != nil {
		return nil, err
	}
	if len(body) > MaxAnswer {
		return nil, io.ErrShortBuffer
	}
	return body, nil
}

// Discard reads an error answer to its end, or until it breaks, so that the
// recorder sees what there was of it.
func Discard(resp *http.Response) {
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, MaxAnswer))
}
