package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// call makes a system call; the result is that of the call's own.
func call(name string, trap uintptr, args ...uintptr) {
	var a [6]uintptr
	copy(a[:], args)
	_, _, errno := syscall.Syscall6(trap, a[0], a[1], a[2], a[3], a[4], a[5])
	if errno == 0 {
		tell(name, nil)
		return
	}
	tell(name, errno)
}

func text(s string) uintptr {
	b, _ := syscall.BytePtrFromString(s)
	kept = append(kept, b)
	return uintptr(unsafe.Pointer(b))
}

// kept are strings that calls point to: the compiler does not see that.
var kept []*byte

var spaces = []struct {
	name string
	flag int
}{
	{"user", unix.CLONE_NEWUSER}, {"net", unix.CLONE_NEWNET}, {"mnt", unix.CLONE_NEWNS}, {"pid", unix.CLONE_NEWPID},
	{"uts", unix.CLONE_NEWUTS}, {"ipc", unix.CLONE_NEWIPC}, {"cgroup", unix.CLONE_NEWCGROUP}, {"time", unix.CLONE_NEWTIME},
}

// namespaces asks for new ones and for those of others.
func namespaces() {
	for _, s := range append(slices.Clone(spaces), struct {
		name string
		flag int
	}{"user and net", unix.CLONE_NEWUSER | unix.CLONE_NEWNET}) {
		tell("unshare "+s.name, inChild("unshare "+fmt.Sprint(s.flag)))
		if s.flag == unix.CLONE_NEWTIME {
			continue // the number means a signal to clone
		}
		cmd := exec.Command("/proc/self/exe", "child", "nothing")
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: uintptr(s.flag)}
		tell("clone "+s.name, cmd.Run())
		// An impossible size: the kernel's own answer would be EINVAL, and
		// no process is made where the filter does not hold.
		args := [11]uint64{0: uint64(s.flag)}
		call("clone3 "+s.name, unix.SYS_CLONE3, uintptr(unsafe.Pointer(&args)), 1)
	}
	for _, s := range spaces {
		for _, of := range []string{"1", "self"} {
			fd, err := unix.Open("/proc/"+of+"/ns/"+s.name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
			if err == nil {
				err = unix.Setns(fd, 0)
				_ = unix.Close(fd)
			}
			tell("setns to /proc/"+of+"/ns/"+s.name, err)
		}
	}
}

// kernel makes calls that no ordinary program needs.
func kernel(p plan) {
	call("mount a tmpfs", unix.SYS_MOUNT, text("none"), text("/mnt"), text("tmpfs"), 0, 0)
	call("mount, bind", unix.SYS_MOUNT, text("/proc"), text("/mnt"), text(""), unix.MS_BIND, 0)
	call("mount proc anew", unix.SYS_MOUNT, text("proc"), text("/mnt"), text("proc"), 0, 0)
	call("remount / as shared", unix.SYS_MOUNT, text("none"), text("/"), 0, unix.MS_REC|unix.MS_SHARED, 0)
	call("remount /proc/sys to write", unix.SYS_MOUNT, text("none"), text("/proc/sys"), 0, unix.MS_REMOUNT|unix.MS_BIND, 0)
	call("umount /proc/sys", unix.SYS_UMOUNT2, text("/proc/sys"), unix.MNT_DETACH)
	call("umount /etc/resolv.conf", unix.SYS_UMOUNT2, text("/etc/resolv.conf"), unix.MNT_DETACH)
	call("fsopen", unix.SYS_FSOPEN, text("tmpfs"), 0)
	call("open_tree", unix.SYS_OPEN_TREE, ^uintptr(99), text("/"), 1)
	call("mount_setattr", unix.SYS_MOUNT_SETATTR, ^uintptr(99), text("/"), 0, text("00000000000000000000000000000000"), 32)
	call("pivot_root", unix.SYS_PIVOT_ROOT, text("."), text("."))
	tell("chroot", inChild("chroot"))

	var params [120]byte
	call("io_uring_setup", unix.SYS_IO_URING_SETUP, 1, uintptr(unsafe.Pointer(&params)))
	var attr [128]byte
	call("bpf", unix.SYS_BPF, 0, uintptr(unsafe.Pointer(&attr)), 128)
	var event [128]byte
	event[4] = 128
	call("perf_event_open", unix.SYS_PERF_EVENT_OPEN, uintptr(unsafe.Pointer(&event)), 0, ^uintptr(0), ^uintptr(0), 0)
	call("keyctl", unix.SYS_KEYCTL, 0, ^uintptr(2), 0)
	call("add_key", unix.SYS_ADD_KEY, text("user"), text("probe"), text("x"), 1, ^uintptr(2))
	call("request_key", unix.SYS_REQUEST_KEY, text("user"), text("probe"), 0, ^uintptr(2))
	call("userfaultfd", unix.SYS_USERFAULTFD, 1)
	call("kexec_load", unix.SYS_KEXEC_LOAD, 0, 0, 0, 0)
	call("kexec_file_load", unix.SYS_KEXEC_FILE_LOAD, ^uintptr(0), ^uintptr(0), 0, 0, 0)
	call("init_module", unix.SYS_INIT_MODULE, text("x"), 1, text(""))
	call("finit_module", unix.SYS_FINIT_MODULE, ^uintptr(0), text(""), 0)
	call("delete_module", unix.SYS_DELETE_MODULE, text("nf_tables"), 0)
	var handle [136]byte
	*(*uint32)(unsafe.Pointer(&handle)) = 8
	call("open_by_handle_at", unix.SYS_OPEN_BY_HANDLE_AT, ^uintptr(99), uintptr(unsafe.Pointer(&handle)), 0)
	call("process_vm_readv", unix.SYS_PROCESS_VM_READV, 1, 0, 0, 0, 0, 0)
	call("kcmp", unix.SYS_KCMP, 1, 1, 0, 0, 0)
	call("syslog", unix.SYS_SYSLOG, 3, uintptr(unsafe.Pointer(&params)), 100)
	call("reboot", unix.SYS_REBOOT, 0, 0, 0, 0)
	call("sethostname", unix.SYS_SETHOSTNAME, text("probe"), 5)
	call("settimeofday", unix.SYS_SETTIMEOFDAY, uintptr(unsafe.Pointer(&params)), 0)
	call("clock_settime", unix.SYS_CLOCK_SETTIME, 0, uintptr(unsafe.Pointer(&params)))
	call("swapon", unix.SYS_SWAPON, text("/dev/null"), 0)
	call("acct", unix.SYS_ACCT, text("/tmp/acct"))
	call("quotactl", unix.SYS_QUOTACTL, 0, text("/dev/vda"), 0, 0)
	call("fanotify_init", unix.SYS_FANOTIFY_INIT, 0, 0)
	tell("personality, 32 bits", inChild("personality"))
	legacy()

	// Every call that the profile does not name, with arguments that none takes.
	said("every system call that is not on the list", deniedCalls(p), "")
}

