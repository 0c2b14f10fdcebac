package engine

import (
	"context"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// pidfd is a container's first process, held by a descriptor of the kernel's
// (pidfd_open(2)): it can be ended without the engine, and is never another
// process that got its number. A nil one is no process.
type pidfd struct{ fd int }

// signal sends sig, and reports whether there was a process to send it to.
func (p *pidfd) signal(sig syscall.Signal) bool {
	return p != nil && unix.PidfdSendSignal(p.fd, sig, nil, 0) == nil
}

// kill kills the process, and with it all that runs in its container, and
// reports whether they ended within d.
func (p *pidfd) kill(d time.Duration) bool {
	if p == nil {
		return false
	}
	_ = unix.PidfdSendSignal(p.fd, unix.SIGKILL, nil, 0)
	for until := time.Now().Add(d); ; {
		left := time.Until(until)
		if left < 0 {
			return false
		}
		n, err := p.poll(int(left.Milliseconds()) + 1)
		if err != unix.EINTR {
			return n > 0
		}
	}
}

// poll waits for the end of the process: a pidfd is readable then.
func (p *pidfd) poll(milliseconds int) (int, error) {
	return unix.Poll([]unix.PollFd{{Fd: int32(p.fd), Events: unix.POLLIN}}, milliseconds) //nolint:gosec // a descriptor
}

// ended reports whether the process has ended.
func (p *pidfd) ended() bool {
	if p == nil {
		return false
	}
	n, _ := p.poll(0)
	return n > 0
}

// done is closed when the process has ended and last has returned, as long as
// ctx lives. last is called at once: engines soon remove what belonged to the
// process.
func (p *pidfd) done(ctx context.Context, last func()) <-chan struct{} {
	done := make(chan struct{})
	if p == nil {
		return done
	}
	fd, err := unix.FcntlInt(uintptr(p.fd), unix.F_DUPFD_CLOEXEC, 0) // release closes the other
	if err != nil {
		return done
	}
	own := &pidfd{fd}
	go func() {
		defer own.release()
		for ctx.Err() == nil {
			if n, err := own.poll(500); n > 0 || err != nil && err != unix.EINTR {
				last()
				close(done)
				return
			}
		}
	}()
	return done
}

func (p *pidfd) release() {
	if p != nil {
		_ = unix.Close(p.fd)
	}
}
