package websocket

import (
	"crypto/rand"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/ALRubinger/aileron/proxy/budget"
)

// Scanner redacts one message, in pieces. The results of Write and Flush are
// valid until the next call.
type Scanner interface {
	Write(piece []byte) []byte
	Flush() []byte
	Hits() int
}

// Relay is one upgraded connection.
type Relay struct {
	Client, Upstream io.ReadWriteCloser
	// NewScanner returns the scanner of one upstream message; nil redacts nothing.
	NewScanner func() Scanner
	// Record, if it is not nil, gets each piece of a message: of the client as it sent it, or as the client gets it. op is
	// the opcode of its frame. The two directions call it at the same time.
	Record func(byClient bool, op byte, piece []byte, end bool)
	// Pace is the time within which another KiB must come of a frame of the client that has begun, or its end; 0: any.
	// Between frames it may be silent.
	Pace time.Duration
	// ToClient and ToUpstream are the memory that each direction holds; nil: none
	// is counted.
	ToClient, ToUpstream *budget.Hold

	// After Run: the payload bytes of each direction, and the hits.
	Sent, Received int64
	Hits           int

	toClient, toUpstream sync.Mutex
	once                 sync.Once
}

const (
	piece = 16 << 10
	ahead = 4 << 10 // read ahead of a frame: its head, and a small payload
	room  = 14      // for a frame's head
)

// IdleMemory and MovingMemory are the bytes that a relay takes of its holds: while
// nothing is in transit, and for a piece that the client has not accepted.
const (
	IdleMemory   = 24 << 10
	MovingMemory = 72 << 10
)

// buffers are for frames in transit. A relay has none while it waits for a frame.
var buffers = sync.Pool{New: func() any { return new([room + piece]byte) }}

// Run relays until one side ends, breaks the protocol or End is called, and
// closes both. It returns the protocol violation that ended it, if there was one.
func (r *Relay) Run() error {
	var up error
	done := make(chan struct{})
	go func() {
		defer close(done)
		up = r.outward()
		r.finish(up)
	}()
	down := r.inward()
	r.finish(down)
	<-done
	for _, err := range []error{up, down} {
		var v violation
		if errors.As(err, &v) {
			return err
		}
	}
	return nil
}

// End closes both sides with a close frame of the status code.
func (r *Relay) End(code int) {
	r.once.Do(func() {
		// A side that does not read must not keep the other from its end.
		for _, side := range []any{r.Client, r.Upstream} {
			if conn, ok := side.(interface{ SetWriteDeadline(t time.Time) error }); ok {
				_ = conn.SetWriteDeadline(time.Now().Add(time.Second))
			}
		}
		late := time.AfterFunc(2*time.Second, func() { _ = r.Client.Close(); _ = r.Upstream.Close() })
		defer late.Stop()
		payload := func() []byte { return []byte{byte(code >> 8), byte(code)} }
		h := header{fin: true, op: opClose, length: 2}
		r.writeControl(&r.toClient, r.Client, h, payload())
		h.masked, h.mask = true, newMask()
		r.writeControl(&r.toUpstream, r.Upstream, h, payload())
		_ = r.Client.Close()
		_ = r.Upstream.Close()
	})
}

func (r *Relay) finish(err error) {
	var v violation
	if errors.As(err, &v) {
		r.End(v.code)
		return
	}
	r.once.Do(func() {
		_ = r.Client.Close()
		_ = r.Upstream.Close()
	})
}

// writeControl writes one small frame between others, unless a large one is in
// transit to a side that does not read.
func (r *Relay) writeControl(turn *sync.Mutex, to io.Writer, h header, payload []byte) {
	if !turn.TryLock() {
		return
	}
	defer turn.Unlock()
	if h.masked {
		apply(h.mask, payload, 0)
	}
	_, _ = to.Write(append(h.append(nil), payload...))
}

// record records a piece of a message.
func (r *Relay) record(byClient bool, op byte, piece []byte, end bool) {
	if r.Record != nil {
		r.Record(byClient, op, piece, end)
	}
}

func newMask() (mask [4]byte) {
	_, _ = rand.Read(mask[:])
	return mask
}

// unexpected returns err, and io.ErrUnexpectedEOF for io.EOF: the stream ended inside a frame.
func unexpected(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}
