package sweep

import (
	"bufio"
	"crypto/sha1" // RFC 6455 wants it
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// live opens a WebSocket, and sends and reads a message.
func (s *session) live(host string, want int) {
	s.p.t.Helper()
	c := s.p.canary
	conn := s.tunnel(host+".sweep.test", s.decrypted())
	defer conn.Close()
	fmt.Fprintf(conn, "GET /v1/live?q=%s HTTP/1.1\r\nHost: %s.sweep.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"+
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nCookie: c=%s\r\nX-Sweep: %s\r\n\r\n",
		c.text("a query"), host, c.text("a request cookie"), c.text("a request field"))
	r := bufio.NewReader(conn)
	res, err := http.ReadResponse(r, nil)
	if err != nil || res.StatusCode != want {
		s.p.t.Errorf("a WebSocket to %s: %v, %v", host, res, err)
		return
	}
	defer res.Body.Close()
	if text, err := readFrame(r); err != nil || !strings.Contains(text, c.text("a WebSocket message")) {
		s.p.t.Errorf("a WebSocket to %s sends %q, %v", host, text, err)
	}
	_, _ = conn.Write(masked(frame(1, c.text("a WebSocket message"))))
	_, _ = readFrame(r)
	_, _ = conn.Write(masked(frame(8, "\x03\xe8"+c.text("a WebSocket message"))))
	_, _ = io.Copy(io.Discard, r)
}

// accept answers the key of a WebSocket's handshake (RFC 6455, section 4.2.2).
func accept(key string) string {
	sum := sha1.Sum([]byte(key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
	return base64.StdEncoding.EncodeToString(sum[:])
}

// frame returns a frame of a WebSocket, as a server sends it.
func frame(opcode byte, text string) []byte {
	if len(text) > 125 {
		return append(binary.BigEndian.AppendUint16([]byte{0x80 | opcode, 126}, uint16(len(text))), text...)
	}
	return append([]byte{0x80 | opcode, byte(len(text))}, text...)
}

// masked returns a short frame as a client sends it, with a mask of zeros.
func masked(f []byte) []byte {
	return append([]byte{f[0], f[1] | 0x80, 0, 0, 0, 0}, f[2:]...)
}

// readFrame reads a frame, and returns its text if it has no mask.
func readFrame(r *bufio.Reader) (string, error) {
	var head [2]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return "", err
	}
	size := int(head[1] & 0x7f)
	if size == 126 {
		var long [2]byte
		if _, err := io.ReadFull(r, long[:]); err != nil {
			return "", err
		}
		size = int(binary.BigEndian.Uint16(long[:]))
	}
	if head[1]&0x80 != 0 {
		size += 4
	}
	text := make([]byte, size)
	_, err := io.ReadFull(r, text)
	return string(text), err
}
