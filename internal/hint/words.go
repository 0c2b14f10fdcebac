package hint

import (
	"strconv"
	"strings"
)

// Alternatives returns names, of which there are two or more, as a list that ends in "or".
func Alternatives[T ~string](names []T) string {
	last := len(names) - 1
	return Listed(names[:last]) + " or " + string(names[last])
}

// Listed returns names as a list in a sentence.
func Listed[T ~string](names []T) string {
	var all []string
	for _, name := range names {
		all = append(all, string(name))
	}
	return strings.Join(all, ", ")
}

// Plural returns "1 noun" or "N nouns".
func Plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.Itoa(n) + " " + noun + "s"
}

// Word returns s as one word of a POSIX shell: a person may paste it.
func Word(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
