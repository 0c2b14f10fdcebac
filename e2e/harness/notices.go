package harness

import "strings"

// WithoutNotices returns what aileron printed to stderr without the lines that
// depend on the machine and its load: the limits of a box, and what an engine
// is waited for.
func WithoutNotices(stderr string) string {
	var kept strings.Builder
	for line := range strings.Lines(stderr) {
		if !strings.HasPrefix(line, "aileron: the sandbox may use ") && !strings.HasPrefix(line, "aileron: waiting for ") &&
			!strings.HasPrefix(line, "aileron: git in the sandbox knows you as ") {
			kept.WriteString(line)
		}
	}
	return kept.String()
}
