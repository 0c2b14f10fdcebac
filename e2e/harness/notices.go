package harness

import "strings"

// WithoutNotices returns what aileron printed to stderr without the lines that
// depend on the machine and its load, or on what other suites do with the same
// engine: the limits of a box, what an engine is waited for, and that of
// another home's killed sessions something could not be removed; and without what
// each native sandbox begins with.
func WithoutNotices(stderr string) string {
	var kept strings.Builder
	for line := range strings.Lines(stderr) {
		if !strings.HasPrefix(line, "aileron: the sandbox may use ") && !strings.HasPrefix(line, "aileron: waiting for ") &&
			!strings.HasPrefix(line, "aileron: git in the sandbox knows you as ") &&
			!strings.HasPrefix(line, "aileron: native: sealed without an engine, ") &&
			!strings.HasPrefix(line, "aileron: warning: [sandbox] memory, cpus not enforced: no control group of version 2 ") &&
			!strings.Contains(line, `msg="leftovers of ended sessions could not be removed"`) {
			kept.WriteString(line)
		}
	}
	return kept.String()
}
