package launch

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

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
