// Package oauth logs in at a real authorization server (e2e/oauthserver, in a process of its own), and uses what comes
// of it: in a browser, without one, over expiries and kills. No token may be seen by the sandbox, or lie in a file.
package oauth

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/ALRubinger/aileron/e2e/authserver"
	"github.com/ALRubinger/aileron/e2e/harness"
)

// The programs of the suite.
var aileron, server string

func TestMain(m *testing.M) {
	programs := map[string]string{"aileron": "../../cmd/aileron", "oauthserver": authserver.Program}
	os.Exit(harness.Run(m, "oauth", programs, func(dir string) {
		aileron, server = filepath.Join(dir, "aileron"), filepath.Join(dir, "oauthserver")
	}))
}
