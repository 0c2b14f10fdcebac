package gateway

import (
	"context"
	"errors"
	"net"
	"sync"
	"syscall"
	"time"
)

// maxConnections may be open at once, if the limit of open files has room.
const maxConnections = 4096

// roomForConnections returns the number of connections that the limit of open
// files has room for: two sockets and a pipe each. Without descriptors a
// connection can be neither accepted nor refused.
func roomForConnections() int {
	const others = 256
	var l syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l) != nil || l.Cur > 1<<20 {
		return 1 << 18
	}
	return max(1, (int(l.Cur)-others)/4)
}

// accept serves each connection of l until l closes, as many at once as slots
// has room for. One more is closed at once, so that a client that floods the
// gateway takes nothing but its own connections. accept returns when every
// connection that it served has ended; they are closed when ctx ends or l fails.
func accept(ctx context.Context, l net.Listener, slots chan struct{}, serve func(context.Context, *net.TCPConn)) error {
	var running sync.WaitGroup
	defer running.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for {
		conn, err := l.Accept()
		if isExhausted(err) { // for now: connections that hold descriptors will end
			if wait(ctx, 20*time.Millisecond) != nil {
				return nil
			}
			continue
		}
		if errors.Is(err, syscall.ECONNABORTED) {
			continue
		}
		if err != nil {
			return err
		}
		select {
		case slots <- struct{}{}:
		default:
			_ = conn.Close()
			continue
		}
		running.Go(func() {
			defer func() { <-slots }()
			stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
			defer stop()
			defer conn.Close()
			serve(ctx, conn.(*net.TCPConn))
		})
	}
}

// isExhausted reports whether accept(2) failed for want of descriptors or memory.
func isExhausted(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) ||
		errors.Is(err, syscall.ENOBUFS) || errors.Is(err, syscall.ENOMEM)
}

// wait returns after d, or with the error of ctx when it ends first.
func wait(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
