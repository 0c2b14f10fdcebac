package learn

import "strings"

// maxRun is how many letters in a row are taken for a name without a look at them.
const maxRun = 16

// followers are the letters that often follow each of a to z in names: nine in ten pairs of the words and identifiers
// of this repository, and a third of random ones.
var followers = [26]string{"bcdgiklmnprstuxy", "aeilouy", "aehklort", "adeilors", "acdefglmnopqrstvwxy", "aeiloru",
	"einors", "aeio", "acdefglmnoprstv", "", "eis", "adeilostu", "aeimop", "acdefgiknopstu", "cdfgklmnoprstuvw",
	"aeiloprstu", "u", "acdegiklmnorstuvy", "acehikopstu", "acefhiloprstuy", "deilmnprst", "aei", "aeinors", "pt",
	"ps", ""}

// follows reports whether a letter, in lower case, often follows another one in names.
func follows(a, b byte) bool { return strings.IndexByte(followers[a-'a'], b) >= 0 }

// minRun is from how many letters in a row on a name can be told from random ones.
const minRun = 10

// hasRandomLetters reports whether a text has minRun or more letters in a row that are not made of words: in up to
// maxRun of them, at most 8 pairs fewer than there are letters are of followers; in longer runs, fewer than 65 of 100.
// Of runs of random letters it is true for 43 of 100 with 10 letters, 71 with 12, 96 with 16 and 99 with more; of runs
// in the names of 290 000 packages and modules for fewer than 1 of 100 of each length.
func hasRandomLetters(s string) bool {
	notLetter := func(r rune) bool { return r > 'z' || !isLetter(byte(r)) }
	for run := range strings.FieldsFuncSeq(strings.ToLower(s), notLetter) {
		if len(run) < minRun {
			continue
		}
		often := 0
		for i := range len(run) - 1 {
			if follows(run[i], run[i+1]) {
				often++
			}
		}
		if len(run) <= maxRun && often <= len(run)-8 || len(run) > maxRun && often*100 < (len(run)-1)*65 {
			return true
		}
	}
	return false
}

// namePairs returns how many pairs of neighbours in a text of letters and digits are as in names: two digits, or two
// letters of followers of which the second is no capital behind a small one.
func namePairs(s string) (n int) {
	lower := strings.ToLower(s)
	for i := range len(s) - 1 {
		a, b := s[i], s[i+1]
		switch {
		case isDigit(a) && isDigit(b):
			n++
		case !isLetter(a) || !isLetter(b) || a >= 'a' && b < 'a':
		case follows(lower[i], lower[i+1]):
			n++
		}
	}
	return n
}

// isDrawn reports whether a text of letters and digits looks as if each of its characters was drawn at random. It is
// true for 92 of 100 of base62 with 10 characters and for more with more, and for fewer than 1 of 100 parts of such
// names as in hasRandomLetters.
func isDrawn(s string) bool {
	n := count(s)
	switch {
	case n.other > 0 || isHexadecimal(s): // a hash is a variable as well
		return false
	case n.upper > 0 && n.lower > 0:
		return len(s) >= minRun && namePairs(s)*100 < (len(s)-1)*42
	case n.digits > 0:
		return len(s) >= 12 && namePairs(s) <= (len(s)-9)/2
	}
	return false
}

// minDrawn and minDrawnLength are how many texts of which length show, side by side, that they vary.
const minDrawn, minDrawnLength = 4, 8

// areDrawn reports whether texts side by side look as if they were drawn at random from one alphabet: they are of one
// length, and together have fewer pairs of names than names have. One of them alone may look like a name.
func areDrawn(names []string) bool {
	if len(names) < minDrawn || len(names[0]) < minDrawnLength {
		return false
	}
	pairs, often := 0, 0
	for _, name := range names {
		if len(name) != len(names[0]) || count(name).other > 0 {
			return false
		}
		pairs += len(name) - 1
		often += namePairs(name)
	}
	return often*100 < pairs*60
}
