package launch

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/ALRubinger/aileron/vault/keeper"
)

// A sandbox whose project contains the runtime directory must not reach the process that holds the vault's key.
func TestAProjectHidesTheSocketOfTheVaultsKey(t *testing.T) {
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	run, home := filepath.Join(base, "run"), filepath.Join(base, "home")
	for _, dir := range []string{run, home} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("XDG_RUNTIME_DIR", run)
	for _, project := range []string{base, run} {
		dir, mask, err := Project(project, home)
		if err != nil || dir != project || !slices.Contains(mask, keeper.Dir(home)) {
			t.Errorf("the project %s hides %q, %v; want %s too", project, mask, err, keeper.Dir(home))
		}
		if info, err := os.Stat(keeper.Dir(home)); err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("the mask has no directory of its own: %v, %v", info, err)
		}
	}
	if _, _, err := Project(keeper.Dir(home), home); err == nil {
		t.Error("the directory of the socket is a project")
	}
	if _, mask, err := Project(t.TempDir(), home); err != nil || len(mask) != 0 {
		t.Errorf("a project elsewhere hides %q, %v", mask, err)
	}
	// Without a runtime directory the socket is in the home, which is hidden as a whole.
	t.Setenv("XDG_RUNTIME_DIR", filepath.Join(base, "none"))
	if keeper.Dir(home) == filepath.Join(home, "run") {
		if _, mask, err := Project(base, home); err != nil || !slices.Equal(mask, []string{home}) {
			t.Errorf("the project hides %q, %v; want %s", mask, err, home)
		}
	}
}
