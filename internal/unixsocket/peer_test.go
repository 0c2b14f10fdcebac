//go:build linux

package unixsocket

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/ALRubinger/aileron/e2e/must"
)

// The mode of the socket keeps another user away; its uid does so where the directory was opened by mistake.
func TestAProcessOfAnotherUserIsRefused(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root becomes another user")
	}
	base, err := os.MkdirTemp("/tmp", "keeper-") // not in t.TempDir, which others may not enter
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(base) })
	l := must.Get(net.Listen("unix", filepath.Join(base, "s")))(t)
	defer l.Close()
	for _, path := range []string{base, filepath.Join(base, "s")} {
		must.Do(t, os.Chmod(path, 0o777))
	}
	for uid, want := range map[uintptr]bool{0: true, 65534: false} {
		client := connectAs(t, uid, l.Addr().String())
		conn := must.Get(l.Accept())(t)
		if _, err := CheckPeer(conn, true); (err == nil) != want {
			t.Errorf("a process of uid %d: %v", uid, err)
		}
		_ = conn.Close()
		_ = unix.Close(client)
	}
}

// connectAs connects to the socket at path from a thread of another effective uid, which is what the kernel reports.
func connectAs(t *testing.T, uid uintptr, path string) (fd int) {
	t.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	keep := ^uintptr(0)
	if _, _, errno := syscall.RawSyscall(syscall.SYS_SETRESUID, keep, uid, keep); errno != 0 {
		t.Fatal(errno)
	}
	defer func() {
		if _, _, errno := syscall.RawSyscall(syscall.SYS_SETRESUID, keep, 0, keep); errno != 0 {
			panic(errno)
		}
	}()
	fd = must.Get(unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0))(t)
	must.Do(t, unix.Connect(fd, &unix.SockaddrUnix{Name: path}))
	return fd
}

func TestProcessesOfOthersAreNotBeside(t *testing.T) {
	if !beside(os.Getpid()) {
		t.Error("this process is not beside itself")
	}
	cmd := exec.CommandContext(t.Context(), "true")
	must.Do(t, cmd.Run())
	if beside(cmd.Process.Pid) {
		t.Error("a process that has ended is beside this one")
	}
}
