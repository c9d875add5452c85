package policies

import "sync"

// mark names a family of phrases of which a text contains at least one.
type mark uint8

// markSet is the set of families found in one text.
type markSet uint64

func (s markSet) has(m mark) bool { return s&(1<<m) != 0 }

func (s *markSet) add(m mark) { *s |= 1 << m }

// any reports whether one of the families was found.
func (s markSet) any(ms ...mark) bool {
	for _, m := range ms {
		if s.has(m) {
			return true
		}
	}
	return false
}

// matcher finds every phrase of every family in one pass over a text
// (Aho-Corasick), so that a hostile text costs no more than a friendly one.
//
// A phrase starts where a word starts; one that is written with a final "|"
// ends where a word ends, too.
type matcher struct {
	class   [256]uint8 // byte to column; 0 for bytes that no phrase has
	columns int
	next    []uint16
	out     [][]hit // phrases that end in a state
}

type hit struct {
	mark  mark
	size  int
	start bool // must begin at the start of a word
	end   bool // must end at the end of a word
}

var englishMatcher = sync.OnceValue(func() *matcher { return newMatcher(englishPhrases) })
var chineseMatcher = sync.OnceValue(func() *matcher { return newMatcher(chinesePhrases) })

func newMatcher(families map[mark][]string) *matcher {
	m := &matcher{columns: 1}
	for _, phrases := range families {
		for i := range phrases {
			phrases[i] = string(normalise(nil, phrases[i]))
		}
	}
	for _, phrases := range families {
		for _, p := range phrases {
			for i := range len(p) {
				if m.class[p[i]] == 0 {
					m.class[p[i]] = uint8(m.columns)
					m.columns++
				}
			}
		}
	}
	m.grow()
	for family, phrases := range families {
		for _, p := range phrases {
			m.insert(family, p)
		}
	}
	m.link()
	return m
}

func (m *matcher) grow() uint16 {
	m.next = append(m.next, make([]uint16, m.columns)...)
	m.out = append(m.out, nil)
	return uint16(len(m.out) - 1)
}

func (m *matcher) insert(family mark, p string) {
	h := hit{mark: family, start: isAlnum(p[0])}
	if p[len(p)-1] == '|' {
		p, h.end = p[:len(p)-1], true
	}
	h.size = len(p)
	var state uint16
	for i := range len(p) {
		cell := int(state)*m.columns + int(m.class[p[i]])
		if m.next[cell] == 0 {
			child := m.grow()
			m.next[cell] = child
		}
		state = m.next[cell]
	}
	m.out[state] = append(m.out[state], h)
}

// link turns the trie into an automaton: breadth first, every missing edge
// becomes the edge of the longest suffix, and outputs are inherited from it.
func (m *matcher) link() {
	suffix := make([]uint16, len(m.out))
	queue := []uint16{}
	for c := range m.columns {
		if child := m.next[c]; child != 0 {
			queue = append(queue, child)
		}
	}
	for len(queue) > 0 {
		state := queue[0]
		queue = queue[1:]
		m.out[state] = append(m.out[state], m.out[suffix[state]]...)
		for c := range m.columns {
			cell := int(state)*m.columns + c
			fallback := m.next[int(suffix[state])*m.columns+c]
			if child := m.next[cell]; child != 0 {
				suffix[child] = fallback
				queue = append(queue, child)
				continue
			}
			m.next[cell] = fallback
		}
	}
}

// find returns the families of the phrases in a normalised text.
func (m *matcher) find(text []byte) markSet {
	var found markSet
	state := 0
	for i, b := range text {
		state = int(m.next[state*m.columns+int(m.class[b])])
		for _, h := range m.out[state] {
			from := i + 1 - h.size
			if h.start && from > 0 && isAlnum(text[from-1]) {
				continue
			}
			if h.end && i+1 < len(text) && isAlnum(text[i+1]) {
				continue
			}
			found.add(h.mark)
		}
	}
	return found
}

// normalise appends text to dst in the spelling the phrases are written in:
// lower case; "_", "-", quotes' typographic forms and runs of blanks as one
// blank; camelCase split into words. "RateLimitExceeded", "rate_limit_exceeded"
// and "Rate-limit exceeded" all become "rate limit exceeded".
func normalise(dst []byte, text string) []byte {
	start := len(dst)
	for i := range len(text) {
		c := text[i]
		switch {
		case 'A' <= c && c <= 'Z':
			if i > 0 && 'a' <= text[i-1] && text[i-1] <= 'z' {
				dst = append(dst, ' ')
			}
			c |= 0x20
		case c == '_' || c == '-' || c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == '"' || c == '`' || c == '\'':
			if len(dst) > start && dst[len(dst)-1] == ' ' {
				continue
			}
			c = ' '
		}
		dst = append(dst, c)
	}
	return dst
}
