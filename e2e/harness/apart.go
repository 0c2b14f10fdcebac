package harness

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Apart is this program once more in namespaces of its own, the kinds of
// which are given as CLONE_NEW… flags; in a new CLONE_NEWUSER the current user is
// root. setting, a NAME=VALUE of its environment, is how it knows. It does not
// outlive the thread that starts it.
func Apart(setting string, kinds uintptr, args ...string) *exec.Cmd {
	cmd := exec.Command("/proc/self/exe", args...)
	cmd.Env = append(os.Environ(), setting)
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: kinds, Pdeathsig: syscall.SIGKILL}
	if kinds&syscall.CLONE_NEWUSER != 0 {
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}}
	}
	return cmd
}

// RunApart runs a whole suite Apart, with the flags that this run has, and
// returns its exit code. Where a namespace cannot be made nothing is proved: in
// CI that is a failure.
func RunApart(suite, setting string, kinds uintptr) int {
	cmd := Apart(setting, kinds, os.Args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := cmd.Start(); err != nil {
		return NotRun(suite, fmt.Sprintf("a network namespace cannot be made here: %v", err))
	}
	if err := cmd.Wait(); err != nil {
		return max(cmd.ProcessState.ExitCode(), 1)
	}
	return 0
}

// NotRun is the exit code of a suite that this machine cannot run.
func NotRun(suite, why string) int {
	fmt.Fprintf(os.Stderr, "%s: not run: %s\n", suite, why)
	if os.Getenv("CI") != "" {
		return 1 // a run that proved nothing must not be green
	}
	return 0
}

// TestApart runs the test that calls it Apart, as a test of its own, and
// passes, fails or skips as that does.
func TestApart(t *testing.T, setting string, kinds uintptr) {
	t.Helper()
	cmd := Apart(setting, kinds, "-test.run=^"+t.Name()+"$", "-test.count=1", "-test.v")
	// The race detector sleeps for a second when a process ends.
	cmd.Env = append(cmd.Env, "GORACE=atexit_sleep_ms=0")
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	out, err := cmd.CombinedOutput()
	switch {
	case errors.Is(err, syscall.EPERM):
		Need(t, "a network namespace, which cannot be made here; run the tests as root")
	case err != nil:
		t.Fatalf("%v\n%s", err, out)
	case !strings.Contains(string(out), "--- PASS: "):
		t.Skipf("%s", out)
	}
	t.Logf("%s", out)
}

// Loopback brings up the namespace's loopback, with these addresses besides
// its own.
func Loopback(addresses ...netip.Addr) (netlink.Link, error) {
	lo, err := netlink.LinkByName("lo")
	if err == nil {
		err = netlink.LinkSetUp(lo)
	}
	if err != nil {
		return nil, fmt.Errorf("bring up the loopback: %w", err)
	}
	for _, at := range addresses {
		addr, err := netlink.ParseAddr(netip.PrefixFrom(at, at.BitLen()).String())
		if err == nil {
			addr.Flags = syscall.IFA_F_NODAD // it is ours at once
			err = netlink.AddrAdd(lo, addr)
		}
		if err != nil {
			return nil, fmt.Errorf("add %s: %w", at, err)
		}
	}
	for _, at := range addresses {
		if err := waitForRoute(at); err != nil {
			return nil, err
		}
	}
	return lo, nil
}

// waitForRoute waits until an address is a local one: the kernel makes an IPv6
// address that in its own time, and loses what is sent to it until then.
func waitForRoute(to netip.Addr) error {
	local := func() bool {
		routes, err := netlink.RouteGet(to.AsSlice())
		return err == nil && len(routes) == 1 && routes[0].Type == unix.RTN_LOCAL
	}
	if Poll(Patience, time.Millisecond, local) {
		return nil
	}
	return fmt.Errorf("%s did not become a local address in %v", to, Patience)
}
