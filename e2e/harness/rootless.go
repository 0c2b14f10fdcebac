package harness

import (
	_ "embed"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
)

// RootlessUser is an ID without a user on this machine: rootless.sh creates the user for the processes that it starts.
const RootlessUser = 61234

//go:embed rootless.sh
var rootlessScript []byte

// Rootless returns the words before a command that run it as RootlessUser, with a home and an engine of its own in
// dir, which every user must be able to enter. What runs knows no variable of this process but AILERON_HOME and
// AILERON_VAULT_PASSPHRASE.
func Rootless(t *testing.T, dir string, programs ...string) []string {
	t.Helper()
	if os.Geteuid() != 0 {
		Need(t, "root: a user is made for the test")
	}
	for _, program := range append([]string{"podman", "newuidmap", "unshare", "setpriv"}, programs...) {
		if !Has(t, program) {
			t.Skipf("there is no %s: scripts/prepare --tests installs it", program)
		}
	}
	script := filepath.Join(dir, "rootless.sh")
	must.Do(t, os.WriteFile(script, rootlessScript, 0o755))
	t.Cleanup(func() { endPause(t, dir) }) // before its files go
	return []string{script, dir, strconv.Itoa(RootlessUser)}
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
	if err := syscall.Stat("/proc/"+strconv.Itoa(pid), &st); err == nil && st.Uid == RootlessUser {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}

// HandOver loads images of this machine's Podman into another engine: before are the words before its command.
func HandOver(t *testing.T, images []string, engine string, before ...string) {
	t.Helper()
	save := "podman save --quiet --multi-image-archive " + strings.Join(images, " ")
	words := append([]string{"-c", "set -o pipefail; " + save + ` | "$@"`, "-"}, before...)
	cmd := exec.CommandContext(t.Context(), "bash", append(words, engine, "load", "--quiet")...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("hand %v over: %v\n%s", images, err, out)
	}
}
