package policies

import (
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestChunk(t *testing.T) {
	t.Parallel()
	points := func(n int) ChunkLimit { return ChunkLimit{Max: n} }
	units := func(n int) ChunkLimit { return ChunkLimit{Max: n, UTF16: true} }
	// C1: at a paragraph, else a line, else a word, else a grapheme.
	for _, tc := range []struct {
		name  string
		text  string
		limit ChunkLimit
		want  []string
	}{
		{"fits", " as it is \n", points(20), []string{" as it is \n"}},
		{"empty", "", points(20), nil},
		{"blank", " \n\t ", points(20), nil},
		{"no limit", strings.Repeat("a", 9000), points(0), []string{strings.Repeat("a", 9000)}},
		{"paragraph", "one two\nthree\n\nfour five six", points(20), []string{"one two\nthree", "four five six"}},
		{"line", "one two\nthree four five", points(18), []string{"one two", "three four five"}},
		{"CRLF paragraph", "one two\r\n\r\nthree four", points(18), []string{"one two", "three four"}},
		{"word", "one two three", points(8), []string{"one two", "three"}},
		{"word that just fits", "abcd efgh", points(4), []string{"abcd", "efgh"}},
		{"long word", "abcdefgh", points(3), []string{"abc", "def", "gh"}},
		{"blanks at the end", "abcd     ", points(4), []string{"abcd"}},
		{"blanks at the start", "      abcd", points(4), []string{"abcd"}},
		{"no-break space", "ab cd\u00a0ef", points(6), []string{"ab", "cd\u00a0ef"}},
		{"code points", "😀😀😀", points(2), []string{"😀😀", "😀"}},
		{"UTF-16 units", "😀😀😀", units(4), []string{"😀😀", "😀"}},
		{"no surrogate is cut", "a😀", units(2), []string{"a", "😀"}},
		{"combining mark", "aae\u0301e\u0301", points(3), []string{"aa", "e\u0301", "e\u0301"}},
		{"family", "ab👨‍👩‍👧", points(5), []string{"ab", "👨‍👩‍👧"}},
		{"skin tone", "ab👍🏽", points(3), []string{"ab", "👍🏽"}},
		{"variation selector", "ab❤️", points(3), []string{"ab", "❤️"}},
		{"flags", "🇩🇪🇫🇷", points(3), []string{"🇩🇪", "🇫🇷"}},
		{"jamo", "ab\u1112\u1161\u11ab", points(4), []string{"ab", "\u1112\u1161\u11ab"}},
		{"cluster longer than the limit", "e" + strings.Repeat("\u0301", 4), points(2), []string{"e\u0301", "\u0301\u0301", "\u0301"}},
		{"URL", "see https://example.org/a-b now", points(24), []string{"see", "https://example.org/a-b", "now"}},
		{"link", "go [to the page](https://e.org) now", points(28), []string{"go", "[to the page](https://e.org)", "now"}},
		{"mention", "aaaaaa<@1234567>", points(10), []string{"aaaaaa", "<@1234567>"}},
		{"URL longer than the limit", "https://example.org/abcdef", points(10), []string{"https://ex", "ample.org/", "abcdef"}},
		{"links in a row", "[a](http://x/1)[b](http://y/2)", points(16), []string{"[a](http://x/1)", "[b](http://y/2)"}},
		{"fence kept whole", "intro\n```go\na := 1\n```\nend", points(20), []string{"intro", "```go\na := 1\n```\nend"}},
		{"fence cut at a line", "```go\nline one\nline two\nline three\n```\nend", points(30),
			[]string{"```go\nline one\nline two\n```", "```go\nline three\n```\nend"}},
		{"indentation in a fence", "```\nif x {\n    y()\n    zzzz()\n}\n```", points(25), []string{"```\nif x {\n    y()\n```", "```\n    zzzz()\n}\n```"}},
		{"fence with a long line", "```\n" + strings.Repeat("a", 30) + "\n```", points(20), []string{"```\naaaaaaaaaaaa\n```", "```\naaaaaaaaaaaa\n```", "```\naaaaaa\n```"}},
		{"fence never closed", "~~~\naaaa\nbbbb\ncccc dddd", points(19), []string{"~~~\naaaa\nbbbb\n~~~", "~~~\ncccc dddd"}},
		{"longer fence", "````md\n```\naaaa\n```\nbbbbbb\n````", points(28), []string{"````md\n```\naaaa\n```\n````", "````md\nbbbbbb\n````"}},
		{"plain text has no fence", "```\naaaa bbbb\ncccc dddd", ChunkLimit{Max: 14, Plain: true}, []string{"```\naaaa bbbb", "cccc dddd"}},
		{"invalid UTF-8 is kept", "ab\xff\xfe cd", points(4), []string{"ab\xff\xfe", "cd"}},
	} {
		if diff := cmp.Diff(tc.want, Chunk(tc.text, tc.limit)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.name, diff)
		}
	}
}

