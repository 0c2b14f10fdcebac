package gateway

import (
	"io"
	"net"
	"sync"
	"time"
)

// IsReserved reports whether a port of the sandbox is one of the gateway's own.
func IsReserved(port uint16) bool {
	return port == 53 || port == explicitAddr.Port() || port == redirectAddr.Port() || port == dnsAddr.Port()
}

// half is a connection of which one direction can be closed.
type half interface {
	net.Conn
	CloseWrite() error
}

// Join copies bytes between two connections until both directions have ended, or
// one has failed, and closes both.
func Join(a, b half) {
	defer a.Close()
	defer b.Close()
	var back sync.WaitGroup
	back.Go(func() { joinHalf(a, b) })
	joinHalf(b, a)
	back.Wait()
}

// joinTime bounds what is left of a connection of which one direction has failed.
const joinTime = 5 * time.Second

func joinHalf(to, from half) {
	if _, err := io.Copy(to, from); err != nil || to.CloseWrite() != nil {
		deadline := time.Now().Add(joinTime)
		_ = to.SetDeadline(deadline)
		_ = from.SetDeadline(deadline)
	}
}
