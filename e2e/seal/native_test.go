package seal

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/e2e/harness"
	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/sandbox"
)

// nativeUser is a person without rights and without an engine.
func nativeUser(t *testing.T) *person {
	t.Helper()
	if !harness.Has(t, "setpriv") {
		t.Skip("there is no setpriv: scripts/prepare --tests installs it")
	}
	dir, id := must.OpenDir(t), strconv.Itoa(harness.RootlessUser)
	return newPerson(t, sandbox.Native, harness.RootlessUser, dir, "setpriv", "--reuid="+id, "--regid="+id,
		"--clear-groups", "--inh-caps=-all", "env", "HOME="+dir, "DOCKER_HOST=", "XDG_RUNTIME_DIR=")
}

// public returns the directories that a native sandbox has of this host's system: all of /usr but those in which the
// session puts files.
func (p *person) public() (dirs []string) {
	if p.engine != sandbox.Native {
		return nil
	}
	for _, parent := range []string{"/usr", "/usr/local"} {
		entries, err := os.ReadDir(parent)
		if err != nil {
			p.t.Fatal(err)
		}
		for _, e := range entries {
			if at := filepath.Join(parent, e.Name()); at != "/usr/local" && at != "/usr/local/bin" && at != "/usr/local/share" {
				dirs = append(dirs, at)
			}
		}
	}
	return dirs
}

// nativeLeftovers are the processes of native sandboxes of the program under test.
func (p *person) nativeLeftovers() string {
	var left []string
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		line, err := os.ReadFile(filepath.Join(dir, "cmdline"))
		if err != nil || !strings.HasPrefix(string(line), "aileron-native-") {
			continue
		}
		if exe, err := os.Readlink(filepath.Join(dir, "exe")); err == nil && exe == program("aileron") {
			left = append(left, filepath.Base(dir)+" "+strings.ReplaceAll(string(line), "\x00", " "))
		}
	}
	return strings.Join(left, ", ")
}
