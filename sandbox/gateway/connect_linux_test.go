package gateway

import (
	"bytes"
	"io"
	"net"
	"strings"
	"testing"
)

// Whatever arrives from the proxy's socket, in whatever pieces, connect accepts
// nothing but a whole head with the status 200, and loses no byte after it.
func FuzzConnect(f *testing.F) {
	f.Add([]byte("HTTP/1.1 200 OK\r\n\r\nrest"), uint8(1))
	f.Add([]byte("HTTP/1.1 403 Forbidden\r\n\r\n"), uint8(3))
	f.Add([]byte("HTTP/1.1 200\r\n\r\n\r\n\r\n"), uint8(200))
	f.Add([]byte("HTTP/1.1 200 OK\r\n"+strings.Repeat("X: y\r\n", 900)+"\r\n"), uint8(255))
	f.Fuzz(func(t *testing.T, said []byte, piece uint8) {
		ours, theirs := net.Pipe()
		go func() {
			defer theirs.Close()
			request := make([]byte, len("CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\n\r\n"))
			if _, err := io.ReadFull(theirs, request); err != nil {
				return
			}
			for left := said; len(left) > 0; {
				n := min(len(left), int(piece)+1)
				if _, err := theirs.Write(left[:n]); err != nil {
					return
				}
				left = left[n:]
			}
		}()
		rest, ok := connect(ours, "a:1")
		head, after, whole := bytes.Cut(said, []byte("\r\n\r\n"))
		if !ok {
			if whole && isOK(head) && len(head) < maxHead/2 {
				t.Errorf("%q was refused", said)
			}
			_ = ours.Close()
			return
		}
		more, err := io.ReadAll(ours)
		if got := append(rest, more...); !whole || !isOK(head) || err != nil || !bytes.Equal(got, after) {
			t.Errorf("%q gave the rest %q, %v, want %q", said, got, err, after)
		}
	})
}