func deniedCalls(p plan) string {
	cmd := exec.Command("/proc/self/exe", "child", "denied")
	cmd.Env = nil
	for _, name := range slices.Sorted(maps.Keys(p.Denied)) {
		cmd.Env = append(cmd.Env, fmt.Sprintf("%s=%d", name, p.Denied[name]))
	}
	got, err := cmd.Output()
	if err != nil {
		return fmt.Sprint("the child: ", err, " ", string(got))
	}
	return strings.TrimSpace(string(got))
}

// inChild runs a part of this program that changes, or ends, its process.
func inChild(what string) error {
	cmd := exec.Command("/proc/self/exe", "child", what)
	cmd.Env = append(os.Environ(), "GOMAXPROCS=4") // a thread that is killed keeps its turn
	err := cmd.Run()
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return err
	}
	status, _ := exit.Sys().(syscall.WaitStatus)
	if status.Signaled() || status.ExitStatus() == threadKilled {
		return errKilled
	}
	return syscall.Errno(status.ExitStatus())
}

var errKilled = errors.New("killed")

const threadKilled = 200 // beyond the kernel's error numbers

// onItsOwnThread runs a call for which a filter may kill the thread that
// makes it, and ends the process in its place.
func onItsOwnThread(f func() error) error {
	id, done := make(chan int, 1), make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		id <- unix.Gettid()
		done <- f()
	}()
	task := fmt.Sprintf("/proc/self/task/%d/status", <-id)
	tick, end := time.NewTicker(time.Millisecond), time.After(patience)
	defer tick.Stop()
	for {
		select {
		case err := <-done:
			return err
		case <-end:
			return unix.ETIMEDOUT
		case <-tick.C:
		}
		if status, err := os.ReadFile(task); err == nil && !strings.Contains(string(status), "State:\tZ") {
			continue
		}
		select {
		case err := <-done: // the thread ended because the call returned
			return err
		default:
			os.Exit(threadKilled)
		}
	}
}

// child does one thing and ends with its error number.
func child(what string) {
	what, argument, _ := strings.Cut(what, " ")
	var err error
	switch what {
	case "unshare":
		flag, _ := strconv.Atoi(argument)
		err = unix.Unshare(flag)
	case "chroot":
		err = unix.Chroot(".")
	case "personality":
		_, _, errno := syscall.Syscall(unix.SYS_PERSONALITY, 8, 0, 0)
		if errno != 0 {
			err = errno
		}
	case "denied":
		let := 0
		for _, pair := range os.Environ() {
			name, number, _ := strings.Cut(pair, "=")
			trap, err := strconv.Atoi(number)
			if err != nil {
				continue
			}
			_, _, errno := syscall.RawSyscall6(uintptr(trap), ^uintptr(0), ^uintptr(0), ^uintptr(0), ^uintptr(0), ^uintptr(0),
				^uintptr(0))
			if errno != unix.ENOSYS && errno != unix.EPERM {
				fmt.Printf("%s gave %s; ", name, unix.ErrnoName(errno))
				let++
			}
		}
		fmt.Printf("%d of %d are let through\n", let, len(os.Environ()))
		return
	case "legacy":
		err = onItsOwnThread(func() error { return legacyChild(argument) })
	}
	var errno syscall.Errno
	if errors.As(err, &errno) {
		os.Exit(int(errno))
	}
}
