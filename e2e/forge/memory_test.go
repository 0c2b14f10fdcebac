package forge

import (
	"crypto/rand"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/ALRubinger/aileron/e2e/harness"
	"github.com/ALRubinger/aileron/e2e/must"
)

// measureEnv makes this program run its arguments as a command, and print the most
// memory that it had, in KiB.
const measureEnv = "AILERON_TEST_MEASURE"

// measure is this program as the parent of a command. The kernel counts the memory of the
// process that starts a command as the command's own, so that must be small.
func measure(args []string) int {
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stderr = os.Stderr
	if err := cmd.Run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	if !ok {
		return 1
	}
	fmt.Println(usage.Maxrss)
	return 0
}

// Installing a connector with a binary of 10 MiB takes at most 40 MiB of memory.
func TestTheMemoryOfAnInstallation(t *testing.T) {
	t.Parallel()
	f := Start(t)
	u := newUser(t, f)
	binary := make([]byte, 10<<20)
	must.Get(rand.Read(binary))(t)
	f.Publish(t, tracker, version, asset, packedWithFile(t, tracker, version, "connector.bin", binary))
	args := append([]string{program, "connector", "install", tracker + "@" + version, "--yes"}, f.Flags()...)
	cmd := exec.CommandContext(t.Context(), os.Args[0], args...)
	cmd.Env = append(harness.Env(u.home, ""), measureEnv+"=1")
	out, err := cmd.Output()
	var kib int
	if _, scanErr := fmt.Sscan(strings.TrimSpace(string(out)), &kib); err != nil || scanErr != nil {
		t.Fatalf("it ends with %v and prints %q", err, out)
	}
	t.Logf("it took %d KiB", kib)
	if kib > 40<<10 {
		t.Errorf("it took %d KiB of memory", kib)
	}
	if out, errs, code := u.start("connector", "verify"); code != 0 {
		t.Errorf("verify ends with %d: %s%s", code, out, errs)
	}
}
