package upstream

import (
	"errors"
	"net"
	"os"
	"syscall"
	"testing"
)

func TestOnlyTheSystemsErrorsAreForWantOfDescriptors(t *testing.T) {
	for err, want := range map[error]bool{
		&net.OpError{Op: "dial", Err: os.NewSyscallError("socket", syscall.ENFILE)}: true,
		&net.DNSError{Err: "dial udp: socket: too many open files"}:                 true,
		errors.New("malformed HTTP status code \"too many open files"):              false,
		&net.OpError{Op: "read", Err: syscall.ECONNRESET}:                           false,
	} {
		if got := IsOutOfDescriptors(err); got != want {
			t.Errorf("IsOutOfDescriptors(%v) = %t, want %t", err, got, want)
		}
	}
}
