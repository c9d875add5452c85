package policies

import "strings"

// statusInText finds the HTTP status that a text names: "NNN …", "HTTP NNN",
// "(NNN)", "status: NNN" and their kin (P4). Only 400 to 599 count, so that
// few other numbers do. It returns 0 when there is none.
func statusInText(s string) int {
	if n := statusAt(s, 0); n != 0 && (len(s) == 3 || s[3] == ' ' || s[3] == ':' || s[3] == ',' || s[3] == '\n' || s[3] == '.') {
		return n
	}
	for pos := 0; pos+3 <= len(s); pos++ {
		if s[pos] != '4' && s[pos] != '5' {
			continue
		}
		n := statusAt(s, pos)
		if n == 0 {
			continue
		}
		if pos > 0 && s[pos-1] == '(' && pos+3 < len(s) && s[pos+3] == ')' {
			return n
		}
		if namesStatus(s[max(0, pos-16):pos]) {
			return n
		}
	}
	return 0
}

// statusAt reads a status that stands alone at pos.
func statusAt(s string, pos int) int {
	if pos+3 > len(s) || pos+3 < len(s) && isAlnum(s[pos+3]) || pos > 0 && isAlnum(s[pos-1]) {
		return 0
	}
	if pos+4 < len(s) && (s[pos+3] == '.' || s[pos+3] == ',' || s[pos+3] == '-') && isAlnum(s[pos+4]) {
		return 0
	}
	return plainStatus(s[pos : pos+3])
}

// namesStatus reports whether the words just before a number say that it is a
// status.
func namesStatus(before string) bool {
	var buf [16]byte
	b := buf[:copy(buf[:], before)]
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			b[i] = c | 0x20
		}
	}
	w := strings.TrimRight(string(b), " :=\"'([")
	switch {
	case strings.HasSuffix(w, "http"), strings.HasSuffix(w, "http/1.1"), strings.HasSuffix(w, "http/1.0"), strings.HasSuffix(w, "http/2"), strings.HasSuffix(w, "http/2.0"), strings.HasSuffix(w, "http/3"),
		strings.HasSuffix(w, "status"), strings.HasSuffix(w, "status code"), strings.HasSuffix(w, "statuscode"), strings.HasSuffix(w, "status_code"),
		strings.HasSuffix(w, "error code"), strings.HasSuffix(w, "returned"), strings.HasSuffix(w, "returned a"),
		strings.HasSuffix(w, "got"), strings.HasSuffix(w, "got a"), strings.HasSuffix(w, "received"), strings.HasSuffix(w, "received a"), strings.HasSuffix(w, "responded with"), strings.HasSuffix(w, "error"), strings.HasSuffix(w, "failed with"):
		return len(w) < len(b)
	}
	return false
}

// limitAndRequested reads "limit L … requested R" from a normalised text and
// says whether R is larger (P4.7).
func limitAndRequested(norm []byte) (counted, more bool) {
	s := string(norm)
	for pos := 0; ; {
		l := strings.Index(s[pos:], "limit")
		if l < 0 {
			return false, false
		}
		pos += l + len("limit")
		near := s[pos:min(len(s), pos+200)]
		r := strings.Index(near, "requested")
		if r < 0 {
			continue
		}
		limit, first := countAfter(near)
		requested, second := countAfter(near[r+len("requested"):])
		if first && second {
			return true, requested.longer(limit)
		}
	}
}

// countAfter reads the count that follows a word after blanks and a colon;
// thousands may be separated by commas.
func countAfter(s string) (wait, bool) {
	pos := 0
	for pos < len(s) && (s[pos] == ' ' || s[pos] == ':' || s[pos] == '=') {
		pos++
	}
	end := pos
	for end < len(s) && (isDigit(s[end]) || s[end] == ',' && end+1 < len(s) && isDigit(s[end+1])) && end-pos < 24 {
		end++
	}
	w, n, _ := scanDecimal(strings.ReplaceAll(s[pos:end], ",", ""), 1)
	return w, n > 0
}
