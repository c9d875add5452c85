// Package redact keeps credentials out of logs and errors.
//
// It knows two kinds of secret: values that were registered while the program
// runs ([Add]), such as the tokens of the configuration, and shapes that are a
// credential wherever they stand, such as an Authorization header, a Telegram
// bot path or the userinfo of a URL. [String] scrubs both from a text, and
// [Handler] does so for everything that passes through log/slog.
//
// The rule behind it is that no secret, token or authorization header appears
// in logs or history (I4, G9).
package redact

import (
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"sync"
)

// Mark stands where a secret was.
const Mark = "[redacted]"

// MinLength is the length in bytes from which a registered value is scrubbed.
// Anything shorter would blank ordinary words.
const MinLength = 6

// maxKnown bounds what a Registry remembers; the values registered first are
// forgotten first.
const maxKnown = 8192

type prefix [MinLength]byte

// Registry is a set of secret values. The zero value is empty and ready for
// use; its methods may be called from several goroutines.
type Registry struct {
	mu    sync.RWMutex
	order []string
	known map[prefix][]string
	first [256]bool
}

var process Registry

// Add registers secret values with the process-wide registry that [String] and
// [Handler] use. Values shorter than [MinLength] bytes are ignored.
func Add(secrets ...string) { process.Add(secrets...) }

// String returns s without any secret that was registered with [Add] and
// without any text that has the shape of a credential. It takes time linear in
// the length of s, and String(String(s)) equals String(s).
func String(s string) string { return process.String(s) }

// Error returns the scrubbed text of err, or "" for nil.
func Error(err error) string {
	if err == nil {
		return ""
	}
	return String(err.Error())
}

// Add registers secret values together with the forms they take in URLs and
// JSON. Values shorter than [MinLength] bytes are ignored.
func (r *Registry) Add(secrets ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range secrets {
		s = strings.TrimSpace(s)
		for _, form := range forms(s) {
			r.add(form)
		}
	}
}

func (r *Registry) add(s string) {
	if len(s) < MinLength || strings.Contains(Mark, s) {
		return
	}
	p := prefix([]byte(s))
	if slices.Contains(r.known[p], s) {
		return
	}
	if r.known == nil {
		r.known = map[prefix][]string{}
	}
	if len(r.order) >= maxKnown {
		r.forgetOldest()
	}
	r.order = append(r.order, s)
	r.known[p] = append(r.known[p], s)
	r.first[s[0]] = true
}

func (r *Registry) forgetOldest() {
	s := r.order[0]
	r.order = r.order[1:]
	p := prefix([]byte(s))
	rest := slices.DeleteFunc(r.known[p], func(k string) bool { return k == s })
	if len(rest) == 0 {
		delete(r.known, p)
		return
	}
	r.known[p] = rest
}

// forms lists the spellings of s that logs and errors may hold.
func forms(s string) []string {
	out := []string{s, url.QueryEscape(s), url.PathEscape(s)}
	if quoted, err := json.Marshal(s); err == nil {
		out = append(out, string(quoted[1:len(quoted)-1]))
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// String is [String] for the values of r.
func (r *Registry) String(s string) string {
	return scrubShapes(r.scrubKnown(s))
}

// scrubKnown replaces every run of overlapping known values by one mark.
func (r *Registry) scrubKnown(s string) string {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if len(r.known) == 0 || len(s) < MinLength {
		return s
	}
	var out strings.Builder
	kept, end := 0, 0 // s[:kept] is written or dropped; a match reaches to end
	for i := 0; i < len(s); i++ {
		if end > kept && i >= end {
			out.WriteString(Mark)
			kept = end
		}
		n := r.matchAt(s[i:])
		if n == 0 {
			continue
		}
		if end <= kept { // no open run
			out.WriteString(s[kept:i])
			kept = i
		}
		end = max(end, i+n)
	}
	if end > kept {
		out.WriteString(Mark)
		kept = end
	}
	if kept == 0 {
		return s
	}
	out.WriteString(s[kept:])
	return out.String()
}

// matchAt returns the length of the longest known value that s begins with.
func (r *Registry) matchAt(s string) int {
	if len(s) < MinLength || !r.first[s[0]] {
		return 0
	}
	longest := 0
	for _, k := range r.known[prefix([]byte(s[:MinLength]))] {
		if len(k) > longest && strings.HasPrefix(s, k) {
			longest = len(k)
		}
	}
	return longest
}
