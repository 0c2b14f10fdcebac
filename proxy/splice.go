package proxy

import (
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// spliceBuffer is how much a splice copies at once, in each direction.
const spliceBuffer = 16 << 10

// activity is when bytes last moved in either direction, by the monotonic
// clock: the wall clock may be set meanwhile.
type activity struct {
	began time.Time
	last  atomic.Int64 // nanoseconds since began
}

func (a *activity) mark()               { a.last.Store(int64(time.Since(a.began))) }
func (a *activity) idle() time.Duration { return time.Since(a.began) - time.Duration(a.last.Load()) }

// splice copies between two connections and counts the bytes of each.
type splice struct {
	out, in atomic.Int64
	moved   activity
}

// run copies in both directions until both have ended, or neither has sent
// anything for idle.
func (s *splice) run(client, upstream net.Conn, idle time.Duration) {
	s.moved.began = time.Now()
	var both sync.WaitGroup
	both.Go(func() { s.pump(upstream, client, &s.out, idle) })
	both.Go(func() { s.pump(client, upstream, &s.in, idle) })
	both.Wait()
}

func (s *splice) pump(to, from net.Conn, n *atomic.Int64, idle time.Duration) {
	buf := make([]byte, spliceBuffer)
	for {
		_ = from.SetReadDeadline(time.Now().Add(idle))
		got, err := from.Read(buf)
		if got > 0 {
			s.moved.mark()
			_ = to.SetWriteDeadline(time.Now().Add(idle))
			if _, err := to.Write(buf[:got]); err != nil {
				break
			}
			n.Add(int64(got))
		}
		var timeout net.Error
		if errors.As(err, &timeout) && timeout.Timeout() && s.moved.idle() < idle {
			continue // the other direction goes on
		}
		if err == io.EOF {
			if half, ok := to.(interface{ CloseWrite() error }); ok && half.CloseWrite() == nil {
				return
			}
		}
		if err != nil {
			break
		}
	}
	_ = to.Close()
	_ = from.Close()
}
