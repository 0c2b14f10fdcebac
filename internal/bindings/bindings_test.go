package bindings

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/internal/changes"
	"github.com/ALRubinger/aileron/internal/console"
	"github.com/ALRubinger/aileron/internal/home"
	"github.com/ALRubinger/aileron/internal/unlock"
)

// unlocker is one without a terminal, on a home of its own.
func unlocker(t *testing.T) *unlock.Unlocker {
	t.Helper()
	d := &home.Dir{Flag: t.TempDir()}
	return &unlock.Unlocker{Console: &console.Console{Stdin: strings.NewReader(""), Stderr: t.Output()}, Dir: d,
		Recorder: changes.Recorder{Dir: d}}
}

// What stands in a file of secrets is in no error: the line is, by its number.
func TestAnErrorAboutAFileOfSecretsNamesTheLineAlone(t *testing.T) {
	u := unlocker(t)
	file := filepath.Join(t.TempDir(), "secrets")
	for text, want := range map[string]string{
		"# a comment\n\nghp_0123456789\n":              "line 3 is not CONNECTOR=SECRET",
		"github=ghp_0123456789\ngithub=ghp_9876543210": "lines 1 and 2 name one connector",
		"nothing=ghp_0123456789\n":                     "line 1: find the connector",
	} {
		must.Do(t, os.WriteFile(file, []byte(text), 0o600))
		_, err := (&Setup{List: file, Identity: "default"}).Bind(t.Context(), u, func(string) { t.Error("it bound one") })
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "ghp_") {
			t.Errorf("%q: %v, want %q and no secret", text, err, want)
		}
	}
}

// Without a vault nothing is revoked, and nothing is asked.
func TestNothingIsRevokedWithoutABinding(t *testing.T) {
	err := Revoke(t.Context(), unlocker(t), "bearer/github/work", "", Login{}, func() error {
		t.Error("it asked")
		return nil
	})
	if err == nil {
		t.Error("it revoked a binding that does not exist")
	}
}
