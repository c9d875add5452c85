package policies

import (
	"strings"
	"time"
)

const (
	maxText   = 8 << 10 // text that families look at (P4.13)
	maxNested = 4       // levels of JSON inside JSON strings that are opened
	maxTokens = 24      // typed codes of one body that are looked at
	maxOpened = 200     // string members of one failure that are opened
	maxCauses = 32      // errors beneath one fault that are looked at
)

// evidence is what a fault says, gathered once: its status, its typed codes
// and the families of its texts.
type evidence struct {
	provider vendor
	now      time.Time

	status int  // explicit, or as it stands in the text; 0 when none
	json   bool // there was JSON in a text
	html   bool // a page came back instead of an answer
	body   bool // something came back beside the status

	typed typedSet // classes of the typed codes that the provider owns
	marks markSet
	only  string // the one text there was, where there was just one in a JSON body

	hint   wait // strongest timing: header, RetryInfo, text
	hinted FloorSource

	reset  wait // reset of exhausted buckets
	bucket bool

	counted     bool // the text says "limit L … requested R"
	asksForMore bool // and R is larger

	// While gathering.
	raw      []byte // texts, as they came, one a line
	norm     []byte // the same, normalised
	tokens   int
	depth    int
	opened   int
	texts    int
	innerST  int // status in a JSON body
	nestedST int // status in JSON inside a string of a JSON body
	retry    retryInfo
	meta     metaBucket
}

// retryInfo is the state of one JSON object that may be Google's RetryInfo.
type retryInfo struct {
	named, other bool
	delay        wait
	found        bool
}

// metaBucket holds the rate-limit headers that OpenRouter puts into its body.
type metaBucket struct {
	reset     string
	remaining string
}

// gather reads a fault. It does not look beneath it.
func gather(f *Fault) *evidence {
	e := &evidence{provider: vendorOf(f.Provider), now: f.Now}
	if f.Status >= 300 {
		e.status = f.Status
	}
	e.token(f.Code)
	e.token(f.Type)
	if kind := first(f.Header["X-Amzn-Errortype"]); kind != "" {
		name, _, _ := strings.Cut(kind, ":")
		e.token(name)
	}
	body := f.Body
	if len(body) > MaxBody {
		body = body[:MaxBody]
	}
	e.segment(f.Message)
	e.segment(string(body))
	for i, d := range f.Details {
		if i == maxTokens {
			break
		}
		e.segment(d)
	}
	e.body = e.texts > 0 || e.tokens > 0 || e.html
	if e.status == 0 {
		e.status = e.innerST
	}
	e.readTexts()
	e.readHeaders(f)
	e.readBuckets(f)
	return e
}

// segment takes one text: an optional status in front, JSON in the middle,
// words around it.
func (e *evidence) segment(s string) {
	s = strings.TrimSpace(s)
	if s == "" {
		return
	}
	if page := htmlStart(s); page >= 0 {
		e.html = true
		s = s[:page]
	}
	e.split(s, true)
}

// split separates the words of a text from the JSON in it. The status that the
// outer text names stands in for that of the answer; one inside a body is only
// the body's own.
func (e *evidence) split(s string, outer bool) {
	pos := 0
	for pos < len(s) {
		start, escaped := jsonStart(s, pos)
		if start < 0 {
			break
		}
		e.json = true
		e.words(s[pos:start], outer)
		if escaped {
			s, pos = unescape(s[start:]), 0
			if !strings.HasPrefix(s, "{") {
				break
			}
			start = 0
		}
		if e.depth == maxNested {
			return
		}
		e.depth++
		outerRetry := e.retry
		e.retry = retryInfo{}
		pos = start + scanJSON(s[start:], e)
		e.settleRetry()
		e.retry = outerRetry
		e.depth--
	}
	e.words(s[min(pos, len(s)):], outer)
}

// words takes text without JSON.
func (e *evidence) words(s string, outer bool) {
	s = strings.TrimSpace(s)
	if !hasWords(s) {
		return
	}
	switch {
	case outer && e.status == 0:
		e.status = statusInText(s)
	case !outer && e.innerST == 0:
		e.innerST = statusInText(s)
	}
	if onlyStatus(s) {
		return
	}
	if room := maxText - len(e.raw); len(s) > room {
		s = s[:max(room, 0)]
	}
	if s == "" {
		return
	}
	e.texts++
	e.only = s
	e.raw = append(e.raw, s...)
	e.raw = append(e.raw, '\n')
}

// object is called at both ends of every object.
func (e *evidence) object() {
	e.settleRetry()
	e.retry = retryInfo{}
}

func (e *evidence) settleRetry() {
	if e.retry.found && (e.retry.named || !e.retry.other) {
		e.hear(e.retry.delay, FloorRetryInfo)
	}
}

func (e *evidence) text(key, raw string) {
	var buf keyBuffer
	switch string(buf.fold(key)) {
	case "code", "type", "status", "reason", "errorcode", "__type", "error_type", "errortype", "finish_reason", "stop_reason":
		if n := plainStatus(raw); n != 0 {
			e.innerStatus(n)
			return
		}
		e.token(raw)
	case "error", "error_code":
		if isWord(raw) {
			e.token(raw)
		}
		e.open(raw)
	case "message", "msg", "detail", "details", "error_description", "description", "error_msg", "errormessage", "error_message", "errmsg", "title", "errors", "raw", "body", "response", "cause", "data", "failure_reason",
		"quotaid", "quotametric":
		e.open(raw)
	case "@type":
		if strings.HasSuffix(raw, "google.rpc.RetryInfo") {
			e.retry.named = true
		} else {
			e.retry.other = true
		}
	case "retrydelay", "retry_delay":
		if d, n := scanDuration(raw); n > 0 && n == len(raw) {
			e.retry.delay, e.retry.found = d.ceilMillis(), true
		}
	case "x-ratelimit-reset":
		e.meta.reset = raw
	case "x-ratelimit-remaining":
		e.meta.remaining = raw
	}
}

