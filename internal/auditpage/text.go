package auditpage

import (
	"unicode/utf8"

	"github.com/ALRubinger/aileron/internal/termsafe"
)

// bounded returns text as one line without characters that could mislead its reader, and its first most bytes only,
// marked, if it is longer. The bound is on what is read: an escape is up to six times as long.
func bounded(text string, most int) string {
	if len(text) <= most {
		return termsafe.Line(text)
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return termsafe.Line(text[:most]) + "…"
}
