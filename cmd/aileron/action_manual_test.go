package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
)

// block returns the first block of code of a language in a page of the manual.
func block(t *testing.T, page, language string) string {
	t.Helper()
	text := must.Get(os.ReadFile(filepath.Join("..", "..", "docs", page)))(t)
	_, rest, _ := strings.Cut(string(text), "\n```"+language+"\n")
	code, _, ok := strings.Cut(rest, "\n```\n")
	if !ok {
		t.Fatalf("%s has no block of %s", page, language)
	}
	return code + "\n"
}

// TestTheManualsActionIsFollowed runs what docs/actions.md says, word for word. Only the token, which its reader types,
// is not bound: the call is denied for that and for nothing else, and no network is needed.
func TestTheManualsActionIsFollowed(t *testing.T) {
	file, commands := block(t, "actions.md", "markdown"), block(t, "actions.md", "sh")
	t.Chdir(t.TempDir())
	must.Do(t, os.WriteFile("file-bug.md", []byte(file), 0o600))
	c := newOwner(t)
	for line := range strings.Lines(commands) {
		args, quoted, _ := strings.Cut(strings.TrimSpace(line), "'")
		words := strings.Fields(args)[1:]
		if quoted != "" {
			words = append(words, strings.TrimSuffix(quoted, "'"))
		}
		switch verb := words[0] + " " + words[1]; verb {
		case "binding setup":
		case "action run":
			out, errs, code := c.run(words...)
			if code != 1 || out != "" || !strings.Contains(errs, "aileron binding setup "+githubFQN) {
				t.Errorf("%s: exit %d: %s%s", verb, code, out, errs)
			}
		case "action list":
			if out := c.ok(words...); !strings.HasSuffix(out, "  ok\n") {
				t.Errorf("%s: %s", verb, out)
			}
		case "audit list":
			if out := c.ok(words...); !strings.Contains(out, "credential_not_bound") {
				t.Errorf("%s: %s", verb, out)
			}
		default:
			c.ok(words...)
		}
	}
}
