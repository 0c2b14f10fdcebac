package main

import (
	"debug/elf"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/cmd/aileron/internal/cli"
	"github.com/ALRubinger/aileron/e2e/harness"
	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/internal/console"
	"github.com/ALRubinger/aileron/internal/home"
)

// The gateway's container holds nothing but this file: it must need no loader
// and no library.
func TestTheReleaseBuildIsStatic(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: builds a release")
	}
	if runtime.GOOS != "linux" {
		t.Skip("containers run Linux builds")
	}
	path := filepath.Join(t.TempDir(), "aileron")
	must.Do(t, harness.BuildReleased(path, "."))
	f := must.Get(elf.Open(path))(t)
	defer f.Close()
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP || p.Type == elf.PT_DYNAMIC {
			t.Errorf("the file has a %v segment", p.Type)
		}
	}
	libraries, err := f.ImportedLibraries()
	if err != nil || len(libraries) != 0 {
		t.Errorf("it needs the libraries %q, %v", libraries, err)
	}
}

func TestTheGatewayIsHiddenAndRefusesRoot(t *testing.T) {
	var out, said strings.Builder
	a := cli.New(&console.Console{Stdin: strings.NewReader(""), Stdout: &out, Stderr: &said},
		&home.Dir{})
	if code := Main(t.Context(), []string{"--help"}, a); code != 0 || strings.Contains(out.String(), "gateway") {
		t.Errorf("help ends with %d and shows:\n%s", code, &out)
	}
	for _, user := range []string{"0", "-1", "root"} {
		said.Reset()
		if code := Main(t.Context(), []string{"gateway", "--user", user}, a); code != 2 || !isFailure(said.String()) {
			t.Errorf("--user %s ends with %d and says %q, want 2 and one line", user, code, &said)
		}
	}
}
