package dockerfile

import (
	"regexp"
	"strings"
)

// instruction is one of a Dockerfile, at its first line.
type instruction struct {
	line       int
	word, args string
}

// directive is a comment by which a Dockerfile changes how it is read: another
// frontend, which may be any program, or another escape character.
var directive = regexp.MustCompile(`^#\s*[A-Za-z]+\s*=`)

// continued is a line that the next one continues, as builders know it.
var continued = regexp.MustCompile(`\\[ \t]*$`)

// instructions returns the instructions of a Dockerfile, and its directives as
// words that begin with #. The parts of one that has several lines are joined as
// builders join them, without a space: -\ and -mount are --mount.
func instructions(text string) []instruction {
	var all []instruction
	var whole []strings.Builder // of each in all
	open, began := false, false
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimSuffix(line, "\r")
		trimmed := strings.Trim(line, " \t")
		comment := strings.HasPrefix(trimmed, "#")
		switch {
		case trimmed == "", comment && (began || !directive.MatchString(trimmed)):
			continue // also inside an instruction
		case !open:
			all, whole = append(all, instruction{line: i + 1}), append(whole, strings.Builder{})
		}
		if !comment {
			began, open = true, continued.MatchString(line)
			line = continued.ReplaceAllString(line, "")
		}
		whole[len(whole)-1].WriteString(line)
	}
	for i := range all {
		text := strings.Trim(whole[i].String(), " \t")
		if all[i].word = text; !strings.HasPrefix(text, "#") {
			word, args, _ := strings.Cut(strings.ReplaceAll(text, "\t", " "), " ")
			all[i].word, all[i].args = word, strings.Trim(args, " ")
		}
	}
	return all
}
