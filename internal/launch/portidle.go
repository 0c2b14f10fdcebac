package launch

import (
	"net"
	"time"

	"github.com/ALRubinger/aileron/sandbox/gateway"
)

// half is a connection of which one direction can be closed.
type half interface {
	net.Conn
	CloseWrite() error
}

// joinUntilIdle copies bytes between two connections until both directions have ended, one has failed, or nothing was
// read from either for as long as idle. It closes both.
func joinUntilIdle(a, b half, idle time.Duration) {
	timer := time.AfterFunc(idle, func() {
		_ = a.Close()
		_ = b.Close()
	})
	defer timer.Stop()
	gateway.Join(active{a, timer, idle}, active{b, timer, idle})
}

// active is a connection that puts a timer off when something arrives.
type active struct {
	half
	timer *time.Timer
	idle  time.Duration
}

// Read reads from the connection.
func (c active) Read(p []byte) (int, error) {
	n, err := c.half.Read(p)
	if n > 0 {
		c.timer.Reset(c.idle)
	}
	return n, err
}
