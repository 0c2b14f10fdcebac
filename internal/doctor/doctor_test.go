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

// A decider that cannot be asked, or that others could replace, is a failure. It is not run.
func TestTheDeciderIsCheckedAndNotAsked(t *testing.T) {
	dir := t.TempDir()
	var found []Finding
	d := &Doctor{Dir: &home.Dir{Flag: filepath.Join(dir, "home")}, Found: func(f Finding) { found = append(found, f) }}
	program := filepath.Join(dir, "decide")
	must.Do(t, os.Mkdir(d.Flag, 0o700))
	must.Do(t, os.WriteFile(program, []byte("#!/bin/sh\ntouch "+dir+"/ran\n"), 0o700))
	check := func(value string) Finding {
		t.Helper()
		text := "[approval]\ndecider = " + value + "\n"
		must.Do(t, os.WriteFile(filepath.Join(d.Flag, "config.toml"), []byte(text), 0o600))
		found = nil
		d.checkHome(t.Context())
		if len(found) != 3 || found[2].Check != "decider" {
			t.Fatalf("%s: %+v", value, found)
		}
		return found[2]
	}
	if f := check(`["` + program + `", "word"]`); f.State != StateOK || f.Text != program+" word" {
		t.Errorf("a good one: %+v", f)
	}
	must.Do(t, os.Chmod(program, 0o777))
	if f := check(`["` + program + `"]`); f.State != StateFail || !strings.Contains(f.Text, "another user") ||
		f.Fix != "chmod go-w "+program {
		t.Errorf("one that others may change: %+v", f)
	}
	if f := check(`"unix:` + dir + `/socket"`); f.State != StateFail || !strings.Contains(f.Text, "no such file") ||
		!strings.Contains(f.Fix, "start or install") {
		t.Errorf("a socket that is not there: %+v", f)
	}
	if _, err := os.Stat(filepath.Join(dir, "ran")); !os.IsNotExist(err) {
		t.Errorf("it was run: %v", err)
	}
}