// open takes the value of a member that holds words, or JSON once more.
func (e *evidence) open(raw string) {
	if e.opened == maxOpened || len(e.raw) >= maxText {
		return
	}
	e.opened++
	if len(raw) > maxText && !strings.Contains(raw, "{") {
		raw = raw[:maxText]
	}
	s := strings.TrimSpace(unescape(raw))
	if page := htmlStart(s); page >= 0 {
		e.html = true
		s = s[:page]
	}
	e.split(s, false)
}

func (e *evidence) number(key, raw string) {
	var buf keyBuffer
	switch string(buf.fold(key)) {
	case "status", "statuscode", "status_code", "http_status", "httpstatus", "code", "error_code", "errorcode":
		if n := plainStatus(raw); n != 0 {
			e.innerStatus(n)
			return
		}
		e.token(raw)
	case "x-ratelimit-reset":
		e.meta.reset = raw
	case "x-ratelimit-remaining":
		e.meta.remaining = raw
	}
}

// innerStatus takes a status that stands inside a body. The innermost counts:
// a wrapper never outranks a concrete cause beneath it.
func (e *evidence) innerStatus(n int) {
	e.innerST = n
	if e.depth > 1 {
		e.nestedST = n
	}
}

func (e *evidence) token(code string) {
	if code == "" || e.tokens >= maxTokens {
		return
	}
	if len(code) > 80 {
		return
	}
	e.tokens++
	e.typed.add(code, e.provider)
}

// hear notes a strong timing; the largest counts (P3).
func (e *evidence) hear(w wait, source FloorSource) {
	if e.hinted == "" || w.longer(e.hint) {
		e.hint, e.hinted = w, source
	}
}

// readTexts finds the families and the numbers of the texts.
func (e *evidence) readTexts() {
	if len(e.raw) == 0 {
		return
	}
	raw := string(e.raw)
	norm := normalise(make([]byte, 0, len(raw)+len(raw)/4), raw)
	e.norm = norm
	e.marks = englishMatcher().find(norm)
	if !isASCII(raw) {
		e.marks |= chineseMatcher().find(norm)
	}
	textHints(raw, e.now, func(w wait) { e.hear(w, FloorText) })
	e.counted, e.asksForMore = limitAndRequested(norm)
	if e.marks.has(mBilling) && isMarkdown(raw) {
		e.marks &^= 1<<mBilling | 1<<mPayment
	}
}

// isMarkdown reports whether a text is an article with headings rather than an
// error: such a text may speak about money without meaning it.
func isMarkdown(s string) bool {
	headings := 0
	for line := range strings.Lines(s) {
		if strings.HasPrefix(line, "# ") || strings.HasPrefix(line, "## ") || strings.HasPrefix(line, "### ") {
			headings++
		}
	}
	return headings >= 2
}

// htmlStart finds where an HTML page starts within the first 2 KiB, or -1.
func htmlStart(s string) int {
	head := s[:min(len(s), 2<<10)]
	for pos := 0; pos < len(head); {
		angle := strings.IndexByte(head[pos:], '<')
		if angle < 0 {
			return -1
		}
		pos += angle
		for _, tag := range [...]string{"<!doctype html", "<html", "<head>", "<body"} {
			if len(head)-pos >= len(tag) && strings.EqualFold(head[pos:pos+len(tag)], tag) {
				return pos
			}
		}
		pos++
	}
	return -1
}

// keyBuffer holds the lower-case form of a key of a JSON body, which come in
// every case.
type keyBuffer [24]byte

// fold lowers a key; one too long to be of interest becomes "".
func (b *keyBuffer) fold(key string) []byte {
	if len(key) > len(b) {
		return nil
	}
	for i := range len(key) {
		c := key[i]
		if 'A' <= c && c <= 'Z' {
			c |= 0x20
		}
		b[i] = c
	}
	return b[:len(key)]
}

// plainStatus reads three digits from 400 to 599, or returns 0.
func plainStatus(s string) int {
	if len(s) != 3 {
		return 0
	}
	if n := digits(s); n >= 400 && n <= 599 {
		return n
	}
	return 0
}

// isWord reports whether a text is one typed word rather than prose.
func isWord(s string) bool {
	for i := range len(s) {
		if !isAlnum(s[i]) && s[i] != '_' && s[i] != '-' && s[i] != '.' {
			return false
		}
	}
	return s != ""
}

// hasWords reports whether a text has more than punctuation.
func hasWords(s string) bool {
	for i := range len(s) {
		if isAlnum(s[i]) || s[i] >= 0x80 {
			return true
		}
	}
	return false
}

// onlyStatus reports whether a text says no more than its status does, as
// clients put it for an answer without a body.
func onlyStatus(s string) bool {
	rest, ok := strings.CutSuffix(s, " status code (no body)")
	if !ok {
		rest = s
		if len(rest) >= 5 && strings.EqualFold(rest[:5], "http ") {
			rest = rest[5:]
		}
	}
	return plainStatus(rest) != 0
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= 0x80 {
			return false
		}
	}
	return true
}

func first(values []string) string {
	if len(values) == 0 {
		return ""
	}
	return values[0]
}
