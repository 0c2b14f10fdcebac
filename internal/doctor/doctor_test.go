package doctor

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/internal/home"
)

// The checks of the home change nothing: one that does not exist is not made, and one that others may read is left as
// it is, with the command that corrects it.
func TestTheHomeIsCheckedAndNotChanged(t *testing.T) {
	var found []Finding
	d := &Doctor{Dir: &home.Dir{Flag: filepath.Join(t.TempDir(), "home")},
		Found: func(f Finding) { found = append(found, f) }}
	d.checkHome(t.Context())
	if _, err := os.Stat(d.Flag); !os.IsNotExist(err) || d.hasHome() {
		t.Errorf("the home was made: %v", err)
	}
	if len(found) != 1 || found[0].State != StateWarn || !strings.Contains(found[0].Text, "does not exist yet") {
		t.Errorf("without a home: %+v", found)
	}
	must.Do(t, os.Mkdir(d.Flag, 0o755))
	must.Do(t, os.WriteFile(filepath.Join(d.Flag, "config.toml"), []byte("[limits\n"), 0o600))
	found = nil
	d.checkHome(t.Context())
	if len(found) != 2 || found[0].State != StateFail || found[0].Fix != "chmod 700 "+d.Flag ||
		found[1].State != StateFail || found[1].Check != "settings" {
		t.Errorf("a home that others read, with broken settings: %+v", found)
	}
	if info, err := os.Stat(d.Flag); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("the home was changed: %v, %v", info.Mode(), err)
	}
}