func TestChunkLimitsOfPlatforms(t *testing.T) {
	t.Parallel()
	// C1: Discord 2,000 code points, Telegram 4,096 and captions 1,024 UTF-16 units.
	for want, limit := range map[int]ChunkLimit{2000: ChunkDiscord, 2048: ChunkTelegram, 512: ChunkTelegramCaption} {
		parts := Chunk(strings.Repeat("😀", want+1), limit)
		if len(parts) != 2 || utf8.RuneCountInString(parts[0]) != want {
			t.Errorf("%+v: %d parts, the first of %d", limit, len(parts), utf8.RuneCountInString(parts[0]))
		}
	}
}

func TestGraphemeLen(t *testing.T) {
	t.Parallel()
	// C1: what is one character to a reader is one cluster.
	for _, cluster := range []string{
		"a", "\r\n", "\n", "é", "e\u0301\u0323", "👍🏽", "👨‍👩‍👧‍👦", "🏳️‍🌈", "❤️‍🔥", "1️⃣", "🇩🇪", "🏴\U000E0067\U000E0062\U000E007F",
		"한", "\u1112\u1161\u11ab", "가\u11a8", "நி", "กำ", "👩🏽‍⚕️",
	} {
		if got := graphemeLen(cluster + "x"); got != len(cluster) {
			t.Errorf("%q: %d bytes, want %d", cluster, got, len(cluster))
		}
	}
	for text, want := range map[string]int{"ab": 1, "🇩🇪🇫🇷": 8, "a\u200db": 4, "\n\u0301": 1, "👍👍": 4, "": 0} {
		if got := graphemeLen(text); got != want {
			t.Errorf("%q: %d bytes, want %d", text, got, want)
		}
	}
}

// messageText draws texts as assistants write them.
func messageText() *rapid.Generator[string] {
	piece := rapid.OneOf(
		rapid.SampledFrom([]string{
			"word", "another", " ", "  ", "\n", "\n\n", "\r\n", "```go\n", "\n```\n", "```", "~~~\n", "    indented", "e\u0301", "👨‍👩‍👧", "👍🏽", "🇩🇪", "한국어",
			"https://example.org/path?q=1", "[label](https://example.org)", "<@12345>", "`code`", "\u00a0", "中文字", "\xff",
		}),
		rapid.StringN(0, 12, -1),
	)
	return rapid.Map(rapid.SliceOfN(piece, 0, 60), func(pieces []string) string { return strings.Join(pieces, "") })
}

func anyChunkLimit() *rapid.Generator[ChunkLimit] {
	return rapid.Custom(func(t *rapid.T) ChunkLimit {
		return ChunkLimit{Max: rapid.IntRange(2, 80).Draw(t, "max"), UTF16: rapid.Bool().Draw(t, "utf16"), Plain: rapid.Bool().Draw(t, "plain")}
	})
}

func TestChunkProperties(t *testing.T) {
	t.Parallel()
	// C1: parts respect the limit, none is blank, and together they say all.
	rapid.Check(t, func(t *rapid.T) {
		text, limit := messageText().Draw(t, "text"), anyChunkLimit().Draw(t, "limit")
		wantSoundParts(t, text, limit)
	})
}

func wantSoundParts(t interface{ Fatalf(string, ...any) }, text string, limit ChunkLimit) {
	parts := Chunk(text, limit)
	for _, part := range parts {
		if limit.Len(part) > limit.Max {
			t.Fatalf("%q is longer than %+v (of %q)", part, limit, text)
		}
		if strings.TrimSpace(part) == "" {
			t.Fatalf("a blank part of %q", text)
		}
		if utf8.ValidString(text) && !utf8.ValidString(part) {
			t.Fatalf("a character of %q is cut: %q", text, part)
		}
	}
	switch got, want := spoken(strings.Join(parts, "\n")), spoken(text); {
	case limit.Plain || !strings.Contains(text, "```") && !strings.Contains(text, "~~~"):
		if got != want {
			t.Fatalf("parts %q say %q, text says %q", parts, got, want)
		}
	case !saysAll(got, want):
		t.Fatalf("parts %q leave something of %q out", parts, text)
	}
	wantWholeClusters(t, text, parts, limit)
}

// said is what a text says: all but blanks and the marks of fences, which are
// closed and reopened at cuts.
func spoken(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) || r == '`' || r == '~' {
			return -1
		}
		return r
	}, text)
}

// saysAll reports whether all of want is in got, in order; reopened fences
// repeat their info strings.
func saysAll(got, want string) bool {
	rest := []rune(got)
	for _, r := range want {
		i := slices.Index(rest, r)
		if i < 0 {
			return false
		}
		rest = rest[i+1:]
	}
	return true
}

