package profiles

import "fmt"

// didYouMean is the hint for a misspelt word, or "" where nothing is near.
func didYouMean(word string, known []string) string {
	if near := Nearest(word, known); near != "" {
		return fmt.Sprintf(" (did you mean %q?)", near)
	}
	return ""
}

// Nearest is the known word that the fewest edits turn word into, or "" where
// none is within a third of its length (at least two edits).
func Nearest(word string, known []string) string {
	if len(word) > 64 {
		return ""
	}
	best, limit := "", max(2, len(word)/3)+1
	for _, k := range known {
		if d := edits(word, k); d < limit {
			best, limit = k, d
		}
	}
	return best
}

// edits counts insertions, deletions and replacements (Levenshtein).
func edits(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}
