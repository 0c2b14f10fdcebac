package wire

import (
	"sync"

	"github.com/ALRubinger/aileron/proxy/budget"
)

const bufferSize = 4 << 10

// buffers are those of the connections that have something to read. An idle
// one has none.
var buffers = sync.Pool{New: func() any { return new([bufferSize]byte) }}

// midSize and largeSize are those of buffers that a head has outgrown the first
// of; the larger holds the largest head that is taken by default, and what shows
// that one is larger.
const (
	midSize   = 16 << 10
	largeSize = 64<<10 + bufferSize
)

var (
	midBuffers   = sync.Pool{New: func() any { return new([midSize]byte) }}
	largeBuffers = sync.Pool{New: func() any { return new([largeSize]byte) }}
)

// buffer returns a buffer of size bytes.
func buffer(size int) []byte {
	switch size {
	case bufferSize:
		return buffers.Get().(*[bufferSize]byte)[:]
	case midSize:
		return midBuffers.Get().(*[midSize]byte)[:]
	case largeSize:
		return largeBuffers.Get().(*[largeSize]byte)[:]
	}
	return make([]byte, size)
}

// recycle returns a buffer to its pool. Nothing may refer to it any more.
func recycle(buf []byte) {
	switch len(buf) {
	case bufferSize:
		buffers.Put((*[bufferSize]byte)(buf))
	case midSize:
		midBuffers.Put((*[midSize]byte)(buf))
	case largeSize:
		largeBuffers.Put((*[largeSize]byte)(buf))
	}
}

// rest gives the buffer back while there is nothing in it.
func (s *source) rest() {
	if s.r == s.w && s.buf != nil {
		recycle(s.buf)
		s.buf, s.r, s.w = nil, 0, 0
		s.hold.Give(s.held)
		s.held = 0
	}
}

// discard drops what was read and not used.
func (s *source) discard() {
	s.r = s.w
	s.rest()
	s.hold.Release()
}

// shrink drops a buffer that is larger than what is left in it needs.
func (s *source) shrink() {
	left := s.buf[s.r:s.w]
	if len(left) == 0 {
		s.rest()
		return
	}
	if len(s.buf) == bufferSize || len(left) > bufferSize {
		return
	}
	small, large := buffer(bufferSize), s.buf
	s.buf, s.r, s.w = small, 0, copy(small, left)
	recycle(large)
	s.hold.Give(s.held - bufferSize)
	s.held = bufferSize
}

// grow makes the buffer larger: soon as large as the largest head is.
func (s *source) grow() error {
	size := max(min(4*len(s.buf), s.most), len(s.buf)+bufferSize)
	more := int64(size - len(s.buf))
	if !s.records {
		more += record
	}
	if !s.hold.Take(more) {
		return budget.ErrShed
	}
	s.records = true
	s.held += int64(size - len(s.buf))
	grown, small := buffer(size), s.buf
	s.w = copy(grown, s.buf[s.r:s.w])
	s.buf, s.r = grown, 0
	recycle(small)
	return nil
}
