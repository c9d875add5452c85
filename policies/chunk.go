package policies

import (
	"regexp"
	"sort"
	"strings"
	"unicode"
	"unicode/utf8"
)

// ChunkLimit is how long one message may be on a platform.
type ChunkLimit struct {
	// Max is in code points, or in UTF-16 units where UTF16 is set. Zero or less
	// means no limit.
	Max   int
	UTF16 bool
	// Plain says that the text has no markup, so that a code fence in it is text
	// like any other.
	Plain bool
}

// Limits of the platforms (C1).
var (
	ChunkDiscord         = ChunkLimit{Max: 2000}
	ChunkTelegram        = ChunkLimit{Max: 4096, UTF16: true}
	ChunkTelegramCaption = ChunkLimit{Max: 1024, UTF16: true}
)

// Len is the length of s in the units of the limit.
func (l ChunkLimit) Len(s string) (n int) {
	for _, r := range s {
		n += l.runeLen(r)
	}
	return n
}

func (l ChunkLimit) runeLen(r rune) int {
	if l.UTF16 && r > 0xFFFF {
		return 2
	}
	return 1
}

// Chunk plans the parts of a long text (C1): each within the limit, cut at a
// paragraph, else a line, else a word, else between grapheme clusters. A code
// fence is kept whole where it fits into a part, and else closed and opened
// again with its info string. No link, mention or tag is cut unless it alone
// exceeds the limit. Blanks at a cut, and before the first part of several, are
// dropped and nothing else; no part is blank, so a blank text has none.
func Chunk(text string, limit ChunkLimit) []string {
	if strings.TrimSpace(text) == "" {
		return nil
	}
	if limit.Max <= 0 || limit.Len(text) <= limit.Max {
		return []string{text}
	}
	c := newChunker(text, limit)
	c.pos = c.skipBlanks(0)
	for c.pos < len(text) {
		c.part()
	}
	return c.parts
}

// chunker walks a text once, from cut to cut.
type chunker struct {
	text   string
	limit  ChunkLimit
	fences []fence
	atoms  []span
	pos    int
	inside *fence // the fence that the last cut was in
	parts  []string
}

// span is a stretch of bytes that is not cut.
type span struct{ start, end int }

var (
	linkSpan = regexp.MustCompile(`\[[^\[\]\n]*\]\([^()\s]*(?:\([^()\s]*\)[^()\s]*)*\)`)
	urlSpan  = regexp.MustCompile(`(?i)\b(?:[a-z][a-z0-9+.-]*://|www\.)(?:\[[0-9a-f:.]+\])?[^\s<>\[\]]+`)
	tagSpan  = regexp.MustCompile(`<(?:[@#:/a-zA-Z])[^<>\n]*>|&[a-zA-Z0-9#]+;`)
	hrefSpan = regexp.MustCompile(`(?i)<a\s[^<>]*>[^<>\n]*</a>`)
)

func newChunker(text string, limit ChunkLimit) *chunker {
	limit.Max = max(limit.Max, limit.runeLen(utf8.MaxRune))
	c := &chunker{text: text, limit: limit}
	if !limit.Plain {
		for _, f := range findFences(text) {
			// What a part needs for the fence itself must leave room for content.
			if limit.Len(f.opener)+len(f.marker)+fenceRoom <= limit.Max && f.content < len(text) {
				c.fences = append(c.fences, f)
			}
		}
	}
	for _, pattern := range []*regexp.Regexp{linkSpan, urlSpan, tagSpan, hrefSpan} {
		for _, at := range pattern.FindAllStringIndex(text, -1) {
			if limit.Len(text[at[0]:at[1]]) <= limit.Max {
				c.atoms = append(c.atoms, span{at[0], at[1]})
			}
		}
	}
	sort.Slice(c.atoms, func(i, j int) bool { return c.atoms[i].start < c.atoms[j].start })
	c.atoms = mergeSpans(c.atoms)
	return c
}

// fenceRoom is the least content, line ends included, that a part with a
// reopened fence has room for.
const fenceRoom = 10

// mergeSpans joins spans that overlap; those that only touch may be cut apart.
func mergeSpans(sorted []span) (merged []span) {
	for _, s := range sorted {
		if n := len(merged); n > 0 && s.start < merged[n-1].end {
			merged[n-1].end = max(merged[n-1].end, s.end)
			continue
		}
		merged = append(merged, s)
	}
	return merged
}

// cut ends one part at end and begins the next at next.
type cut struct{ end, next int }

func (c cut) ok() bool { return c.end > 0 }

// window holds the best cuts of each kind that fit into the part at hand:
// outside code fences, and inside the last one reached.
type window struct {
	paragraph, line, word, grapheme cut
	codeLine, codeWord, code        cut
	stop                            int // the first byte that does not fit
}

// part emits the next part and moves on.
func (c *chunker) part() {
	c.forget()
	prefix := ""
	if c.inside != nil {
		prefix = c.inside.opener + "\n"
	}
	w, whole := c.scan(c.limit.Len(prefix))
	if whole {
		c.emit(prefix + c.text[c.pos:])
		c.pos = len(c.text)
		return
	}
	best := c.choose(w)
	if !best.ok() {
		best = c.forced(c.limit.Max - c.limit.Len(prefix))
	}
	body := c.text[c.pos:best.end]
	c.inside = c.fenceAt(best.end)
	if c.inside == nil {
		c.emit(prefix + body)
		c.pos = c.skipBlanks(best.next)
		return
	}
	if !strings.HasSuffix(body, "\n") {
		body += "\n"
	}
	c.emit(prefix + body + c.inside.marker)
	c.pos = best.next
	if c.pos >= c.inside.closing {
		c.pos = c.skipBlanks(c.inside.end)
		c.inside = nil
	}
}

