package upstream

import (
	"crypto/tls"
	"net/http/httptrace"
	"sync"
	"sync/atomic"
	"time"
)

// attempt records what happened to one attempt to send a request.
//
// net/http's HTTP/2 makes some attempts of its own, without a bound: for a GET,
// and for whatever has no body, when the host ends the connection or refuses the
// stream. A second connection therefore cancels the attempt, before a byte is on
// it; net/http asks for one only where the first did not process the request.
type attempt struct {
	h2            bool
	limit         time.Duration      // for the head of the response; 0 is none
	cancel        func()             // ends the attempt
	conn          *countedConn       // nil: it got none
	writtenBefore int64              // bytes written on conn before, for HTTP/1.1
	readBefore    int64              // bytes read on conn before, for HTTP/2
	onConn        func(*countedConn) // called with a connection of HTTP/2

	wroteField atomic.Bool // a field of the request left, over HTTP/2
	gotByte    atomic.Bool // a byte of a response came
	gotHeader  atomic.Bool // the head of the response is there
	stalled    atomic.Bool // the host does not take the body
	refused    atomic.Bool // the host did not process the request
	late       atomic.Bool // the limit has passed

	mu      sync.Mutex
	waiting *time.Timer // of the limit, over HTTP/2; nil: it does not run
	waited  bool        // it need not begin any more
}

// trace returns the hooks that net/http calls for an attempt over HTTP/2.
func (a *attempt) trace() *httptrace.ClientTrace {
	return &httptrace.ClientTrace{
		GotFirstResponseByte: func() { a.gotByte.Store(true) },
		WroteHeaderField:     func(string, []string) { a.wroteField.Store(true) },
		WroteRequest:         func(httptrace.WroteRequestInfo) { a.beginWait() },
		GotConn: func(info httptrace.GotConnInfo) {
			if a.conn != nil {
				a.refused.Store(true)
				a.cancel()
				return
			}
			secure, ok := info.Conn.(*tls.Conn)
			if !ok {
				return
			}
			if counted, ok := secure.NetConn().(*countedConn); ok {
				a.conn, a.readBefore = counted, counted.read.Load()
				a.onConn(counted)
			}
		},
	}
}

// beginWait begins the limit of an attempt over HTTP/2, whose request has left.
func (a *attempt) beginWait() {
	if a.limit == 0 {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.waiting == nil && !a.waited {
		a.waiting = time.AfterFunc(a.limit, func() {
			a.late.Store(true)
			a.cancel()
		})
	}
}

// endWait ends the limit.
func (a *attempt) endWait() {
	if a.limit == 0 {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.waited = true; a.waiting != nil {
		a.waiting.Stop()
	}
}

// wroteNothing reports whether the attempt got a connection, and wrote no byte of
// the request on it.
func (a *attempt) wroteNothing() bool {
	if a.conn == nil {
		return false
	}
	if a.h2 { // other streams write on it too
		return !a.wroteField.Load()
	}
	return a.conn.written.Load() == a.writtenBefore
}

// mayHaveArrived reports whether bytes of the request are on a connection. a may be nil.
func (a *attempt) mayHaveArrived() bool { return a != nil && a.conn != nil && !a.wroteNothing() }

// sawReset reports whether the host reset the connection. a may be nil.
func (a *attempt) sawReset() bool { return a != nil && a.conn != nil && a.conn.reset.Load() }

// wasAsked reports whether the host asked for a certificate of its client. a may be nil.
func (a *attempt) wasAsked() bool { return a != nil && a.conn != nil && a.conn.asked.Load() }

// received returns how many bytes came on the connection since the attempt began.
func (a *attempt) received() int64 {
	if a.conn == nil {
		return 0
	}
	return a.conn.read.Load() - a.readBefore
}
