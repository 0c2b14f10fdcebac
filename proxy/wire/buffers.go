package wire

import (
	"sync"

	"github.com/ALRubinger/aileron/proxy/budget"
)

const bufferSize = 4 << 10

// buffers holds those of connections that have something to read. An idle
// connection has none.
var buffers = sync.Pool{New: func() any { return new([bufferSize]byte) }}

// midSize and largeSize are the sizes of buffers for heads that do not fit into
// bufferSize. The larger one holds the largest head that is accepted by default,
// and enough more to detect one that is larger.
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

// freeEmpty returns the buffer to its pool while it is empty.
func (s *connReader) freeEmpty() {
	if s.r == s.w && s.buf != nil {
		recycle(s.buf)
		s.buf, s.r, s.w = nil, 0, 0
		s.hold.Give(s.held)
		s.held = 0
	}
}

// discard drops what was read but not consumed.
func (s *connReader) discard() {
	s.r = s.w
	s.freeEmpty()
	s.hold.Release()
}

// shrink replaces a buffer that is larger than its unread bytes need.
func (s *connReader) shrink() {
	left := s.buf[s.r:s.w]
	if len(left) == 0 {
		s.freeEmpty()
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

// grow enlarges the buffer, in few steps up to the size of the largest head.
func (s *connReader) grow() error {
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