// forget drops the fences and links that lie behind.
func (c *chunker) forget() {
	for len(c.fences) > 0 && c.fences[0].end <= c.pos {
		c.fences = c.fences[1:]
	}
	for len(c.atoms) > 0 && c.atoms[0].end <= c.pos {
		c.atoms = c.atoms[1:]
	}
}

func (c *chunker) emit(part string) {
	if strings.TrimSpace(part) != "" {
		c.parts = append(c.parts, part)
	}
}

// choose prefers what spares a fence: when the part stops inside one that
// would fit into a part of its own, the cut comes before it.
func (c *chunker) choose(w window) cut {
	f := c.fenceAt(w.stop)
	inside := []cut{w.codeLine, w.codeWord, w.code}
	outside := []cut{w.paragraph, w.line, w.word, w.grapheme}
	order := append(outside, inside...)
	switch {
	case f == nil:
	case f.open <= c.pos:
		order = inside
	case c.limit.Len(c.text[f.open:f.end]) > c.limit.Max:
		order = append([]cut{w.codeLine}, order...)
	}
	for _, candidate := range order {
		if candidate.ok() {
			return candidate
		}
	}
	return cut{}
}

// scan walks from the last cut as far as the limit allows, used units being
// spent already, and notes the cuts on its way. It reports whether all that is
// left fits.
func (c *chunker) scan(used int) (w window, whole bool) {
	fences, atoms := c.fences, c.atoms
	for i := c.pos; i < len(c.text); {
		n := graphemeLen(c.text[i:])
		used += c.limit.Len(c.text[i : i+n])
		if used > c.limit.Max {
			w.stop = i
			return w, false
		}
		i += n
		for len(fences) > 0 && fences[0].end <= i {
			fences = fences[1:]
		}
		for len(atoms) > 0 && atoms[0].end <= i {
			atoms = atoms[1:]
		}
		if i == len(c.text) || len(atoms) > 0 && atoms[0].start < i {
			continue
		}
		if len(fences) > 0 && fences[0].open < i {
			c.noteInside(&w, fences[0], i, used)
		} else {
			c.noteOutside(&w, i)
		}
	}
	return w, true
}

// noteOutside notes a cut before byte i, which is in no code fence.
func (c *chunker) noteOutside(w *window, i int) {
	w.codeLine, w.codeWord, w.code = cut{}, cut{}, cut{}
	if blankBefore(c.text[:i]) {
		return // a cut is noted where its blanks begin
	}
	next, lines := c.blanks(i)
	at := cut{i, next}
	switch {
	case lines > 1:
		w.paragraph = at
	case lines == 1:
		w.line = at
	case next > i && !unbreakable(c.text[i:]):
		w.word = at
	}
	w.grapheme = at
}

// noteInside notes a cut before byte i of the content of f, where the line
// that closes the fence still fits.
func (c *chunker) noteInside(w *window, f fence, i, used int) {
	if i <= f.content || i > f.closing || i <= c.pos {
		return
	}
	last := c.text[i-1]
	if last == '\n' {
		if used+len(f.marker) <= c.limit.Max {
			w.codeLine = cut{i, i}
		}
		return
	}
	if used+1+len(f.marker) > c.limit.Max {
		return
	}
	w.code = cut{i, i}
	switch {
	case c.text[i] == '\n':
		w.codeLine = cut{i, i + 1}
	case strings.HasPrefix(c.text[i:], "\r\n"):
		w.codeLine = cut{i, i + 2}
	case last == ' ' || last == '\t':
		w.codeWord = cut{i, i}
	}
}

// forced cuts where nothing better fits: between clusters, through a link that
// does not fit, and inside a cluster only where it alone exceeds the room.
func (c *chunker) forced(room int) cut {
	end, used := c.pos, 0
	for end < len(c.text) {
		n := graphemeLen(c.text[end:])
		used += c.limit.Len(c.text[end : end+n])
		if used+c.closingLen(end+n) > room {
			break
		}
		end += n
	}
	if end > c.pos {
		return cut{end, end}
	}
	used = 0
	for end < len(c.text) {
		r, n := utf8.DecodeRuneInString(c.text[end:])
		used += c.limit.runeLen(r)
		if end > c.pos && used+c.closingLen(end+n) > room {
			break
		}
		end += n
	}
	return cut{end, end}
}

// closingLen is what closing the fence at byte i costs.
func (c *chunker) closingLen(i int) int {
	if f := c.fenceAt(i); f != nil {
		return 1 + len(f.marker)
	}
	return 0
}

// fenceAt returns the fence that a cut before byte i would be inside of.
func (c *chunker) fenceAt(i int) *fence {
	for k := range c.fences {
		f := &c.fences[k]
		if f.open >= i {
			return nil
		}
		if i < f.end || i == f.end && f.closing == len(c.text) {
			return f
		}
	}
	return nil
}

// blanks measures the run of blank clusters that begins at i: where it ends,
// and how many line ends it holds.
func (c *chunker) blanks(i int) (next, lines int) {
	for next = i; next < len(c.text); {
		n := graphemeLen(c.text[next:])
		cluster := c.text[next : next+n]
		if strings.TrimSpace(cluster) != "" {
			break
		}
		lines += strings.Count(cluster, "\n")
		next += n
	}
	return next, lines
}

func (c *chunker) skipBlanks(i int) int {
	next, _ := c.blanks(i)
	return next
}

func blankBefore(s string) bool {
	r, _ := utf8.DecodeLastRuneInString(s)
	return unicode.IsSpace(r)
}

// unbreakable reports whether s begins with a blank that joins words.
func unbreakable(s string) bool {
	r, _ := utf8.DecodeRuneInString(s)
	return r == 0xA0 || r == 0x202F || r == 0x2007
}
