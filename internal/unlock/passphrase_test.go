package unlock

import (
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/internal/console"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/internal/home"
)

// A hint names only what the command has: the verbs with --private have no flag for a passphrase.
func TestTheHintNamesWhatTheCommandHas(t *testing.T) {
	u := Unlocker{Console: &console.Console{Stdin: strings.NewReader(""), Stderr: t.Output()},
		Dir: &home.Dir{Flag: t.TempDir(), Environ: func(string) string { return "" }}}
	for flagless, want := range map[bool]string{false: "pass --passphrase-file", true: "aileron vault unlock --for 1h"} {
		u.flagless = flagless
		_, err := u.Passphrase(t.Context(), "", true)
		got := hint.Of(err)
		if !strings.Contains(got, want) || strings.Contains(got, "--passphrase-file") == flagless {
			t.Errorf("without a flag: %t: %v, hint: %s", flagless, err, got)
		}
	}
}
