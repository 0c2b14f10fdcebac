package harness

import (
	"os/exec"
	"strings"
	"testing"
)

// The last lines of a command are in its text once it has ended.
func TestAScreenHasAllThatWasWritten(t *testing.T) {
	for range 50 {
		s := NewScreen(t, exec.Command("sh", "-c", "seq 500; echo the-last"))
		<-s.ended
		if text := s.Text(); !strings.HasSuffix(strings.TrimSpace(text), "the-last") {
			t.Fatalf("the text has %d bytes and ends with %q", len(text), text[max(0, len(text)-20):])
		}
	}
}
