package hint

import (
	"strings"
)

// Nearest returns the known word that name is most likely a misspelling of, or "".
func Nearest(name string, known []string) string {
	best, least := "", len(name)/3+1 // of six letters, two may be wrong
	for _, word := range known {
		d := editDistance(strings.ToLower(name), strings.ToLower(word))
		if len(name) >= 3 && strings.HasPrefix(word, name) {
			d = 1
		}
		if d < least {
			best, least = word, d
		}
	}
	return best
}

// editDistance returns how many bytes have to be inserted, removed, replaced or swapped with the next to turn a into b.
func editDistance(a, b string) int {
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		for j := range rows[i] {
			switch {
			case i == 0 || j == 0:
				rows[i][j] = i + j
				continue
			case a[i-1] == b[j-1]:
				rows[i][j] = rows[i-1][j-1]
			default:
				rows[i][j] = 1 + min(rows[i-1][j], rows[i][j-1], rows[i-1][j-1])
			}
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(a)][len(b)]
}

// DidYouMean adds the word that was probably meant to a usage error, if there is one.
func DidYouMean(err error, near string) error {
	if near == "" {
		return err
	}
	return New(err, "did you mean %s?", near)
}
