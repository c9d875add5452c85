package policies

import (
	"unicode"
	"unicode/utf8"
)

const (
	zeroWidthJoiner    = 0x200D
	zeroWidthNonJoiner = 0x200C
)

// maxCluster is how many bytes of marks are taken as one cluster; real ones
// have a few dozen at most.
const maxCluster = 4 << 10

// graphemeLen is the length in bytes of the first grapheme cluster of s, by
// the rules of Unicode Annex 29 that matter in messages: CRLF, combining
// marks, variation selectors, skin tones, emoji joined by ZWJ, tag sequences,
// regional-indicator pairs and Hangul syllables.
func graphemeLen(s string) int {
	first, n := utf8.DecodeRuneInString(s)
	switch {
	case n == 0:
		return 0
	case first == '\r' && len(s) > 1 && s[1] == '\n':
		return 2
	case unicode.IsControl(first):
		return n
	}
	n += clusterBaseLen(first, s[n:])
	joined := false
	for n < len(s) && n < maxCluster {
		r, size := utf8.DecodeRuneInString(s[n:])
		switch {
		case extendsCluster(r):
			joined = r == zeroWidthJoiner
		case joined && pictographic(r) && pictographic(first):
			joined = false
		default:
			return n
		}
		n += size
	}
	return n
}

// clusterBaseLen is how much of rest still belongs to the base that begins
// with first: the second regional indicator, the rest of a Hangul syllable.
func clusterBaseLen(first rune, rest string) (n int) {
	next, size := utf8.DecodeRuneInString(rest)
	if regionalIndicator(first) {
		if regionalIndicator(next) {
			return size
		}
		return 0
	}
	for kind := hangulOf(first); kind != hangulNone && size > 0 && n < maxCluster && kind.joins(hangulOf(next)); {
		kind = hangulOf(next)
		n += size
		next, size = utf8.DecodeRuneInString(rest[n:])
	}
	return n
}

func regionalIndicator(r rune) bool { return r >= 0x1F1E6 && r <= 0x1F1FF }

// extendsCluster reports whether r never begins a cluster of its own.
func extendsCluster(r rune) bool {
	switch {
	case r < 0x300:
		return false
	case r == zeroWidthJoiner, r == zeroWidthNonJoiner, r == 0x0E33, r == 0x0EB3:
		return true
	case r >= 0x1F3FB && r <= 0x1F3FF, r >= 0xE0020 && r <= 0xE007F, r == 0xFF9E, r == 0xFF9F:
		return true
	}
	return unicode.Is(unicode.M, r)
}

// pictographic reports whether r may stand on either side of a ZWJ.
func pictographic(r rune) bool {
	switch {
	case r == 0xA9, r == 0xAE, r == 0x203C, r == 0x2049, r == 0x2122, r == 0x2139, r == 0x24C2:
		return true
	case r == 0x3030, r == 0x303D, r == 0x3297, r == 0x3299:
		return true
	case r >= 0x2190 && r <= 0x23FF, r >= 0x25A0 && r <= 0x27BF, r >= 0x2900 && r <= 0x2BFF:
		return true
	}
	return r >= 0x1F000 && r <= 0x1FAFF && !regionalIndicator(r)
}

// hangul is the kind of a Hangul jamo or syllable.
type hangul int

const (
	hangulNone hangul = iota
	hangulL
	hangulV
	hangulT
	hangulLV
	hangulLVT
)

func hangulOf(r rune) hangul {
	switch {
	case r >= 0x1100 && r <= 0x115F, r >= 0xA960 && r <= 0xA97C:
		return hangulL
	case r >= 0x1160 && r <= 0x11A7, r >= 0xD7B0 && r <= 0xD7C6:
		return hangulV
	case r >= 0x11A8 && r <= 0x11FF, r >= 0xD7CB && r <= 0xD7FB:
		return hangulT
	case r >= 0xAC00 && r <= 0xD7A3 && (r-0xAC00)%28 == 0:
		return hangulLV
	case r >= 0xAC00 && r <= 0xD7A3:
		return hangulLVT
	}
	return hangulNone
}

func (h hangul) joins(next hangul) bool {
	switch h {
	case hangulL:
		return next == hangulL || next == hangulV || next == hangulLV || next == hangulLVT
	case hangulV, hangulLV:
		return next == hangulV || next == hangulT
	case hangulT, hangulLVT:
		return next == hangulT
	}
	return false
}
