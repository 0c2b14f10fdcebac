package seal

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// rootlessUser is nobody of this machine's; testdata/rootless.sh makes him
// somebody for the processes that it starts.
const rootlessUser = 61234

// rootless is a person without rights, whose Podman is his own.
func rootless(t *testing.T) *person {
	t.Helper()
	for _, program := range []string{"podman", "newuidmap", "unshare", "setpriv"} {
		if _, err := exec.LookPath(program); err != nil {
			if os.Getenv("CI") != "" {
				t.Fatalf("there is no %s, and in CI the seal must be tried without root; scripts/prepare --tests installs it", program)
			}
			t.Skipf("there is no %s: scripts/prepare --tests installs it", program)
		}
	}
	dir := shortDir(t)
	as := []string{"testdata/rootless.sh", dir, strconv.Itoa(rootlessUser)}
	p := newPerson(t, "podman", rootlessUser, dir, as...)
	t.Cleanup(func() { endPause(t, dir) }) // before its files go
	save := exec.Command("podman", "save", "--quiet", image)
	load := exec.Command(as[0], append(as[1:], "podman", "load", "--quiet")...)
	var errs bytes.Buffer
	save.Stderr, load.Stderr = &errs, &errs
	pipe, err := save.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	load.Stdin = pipe
	if err := save.Start(); err != nil {
		t.Fatal(err)
	}
	loadErr := load.Run()
	if err := save.Wait(); err != nil || loadErr != nil {
		t.Fatalf("hand the image over: %v, %v\n%s", err, loadErr, errs.String())
	}
	return p
}

// endPause ends the process with which Podman keeps the user's namespaces.
func endPause(t *testing.T, dir string) {
	data, err := os.ReadFile(filepath.Join(dir, "run/libpod/tmp/pause.pid"))
	if err != nil {
		return
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(data)))
	if err != nil {
		t.Error(err)
		return
	}
	var st syscall.Stat_t
	if err := syscall.Stat("/proc/"+strconv.Itoa(pid), &st); err == nil && st.Uid == rootlessUser {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}
