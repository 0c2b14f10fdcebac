package engine

import (
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Tail keeps the end of a program's output.
type Tail struct {
	mu   sync.Mutex
	text []byte
}

// Write adds to the output.
func (t *Tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p...)
	t.text = t.text[max(0, len(t.text)-2000):]
	return len(p), nil
}

// LastError is the last line that reports an error, without the form of a log.
func (t *Tail) LastError() string {
	t.mu.Lock()
	lines := strings.Split(string(t.text), "\n")
	t.mu.Unlock()
	for _, line := range slices.Backward(lines) {
		line = strings.Join(strings.Fields(line), " ")
		_, level, logged := strings.Cut(line, " level=")
		switch {
		case strings.Contains(line, "healthcheck"): // Podman looks for systemd with each container
			continue
		case line == "", logged && !strings.HasPrefix(level, "error") && !strings.HasPrefix(level, "fatal"):
			continue
		}
		if _, quoted, ok := strings.Cut(level, " msg="); ok {
			if prefix, err := strconv.QuotedPrefix(quoted); err == nil {
				if message, err := strconv.Unquote(prefix); err == nil {
					return message
				}
			}
		}
		return line
	}
	return ""
}

// String is the end of the output, in one line.
func (t *Tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.Join(strings.Fields(string(t.text)), " ")
}
