package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/holdfast-dev/holdfast/internal/redact"
)

// Error is one problem of a configuration at its place. Line and Column count
// from 1; columns count characters.
type Error struct {
	File    string
	Line    int
	Column  int
	Message string
}

// Error is "FILE:LINE:COLUMN: message".
func (e *Error) Error() string {
	return fmt.Sprintf("%s:%d:%d: %s", e.File, e.Line, e.Column, e.Message)
}

// Errors are all problems of a configuration in the order of the file; at most
// a hundred are collected.
type Errors []*Error

// Error lists the problems, one a line.
func (e Errors) Error() string {
	lines := make([]string, len(e))
	for i, one := range e {
		lines[i] = one.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap lets errors.As find each *Error.
func (e Errors) Unwrap() []error {
	all := make([]error, len(e))
	for i, one := range e {
		all[i] = one
	}
	return all
}

const maxErrors = 100

// problems collects errors.
type problems struct {
	file string
	list Errors
}

func (p *problems) full() bool { return len(p.list) >= maxErrors }

func (p *problems) add(at position, format string, args ...any) {
	if p.full() {
		return
	}
	p.list = append(p.list, &Error{p.file, at.line, at.column, fmt.Sprintf(format, args...)})
}

// err returns what was collected, sorted and without repetitions, or nil.
func (p *problems) err() error {
	if len(p.list) == 0 {
		return nil
	}
	slices.SortStableFunc(p.list, func(a, b *Error) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return slices.CompactFunc(p.list, func(a, b *Error) bool { return *a == *b })
}

// quote shows what the user wrote: short, on one line and without credentials.
func quote(s string) string {
	s = redact.String(s[:min(len(s), 4096)])
	s = strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return '·'
	}, s)
	const longest = 60
	if r := []rune(s); len(r) > longest {
		s = string(r[:longest]) + "…"
	}
	return `"` + s + `"`
}

// meant is ` (did you mean "y"?)` for the nearest of the known words, or "".
func meant(word string, known []string) string {
	best, distance := "", max(2, len(word)/3)+1
	if len(word) > 64 {
		return ""
	}
	for _, k := range known[:min(len(known), 1000)] {
		if abs(len(k)-len(word)) >= distance {
			continue
		}
		if d := editDistance(word, k); d < distance && d < len(k) {
			best, distance = k, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf(" (did you mean %q?)", best)
}

func abs(n int) int { return max(n, -n) }

// editDistance counts insertions, deletions, substitutions and swaps of
// neighbours that lead from a to b.
func editDistance(a, b string) int {
	s, t := []rune(strings.ToLower(a)), []rune(strings.ToLower(b))
	before := make([]int, len(t)+1)
	last := make([]int, len(t)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(s); i++ {
		now := make([]int, len(t)+1)
		now[0] = i
		for j := 1; j <= len(t); j++ {
			cost := 1
			if s[i-1] == t[j-1] {
				cost = 0
			}
			now[j] = min(last[j]+1, now[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && s[i-1] == t[j-2] && s[i-2] == t[j-1] {
				now[j] = min(now[j], before[j-2]+1)
			}
		}
		before, last = last, now
	}
	return last[len(t)]
}
