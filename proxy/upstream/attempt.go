package upstream

import (
	"context"
	"crypto/tls"
	"net/http/httptrace"
	"sync/atomic"
)

// attempt watches one attempt's connection. net/http's HTTP/2 makes some
// attempts of its own, without a bound: for a GET, and for whatever has no
// body, when the host ends the connection or refuses the stream. The second
// connection cancels ours, before a byte is on it.
type attempt struct {
	conn     *countedConn
	before   int64 // bytes written on it before
	earlier  int64 // bytes read on it before
	h2       bool
	cancel   context.CancelFunc
	joined   func(*countedConn) // called with an HTTP/2 connection
	wrote    atomic.Bool        // a field of the request left, over HTTP/2
	answered atomic.Bool        // a byte of a response came
	stuck    atomic.Bool        // the upstream does not take the body
	heard    atomic.Bool        // the head of the response is there
}

func (a *attempt) trace() *httptrace.ClientTrace {
	return &httptrace.ClientTrace{
		GotFirstResponseByte: func() { a.answered.Store(true) },
		WroteHeaderField:     func(string, []string) { a.wrote.Store(true) },
		GotConn: func(info httptrace.GotConnInfo) {
			if a.conn != nil {
				a.cancel()
				return
			}
			secure, ok := info.Conn.(*tls.Conn)
			if !ok {
				return
			}
			if counted, ok := secure.NetConn().(*countedConn); ok {
				a.conn, a.earlier = counted, counted.read.Load()
				a.joined(counted)
			}
		},
	}
}

// unwritten reports that the attempt got a connection, and wrote nothing.
func (a *attempt) unwritten() bool {
	if a.conn == nil {
		return false
	}
	if a.h2 { // other streams write on it too
		return !a.wrote.Load()
	}
	return a.conn.written.Load() == a.before
}

// got returns how many bytes came on the connection since the attempt began.
func (a *attempt) got() int64 {
	if a.conn == nil {
		return 0
	}
	return a.conn.read.Load() - a.earlier
}

// reached reports that bytes of the request are on a connection.
func (a *attempt) reached() bool { return a != nil && a.conn != nil && !a.unwritten() }
