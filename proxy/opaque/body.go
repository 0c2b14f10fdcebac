package opaque

import (
	"context"
	"errors"
	"io"
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

	head    []byte // read ahead and not returned yet
	err     error  // the error of src after head
	refused error  // the error of judge
	judged  bool
	ahead   chan struct{} // closed when the goroutine of Await has ended; nil: there is none
}

// headSize is the most that is read ahead.
const headSize = 4 << 10

// NewBody returns src with a look at its first bytes. length is the length of
// src, or -1.
func NewBody(src io.ReadCloser, length int64, judge Judge) *Body {
	return &Body{src: src, length: length, judge: judge}
}

// Await reads ahead until the first bytes are judged, at most as long as wait
// and ctx last, and returns the refusal, if there is one. What comes later is
// judged by Read. A failure of src is no refusal: Read returns it.
func (b *Body) Await(ctx context.Context, wait time.Duration) error {
	b.ahead = make(chan struct{})
	go func() { defer close(b.ahead); b.fill() }()
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-b.ahead:
		return b.refused
	case <-timer.C:
	case <-ctx.Done():
	}
	return nil
}

// fill reads until the first bytes are judged, or are white space, which does
// not wait: the judgement is about what comes behind it.
func (b *Body) fill() {
	size := int64(headSize)
	if b.length >= 0 {
		size = min(size, b.length)
	}
	b.head = make([]byte, 0, max(size, 1))
	for tries := 0; !b.judged && !b.leaves(); tries++ {
		n, err := b.src.Read(b.head[len(b.head):cap(b.head)])
		b.head = b.head[:len(b.head)+n]
		if b.err = err; err == nil && n == 0 && tries > 100 {
			b.err = io.ErrNoProgress
		}
		b.look()
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
		format, more = Sniff(b.head, final)
	} else if len(b.head) > 0 {
		more = false
	}
	if b.judged = !more; !b.judged {
		return
	}
	if format != "" {
		b.refused = b.judge(format)
	}
	var refusal *Refusal
	if errors.As(b.err, &refusal) {
		b.refused = b.err
	}
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
			b.head = nil
			return n, b.err
		}
		return n, nil
	}
	if b.err != nil {
		return 0, b.err
	}
	return b.src.Read(p)
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
