package sandbox

import (
	"io/fs"
	"testing"
)

// fullStream is a stream that takes half of what it gets, and fails.
type fullStream struct{}

func (fullStream) Write(p []byte) (int, error) { return len(p) / 2, fs.ErrClosed }

// A caller's stream that takes no more ends the copy with its own error.
func TestAStreamThatRefusesIsNoted(t *testing.T) {
	o := &output{}
	n, err := watchedWriter{o, fullStream{}}.Write([]byte("output"))
	if n != 3 || err != fs.ErrClosed {
		t.Errorf("Write = %d, %v; want 3, %v", n, err, fs.ErrClosed)
	}
	if o.moved.Load() != 3 || !o.refused.Load() || o.writing.Load() != 0 {
		t.Errorf("moved %d, refused %t, writing %d", o.moved.Load(), o.refused.Load(), o.writing.Load())
	}
}