// wantWholeClusters checks that no part of a text without fences begins inside
// a cluster that would have fitted.
func wantWholeClusters(t interface{ Fatalf(string, ...any) }, text string, parts []string, limit ChunkLimit) {
	if !limit.Plain {
		return
	}
	starts := map[int]bool{}
	for i := 0; i < len(text); {
		n := graphemeLen(text[i:])
		if limit.Len(text[i:i+n]) > limit.Max {
			return
		}
		starts[i] = true
		i += n
	}
	at := 0
	for _, part := range parts {
		i := strings.Index(text[at:], part)
		if i < 0 || !starts[at+i] {
			t.Fatalf("part %q of %q begins inside a cluster", part, text)
		}
		at += i + len(part)
		if at < len(text) && !starts[at] {
			t.Fatalf("part %q of %q ends inside a cluster", part, text)
		}
	}
}

func TestChunkKeepsLinks(t *testing.T) {
	t.Parallel()
	// C1: no link is cut.
	const link = "[the label](https://example.org/a)"
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "word", "another", link, "\n", "\n\n"}), 1, 60).Draw(t, "words")
		text := strings.Join(words, " ")
		count := 0
		for _, part := range Chunk(text, ChunkLimit{Max: rapid.IntRange(len(link), 90).Draw(t, "max")}) {
			count += strings.Count(part, link)
		}
		if count != strings.Count(text, link) {
			t.Fatalf("%d links are left of %d", count, strings.Count(text, link))
		}
	})
}

func FuzzChunk(f *testing.F) {
	for _, text := range []string{
		"", "plain words", "one\n\ntwo\n\nthree", "```go\nx\n```", "```\nnever closed\nmore and more", "a\r\nb\r\nc", "👨‍👩‍👧👨‍👩‍👧", "🇩🇪🇫🇷🇮🇹",
		"https://example.org/" + strings.Repeat("a", 50), "[a](http://b)", "e\u0301e\u0301", "\xff\xfe\xfd", "~~~~\n~~~\n~~~~", "한국어 글",
	} {
		f.Add(text, 12, true, false)
		f.Add(text, 20, false, true)
	}
	f.Fuzz(func(t *testing.T, text string, limit int, utf16, plain bool) {
		wantSoundParts(t, text, ChunkLimit{Max: 2 + int(uint(limit)%500), UTF16: utf16, Plain: plain})
	})
}

func BenchmarkChunk(b *testing.B) {
	text := strings.Repeat("Some words of an answer, with a [link](https://example.org/a).\n", 2000)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		Chunk(text, ChunkDiscord)
	}
}

func TestPlainText(t *testing.T) {
	t.Parallel()
	// C2.7: links stay readable, code keeps its content.
	for _, tc := range []struct{ format, text, want string }{
		{"plain", "**a** <b>", "**a** <b>"},
		{"markdown", "**bold** and *it* and _this_ and __that__ and ~~no~~ ||hidden||", "bold and it and this and that and no hidden"},
		{"markdown", "[label](https://e.org/a_b_c)", "label (https://e.org/a_b_c)"},
		{"markdown", "[**label**](https://e.org)", "label (https://e.org)"},
		{"markdown", "[https://e.org](https://e.org) ![pic](https://e.org/p.png)", "https://e.org pic (https://e.org/p.png)"},
		{"markdown", "[wiki](https://e.org/a_(b))", "wiki (https://e.org/a_(b))"},
		{"markdown", "<https://e.org/_x_>", "https://e.org/_x_"},
		{"markdown", "see https://e.org/_a_/*b*", "see https://e.org/_a_/*b*"},
		{"markdown", "a snake_case_name stays, 2 * 3 * 4 too", "a snake_case_name stays, 2 * 3 * 4 too"},
		{"markdown", "# Title\n> quoted", "Title\nquoted"},
		{"markdown", "run `a **b**` now", "run a **b** now"},
		{"markdown", "x\n```go\n*p = **q\n```\ny", "x\n*p = **q\ny"},
		{"markdown", `1\. not a list \*`, "1. not a list *"},
		{"html", `<b>bold</b> <a href="https://e.org?a=1&amp;b=2">label</a> &lt;x&gt; a < b`, "bold label (https://e.org?a=1&b=2) <x> a < b"},
		{"html", "<p>one</p><ul><li>two</li></ul>three<br/>four", "one\n- twothree\nfour"},
		{"html", `<pre><code class="language-go">a &amp;&amp; b</code></pre>`, "a && b"},
		{"html", "<a href='https://e.org'>https://e.org</a>", "https://e.org"},
	} {
		if got := PlainText(tc.text, tc.format); got != tc.want {
			t.Errorf("%s %q: %q, want %q", tc.format, tc.text, got, tc.want)
		}
	}
}

func TestPlainTextFits(t *testing.T) {
	t.Parallel()
	// C2.7: what fitted with its markup fits without it, so that a part stays a part.
	rapid.Check(t, func(t *rapid.T) {
		text, format := messageText().Draw(t, "text"), rapid.SampledFrom([]string{"plain", "markdown", "html"}).Draw(t, "format")
		if got := PlainText(text, format); ChunkTelegram.Len(got) > ChunkTelegram.Len(text) {
			t.Fatalf("%q became %q", text, got)
		}
	})
}
