package gateway

import (
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

const (
	maxChunk     = 256 << 10 // bytes moved at once
	maxIdlePipes = 64
)

// pipe carries bytes between two sockets inside the kernel.
type pipe struct{ r, w int }

// pipes keeps empty pipes for the next connection that has bytes to move. A
// connection on which nothing moves holds none.
type pipes struct {
	mu   sync.Mutex
	free []pipe
}

func (ps *pipes) get() (pipe, error) {
	ps.mu.Lock()
	if n := len(ps.free); n > 0 {
		p := ps.free[n-1]
		ps.free = ps.free[:n-1]
		ps.mu.Unlock()
		return p, nil
	}
	ps.mu.Unlock()
	var fds [2]int
	if err := unix.Pipe2(fds[:], unix.O_CLOEXEC|unix.O_NONBLOCK); err != nil {
		return pipe{}, os.NewSyscallError("pipe2", err)
	}
	// More room makes fewer calls; the kernel may refuse it.
	_, _ = unix.FcntlInt(uintptr(fds[0]), unix.F_SETPIPE_SZ, maxChunk)
	return pipe{fds[0], fds[1]}, nil
}

// put returns a pipe, which must be empty.
func (ps *pipes) put(p pipe) {
	ps.mu.Lock()
	keep := len(ps.free) < maxIdlePipes
	if keep {
		ps.free = append(ps.free, p)
	}
	ps.mu.Unlock()
	if !keep {
		p.close()
	}
}

func (ps *pipes) close() {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	for _, p := range ps.free {
		p.close()
	}
	ps.free = nil
}

func (p pipe) close() {
	_ = unix.Close(p.r)
	_ = unix.Close(p.w)
}

// move waits until src has bytes and moves them to dst. 0 without an error is
// the end of src. The error of src and that of dst are distinct: after one of
// src, dst may still be written to.
func (ps *pipes) move(dst, src syscall.RawConn) (n int, srcErr, dstErr error) {
	var p pipe
	var err, pipeErr error
	waitErr := src.Read(func(fd uintptr) bool {
		// The pipe is taken only now, when there may be something to carry.
		if p, pipeErr = ps.get(); pipeErr != nil {
			return true
		}
		n, err = spliceChunk(int(fd), p.w, maxChunk)
		if err == nil && n > 0 {
			return true
		}
		ps.put(p)
		return err != unix.EAGAIN
	})
	if pipeErr != nil { // not the source's end: its bytes are lost
		return 0, nil, pipeErr
	}
	if waitErr != nil {
		return 0, waitErr, nil
	}
	if err != nil || n == 0 {
		return 0, err, nil
	}
	for left := n; left > 0; {
		var m int
		waitErr := dst.Write(func(fd uintptr) bool {
			m, err = spliceChunk(p.r, int(fd), left)
			return err != unix.EAGAIN
		})
		if waitErr != nil {
			err = waitErr
		}
		if err != nil {
			p.close() // it still holds bytes
			return 0, nil, err
		}
		left -= m
	}
	ps.put(p)
	return n, nil, nil
}

// spliceChunk moves at most limit bytes from one descriptor to another: splice(2).
func spliceChunk(from, to, limit int) (int, error) {
	for {
		n, err := unix.Splice(from, nil, to, nil, limit, unix.SPLICE_F_NONBLOCK|unix.SPLICE_F_MOVE)
		if err != unix.EINTR {
			return int(n), err
		}
	}
}
