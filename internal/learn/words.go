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

// hasRandomLetters reports whether a text has more than maxRun letters in a row that are not made of words: fewer than
// 65 of 100 pairs are of followers. It is true for 99 of 100 runs of random letters.
func hasRandomLetters(s string) bool {
	notLetter := func(r rune) bool { return r > 'z' || !isLetter(byte(r)) }
	for run := range strings.FieldsFuncSeq(strings.ToLower(s), notLetter) {
		if len(run) <= maxRun {
			continue
		}
		often := 0
		for i := range len(run) - 1 {
			if strings.IndexByte(followers[run[i]-'a'], run[i+1]) >= 0 {
				often++
			}
		}
		if often*100 < (len(run)-1)*65 {
			return true
		}
	}
	return false
}
