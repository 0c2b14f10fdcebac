package launch

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/ALRubinger/aileron/internal/hint"
)

// No sandbox sees a capture: neither that of its session nor another one that runs.
func TestACaptureIsNotSharedWithASandbox(t *testing.T) {
	own, theirs, free := t.TempDir(), t.TempDir(), t.TempDir()
	share1 := share{Sources: []string{own, filepath.Join(own, "gone")}}
	others := map[string]share{"A": {Sources: []string{filepath.Join(free, "gone")}}, "B": {Sources: []string{theirs}}}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(free, link); err != nil {
		t.Fatal(err)
	}
	for at, want := range map[string]string{
		"": "", free: "", own: "which the sandbox could read", theirs: "which the sandbox of session B could read",
		link: "was replaced meanwhile",
	} {
		path := at
		if at != "" {
			path = filepath.Join(at, "x.har")
			if err := os.WriteFile(path, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		err := share1.checkCapture(path, others)
		if want == "" && err != nil || want != "" &&
			(err == nil || !strings.Contains(err.Error(), want) || hint.Of(err) == "") {
			t.Errorf("a capture in %q: %v, want %q and a hint", at, err, want)
		}
	}
}

// A directory has the same files under each of its names.
func TestACaptureIsNotInABindMountOfTheProject(t *testing.T) {
	project, other := t.TempDir(), t.TempDir()
	if err := syscall.Mount(project, other, "", syscall.MS_BIND, ""); err != nil {
		t.Skipf("no bind mounts here: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(other, 0) })
	_, err := PlaceCapture(filepath.Join(other, "x.har"), project, nil)
	if err == nil || !strings.Contains(err.Error(), "which the sandbox could read") {
		t.Errorf("in a bind mount: %v", err)
	}
}
