package gateway

import (
	"bytes"
	"io"
	"net"
	"time"
)

// maxHead bounds the proxy's response to a CONNECT.
const maxHead = 4096

// connect sends the proxy a CONNECT for target. It reports whether the proxy
// accepted it, and returns what followed the head of its response.
func connect(proxy net.Conn, target string) (rest []byte, ok bool) {
	_ = proxy.SetDeadline(time.Now().Add(connectTimeout))
	if _, err := io.WriteString(proxy, "CONNECT "+target+" HTTP/1.1\r\nHost: "+target+"\r\n\r\n"); err != nil {
		return nil, false
	}
	head := make([]byte, 0, 512)
	for {
		if len(head) == cap(head) {
			if len(head) >= maxHead {
				return nil, false
			}
			head = append(make([]byte, 0, 2*cap(head)), head...)
		}
		n, err := proxy.Read(head[len(head):cap(head)])
		head = head[:len(head)+n]
		if end := bytes.Index(head, []byte("\r\n\r\n")); end >= 0 {
			_ = proxy.SetDeadline(time.Time{})
			return head[end+4:], isOK(head[:end])
		}
		if err != nil {
			return nil, false
		}
	}
}

// isOK reports whether a head begins with the status 200.
func isOK(head []byte) bool {
	rest, ok := bytes.CutPrefix(head, []byte("HTTP/1.1 200"))
	return ok && (len(rest) == 0 || rest[0] == ' ' || rest[0] == '\r')
}
