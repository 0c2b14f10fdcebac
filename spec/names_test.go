package spec

import (
	"strings"
	"testing"
)

func TestToolNamesThatWouldShadowOrLeave(t *testing.T) {
	for _, s := range []string{
		"..", ".", "-rf", ".bashrc", "a/b", "a b", "a\\b", "$(id)", "é", strings.Repeat("a", 300),
		"sh", "bash", "Bash", "wget", "curl", "env", "sudo", "git", "ls", "claude", "ld.so", "ld-linux", "CON",
		"aileron", "aileron-x", "python3.11",
	} {
		if badToolName(s) == "" {
			t.Errorf("the tool name %q is accepted", s)
		}
	}
	for _, s := range []string{"google", "a:b", "tracker-2", "my_tool", "g.mail"} {
		if why := badToolName(s); why != "" {
			t.Errorf("the tool name %q is refused: it %s", s, why)
		}
	}
}
