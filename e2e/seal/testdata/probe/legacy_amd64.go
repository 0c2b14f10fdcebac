package main

import (
	"runtime/debug"
	"syscall"

	"golang.org/x/sys/unix"
)

// int80 makes a system call of the 32-bit world.
func int80(trap, a1, a2, a3 uintptr) (r uintptr)

// legacy tries the other numbers that an amd64 kernel has for its calls: a
// filter that does not know them does not look at their arguments.
func legacy() {
	for _, what := range []string{"int80-getpid", "int80-socketcall", "int80-socket", "int80-unshare", "x32-getpid",
		"x32-socket", "x32-unshare"} {
		tell("other numbers: "+what, inChild("legacy "+what))
	}
}

// legacyChild returns ENOSYS where the kernel has no 32-bit world at all
// (ia32_emulation=0): there the instruction faults, before any filter.
func legacyChild(what string) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if recover() != nil {
			err = syscall.ENOSYS
		}
	}()
	const x32 = 0x40000000
	result := func(r uintptr) error {
		if n := int32(r); n < 0 {
			return syscall.Errno(-n)
		}
		return nil
	}
	raw := func(trap, a, b, c uintptr) error {
		if _, _, errno := syscall.RawSyscall(trap, a, b, c); errno != 0 {
			return errno
		}
		return nil
	}
	switch what {
	case "int80-getpid":
		return result(int80(20, 0, 0, 0))
	case "int80-socketcall":
		return result(int80(102, 1, 0, 0))
	case "int80-socket":
		return result(int80(359, unix.AF_VSOCK, unix.SOCK_STREAM, 0))
	case "int80-unshare":
		return result(int80(310, unix.CLONE_NEWNET, 0, 0))
	case "x32-getpid":
		return raw(x32|unix.SYS_GETPID, 0, 0, 0)
	case "x32-socket":
		return raw(x32|unix.SYS_SOCKET, unix.AF_VSOCK, unix.SOCK_STREAM, 0)
	}
	return raw(x32|unix.SYS_UNSHARE, unix.CLONE_NEWNET, 0, 0)
}
