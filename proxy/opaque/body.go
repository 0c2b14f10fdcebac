package opaque

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"
)

// Judge decides about a recognised format: an error ends the body, nil accepts it.
type Judge func(Format) error

// Body is a body of which nothing is released before its first bytes are judged.
// Read and Await must not be called at the same time.
type Body struct {
	src    io.ReadCloser
	judge  Judge // nil: only what src itself refuses counts
	length int64 // -1: not known
	text   bool  // its type names text
	wide   rhythm

	head    []byte          // read ahead and not returned yet
	buf     *[headSize]byte // what head is a part of; nil: there is none
	err     error           // the error of src after head
	refused error           // the error of judge
	judged  bool
	tries   int           // reads in a row that brought nothing
	ahead   chan struct{} // closed when the goroutine of Await has ended; nil: there is none
}

const (
	headSize      = 4 << 10 // the most that is read ahead
	maxEmptyReads = 100     // how often in a row src may return nothing before it counts as stuck
)

// heads holds the buffers of bodies that have nothing read ahead.
var heads = sync.Pool{New: func() any { return new([headSize]byte) }}

// NewBody returns src with a look at its first bytes. length is the length of
// src, or -1.
func NewBody(src io.ReadCloser, length int64, judge Judge) *Body {
	b := &Body{}
	b.Reset(src, length, judge)
	return b
}

// Reset makes b, which has been closed or never been used, what [NewBody] returns.
func (b *Body) Reset(src io.ReadCloser, length int64, judge Judge) {
	*b = Body{src: src, length: length, judge: judge}
}

// Await reads ahead until the first bytes are judged, at most as long as wait
// and ctx last, and returns the refusal, if there is one. What comes later is
// judged by Read. A failure of src is no refusal: Read returns it.
func (b *Body) Await(ctx context.Context, wait time.Duration) error {
	if src, ok := b.src.(patient); ok {
		return b.await(src, wait)
	}
	ahead := make(chan struct{})
	b.ahead = ahead
	go func() { defer close(ahead); b.fill() }()
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-ahead:
		return b.refused
	case <-timer.C:
	case <-ctx.Done():
	}
	return nil
}

// patient is a source whose reader can wait for it with a bound: Buffered is how
// many bytes Read returns without waiting, and WaitData reports whether Read
// returns without waiting at some time before until. Both end with the exchange.
type patient interface {
	Buffered() int
	WaitData(until time.Time) bool
}

// await is Await without a goroutine.
func (b *Body) await(src patient, wait time.Duration) error {
	for until := (time.Time{}); !b.filled(); b.readAhead() {
		if src.Buffered() > 0 {
			continue
		}
		if until.IsZero() {
			until = time.Now().Add(wait)
		}
		if !src.WaitData(until) {
			return nil
		}
	}
	return b.refused
}

// fill reads until the first bytes are judged, or are white space, which does
// not wait: the judgement is about what comes behind it.
func (b *Body) fill() {
	for !b.filled() {
		b.readAhead()
	}
}

// filled reports that nothing needs to be read ahead any more.
func (b *Body) filled() bool { return b.judged || b.leaves() }

// readAhead reads src once, and judges what has come.
func (b *Body) readAhead() {
	if b.buf == nil {
		size := int64(headSize)
		if b.length >= 0 {
			size = min(size, b.length)
		}
		b.buf = heads.Get().(*[headSize]byte)
		b.head = b.buf[:0:max(size, 1)]
	}
	n, err := b.src.Read(b.head[len(b.head):cap(b.head)])
	b.head = b.head[:len(b.head)+n]
	if b.tries++; n > 0 {
		b.tries = 0
	}
	if b.err = err; err == nil && b.tries > maxEmptyReads {
		b.err = io.ErrNoProgress
	}
	b.look()
}

// free returns the buffer of head, which is not referred to any more. Bytes of a
// response, which may contain a secret, do not stay in it.
func (b *Body) free() {
	b.head = nil
	if b.buf != nil {
		clear(b.buf[:])
		heads.Put(b.buf)
		b.buf = nil
	}
}

// leaves reports that what was read ahead may leave before it is judged.
func (b *Body) leaves() bool {
	return b.judge != nil && len(b.head) > 0 && blank(b.head) == len(b.head)
}

// look judges what has come.
func (b *Body) look() {
	if b.leaves() && b.err == nil && int64(len(b.head)) != b.length {
		return
	}
	final := b.err != nil || len(b.head) == cap(b.head) || int64(len(b.head)) == b.length
	format, more := Format(""), !final
	if b.judge != nil {
		if format, more = Sniff(b.head, final); format == "" && !more && b.text {
			format, more = b.asText(final)
		}
	} else if len(b.head) > 0 {
		more = false
	}
	if b.judged = !more; !b.judged {
		return
	}
	if format != "" {
		b.refused = b.judge(format)
	}
	if isRefusal(b.err) {
		b.refused = b.err
	}
}

// asText is Sniff for what should be text.
func (b *Body) asText(final bool) (f Format, more bool) {
	b.wide = rhythm{}
	if f = b.wide.look(b.head); f != "" {
		return f, false
	}
	is, more := noText(b.head, final)
	if is {
		f = Binary
	}
	return f, more
}

func isRefusal(err error) bool {
	if err == nil || err == io.EOF { // errors.As allocates
		return false
	}
	var refusal *Refusal
	return errors.As(err, &refusal)
}

// Read implements io.Reader.
func (b *Body) Read(p []byte) (int, error) {
	if b.ahead != nil {
		<-b.ahead
		b.ahead = nil
	}
	if !b.judged && len(b.head) == 0 {
		b.fill()
	}
	if b.refused != nil {
		return 0, b.refused
	}
	if len(b.head) > 0 {
		n := copy(p, b.head)
		if b.length > 0 {
			b.length -= int64(n)
		}
		if b.head = b.head[n:]; len(b.head) == 0 {
			b.free()
			return n, b.err
		}
		return n, nil
	}
	if b.err != nil {
		return 0, b.err
	}
	n, err := b.src.Read(p)
	if b.text && b.judge != nil {
		if format := b.wide.look(p[:n]); format != "" {
			if b.refused = b.judge(format); b.refused != nil {
				return 0, b.refused
			}
		}
	}
	return n, err
}

// Close closes src and waits for what reads ahead.
func (b *Body) Close() error {
	err := b.src.Close()
	if b.ahead != nil {
		<-b.ahead
	}
	return err
}

// Refusal marks the error by which [Parts] and [Messages] end a body, so that
// [Body.Await] returns it while the response can still be refused.
type Refusal struct{ Err error }

func (r *Refusal) Error() string { return r.Err.Error() }

// Unwrap returns what the judge returned.
func (r *Refusal) Unwrap() error { return r.Err }
