package telegram

import (
	"bytes"
	"encoding/json"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/url"
)

// read collects the parameters of the query and of the body.
func read(r *http.Request, body []byte) (fields, error) {
	in := fields{}
	in.addValues(r.URL.Query())
	kind, params, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	switch {
	case len(body) == 0:
		return in, nil
	case kind == "application/json":
		return in, json.Unmarshal(body, &in)
	case kind == "multipart/form-data":
		return in, in.addParts(multipart.NewReader(bytes.NewReader(body), params["boundary"]))
	}
	values, err := url.ParseQuery(string(body))
	in.addValues(values)
	return in, err
}

func (f fields) addValues(values url.Values) {
	for name := range values {
		f.set(name, values.Get(name))
	}
}

// addParts reads a multipart form; of a file the name stands for the content.
func (f fields) addParts(parts *multipart.Reader) error {
	for {
		part, err := parts.NextPart()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		data, err := io.ReadAll(part)
		if err != nil {
			return err
		}
		if part.FileName() != "" {
			data = []byte(part.FileName())
		}
		f.set(part.FormName(), string(data))
	}
}

// decode reads a parameter that is an object, sent as one or as its text.
func (f fields) decode(name string, into any) bool {
	return json.Unmarshal(f[name], into) == nil || json.Unmarshal([]byte(f.text(name)), into) == nil
}

func (f fields) set(name, value string) {
	raw, err := json.Marshal(value)
	if err == nil {
		f[name] = raw
	}
}
