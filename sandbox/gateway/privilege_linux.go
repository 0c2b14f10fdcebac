package gateway

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// dropPrivileges makes every thread of the process run as an ordinary user, for
// good: no capability in any set, none to be gained by executing a program, no
// supplementary group.
func (c Config) dropPrivileges() error {
	// The bounding set first: changing it takes CAP_SETPCAP, which is lost with
	// the user.
	if err := dropBounding(); err != nil {
		return err
	}
	if !c.KeepUser {
		if err := becomeUser(c.User); err != nil {
			return err
		}
	}
	return dropCapabilities()
}

// DropBoundingSet empties the bounding and the ambient set of every thread of the process. In a new user namespace that
// takes 41 stops of all threads: a program that can drop it calls this first, while it has few. It takes CAP_SETPCAP.
func DropBoundingSet() error { return dropBounding() }

// DropCapabilities empties every capability set of every thread of the process,
// for good, and sets no-new-privileges. It takes CAP_SETPCAP.
func DropCapabilities() error {
	if err := dropBounding(); err != nil {
		return err
	}
	return dropCapabilities()
}

// dropBounding empties the bounding and the ambient set.
func dropBounding() error {
	for c := uintptr(0); ; c++ {
		has, err := unix.PrctlRetInt(unix.PR_CAPBSET_READ, c, 0, 0, 0)
		if errors.Is(err, unix.EINVAL) && c > 0 {
			break // past the kernel's last capability
		}
		if err != nil {
			return fmt.Errorf("read the bounding set: %w", err)
		}
		if has == 0 { // as most: each drop stops all threads
			continue
		}
		if errno := onAllThreads(unix.SYS_PRCTL, unix.PR_CAPBSET_DROP, c, 0); errno != 0 {
			return fmt.Errorf("empty the bounding set: %w", explain(errno))
		}
	}
	errno := onAllThreads(unix.SYS_PRCTL, unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0)
	if errno != 0 && errno != unix.EINVAL { // kernels before 4.3 have no ambient set
		return fmt.Errorf("empty the ambient set: %w", explain(errno))
	}
	return nil
}

// becomeUser changes the user and the groups.
func becomeUser(id int) error {
	// These three act on all threads by themselves.
	if err := syscall.Setgroups(nil); err != nil {
		// A user namespace of an unprivileged user lets no group be dropped (user_namespaces(7)). Where there is none
		// to drop, that is no harm; checkDropped looks.
		if groups, getErr := syscall.Getgroups(); getErr != nil || len(groups) > 0 || !errors.Is(err, syscall.EPERM) {
			return fmt.Errorf("drop the supplementary groups: %w", err)
		}
	}
	if err := syscall.Setresgid(id, id, id); err != nil {
		return fmt.Errorf("become group %d: %w", id, err)
	}
	if err := syscall.Setresuid(id, id, id); err != nil {
		return fmt.Errorf("become user %d: %w", id, err)
	}
	return nil
}

func dropCapabilities() error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	//nolint:gosec // the kernel reads it during the call
	errno := onAllThreads(unix.SYS_CAPSET, uintptr(unsafe.Pointer(&header)), uintptr(unsafe.Pointer(&none[0])), 0)
	runtime.KeepAlive(&header)
	runtime.KeepAlive(&none)
	if errno != 0 {
		return fmt.Errorf("empty the capability sets: %w", explain(errno))
	}
	if errno := onAllThreads(unix.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1, 0); errno != 0 {
		return fmt.Errorf("set no-new-privileges: %w", explain(errno))
	}
	return nil
}

//go:uintptrescapes
func onAllThreads(trap, a1, a2, a3 uintptr) syscall.Errno {
	_, _, errno := syscall.AllThreadsSyscall6(trap, a1, a2, a3, 0, 0, 0)
	return errno
}

func explain(errno syscall.Errno) error {
	if errno == syscall.ENOTSUP {
		return errors.New("this build uses cgo, and Go cannot change the threads of C: build with CGO_ENABLED=0")
	}
	return errno
}

// checkDropped returns an error if, in the kernel's own account, a thread of the
// process still has a privilege.
func (c Config) checkDropped() error {
	want := unprivileged()
	if !c.KeepUser {
		ids := fmt.Sprintf("%d %d %d %d", c.User, c.User, c.User, c.User)
		want["Uid"], want["Gid"], want["Groups"] = ids, ids, ""
	}
	return checkThreads(want)
}

// CheckDropped returns an error if, in the kernel's own account, a thread of the
// process has a capability, or can gain one.
func CheckDropped() error { return checkThreads(unprivileged()) }

func unprivileged() map[string]string {
	return map[string]string{"NoNewPrivs": "1", "CapInh": "0", "CapPrm": "0", "CapEff": "0", "CapBnd": "0", "CapAmb": "0"}
}

func checkThreads(want map[string]string) error {
	files, err := filepath.Glob("/proc/self/task/*/status")
	if err != nil || len(files) == 0 {
		return errors.New("/proc shows no thread of this process")
	}
	seen := 0
	for _, file := range files {
		data, err := os.ReadFile(file)
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ESRCH) {
			continue // the thread has ended
		}
		if err != nil {
			return err
		}
		if err := checkThread(string(data), maps.Clone(want)); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		seen++
	}
	if seen == 0 {
		return errors.New("no thread of this process could be read")
	}
	return nil
}

// checkThread checks the status file of one thread, proc(5), and consumes want.
func checkThread(status string, want map[string]string) error {
	for line := range strings.Lines(status) {
		key, value, _ := strings.Cut(line, ":")
		wanted, ok := want[key]
		if !ok {
			continue
		}
		value = strings.Join(strings.Fields(value), " ")
		if strings.HasPrefix(key, "Cap") && value != "" && strings.Trim(value, "0") == "" {
			value = "0"
		}
		if value != wanted {
			return fmt.Errorf("%s is %q and not %q", key, value, wanted)
		}
		delete(want, key)
	}
	for key := range want {
		return fmt.Errorf("%s is missing", key)
	}
	return nil
}
