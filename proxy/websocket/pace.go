package websocket

import (
	"errors"
	"io"
	"os"
	"time"
)

// ErrSlow is returned by [Relay.Run] when a frame of the client, once begun, came too slowly.
var ErrSlow error = violation{PolicyEnded, "a frame comes too slowly"}

// minProgress is how many bytes of a frame must come in Relay.Pace: as many as of a request's body.
const minProgress = 1 << 10

// paced reads from the client, which may be silent between frames and not inside of one: a hostile one would otherwise
// hold the upstream's connection, and the turn of both, by a byte now and then.
type paced struct {
	client io.Reader
	span   time.Duration // 0: any pace will do

	inFrame bool          // the first byte of a frame has come and the last has not
	left    time.Duration // to wait for the client, in this span
	bytes   int           // still required in it
}

// begin is for the first byte of a frame, and end for its last.
func (p *paced) begin() { p.inFrame, p.left, p.bytes = true, p.span, minProgress }
func (p *paced) end()   { p.inFrame = false }

// Read counts the time that it waits for the client alone: an upstream that does not take the frame holds it up too.
func (p *paced) Read(b []byte) (int, error) {
	conn, ok := p.client.(interface{ SetReadDeadline(t time.Time) error })
	if !p.inFrame || !ok || p.span == 0 {
		return p.client.Read(b)
	}
	began := time.Now()
	_ = conn.SetReadDeadline(began.Add(p.left))
	n, err := p.client.Read(b)
	_ = conn.SetReadDeadline(time.Time{})
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return n, ErrSlow
	}
	if p.left, p.bytes = p.left-time.Since(began), p.bytes-n; p.bytes <= 0 {
		p.left, p.bytes = p.span, minProgress
	}
	return n, err
}
