package main

import (
	"fmt"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/ALRubinger/aileron/cmd/aileron/internal/cli"
	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/internal/console"
	"github.com/ALRubinger/aileron/internal/home"
)

// A descriptor from which a secret was read is not for the commands that
// aileron starts; any other one is.
func TestADescriptorOfASecretIsNotInherited(t *testing.T) {
	o := newOwner(t)
	f, err := os.Open(o.file("passphrase", testPassphrase+"\n"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, fds := range []string{"/dev/fd", "/proc/self/fd"} {
		secret := must.Get(unix.Dup(int(f.Fd())))(t) // as a shell opens it: inherited
		plain, err := unix.Dup(int(f.Fd()))
		if err != nil {
			t.Fatal(err)
		}
		a := cli.New(&console.Console{Stderr: os.Stderr}, &home.Dir{})
		if got, err := a.ReadPassphraseFile(fmt.Sprintf("%s/%d", fds, secret)); err != nil || string(got) != testPassphrase {
			t.Errorf("%s: read %d bytes, %v", fds, len(got), err)
		}
		for fd, want := range map[int]int{secret: unix.FD_CLOEXEC, plain: 0} {
			if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err != nil || flags&unix.FD_CLOEXEC != want {
				t.Errorf("%s: the flags of descriptor %d are %d, %v; want %d", fds, fd, flags, err, want)
			}
			_ = unix.Close(fd)
		}
	}
}
