package proxy

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"testing"
)

// Over TLS the record layer shows what a host sent unasked; in clear nothing
// but the socket does.
func TestWhatComesUnaskedInClearIsNoResponse(t *testing.T) {
	for name, unasked := range map[string]string{
		"a response": "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil",
		"a byte":     "x",
		"the end":    "",
	} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		must(t, err)
		tell, did := make(chan struct{}), make(chan struct{})
		go func() {
			for n := 0; ; n++ {
				c, err := l.Accept()
				if err != nil {
					return
				}
				go func() {
					defer c.Close()
					br := bufio.NewReader(c)
					for {
						if _, err := http.ReadRequest(br); err != nil {
							return
						}
						_, _ = fmt.Fprint(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
						if n == 0 {
							<-tell
							_, _ = io.WriteString(c, unasked)
							if unasked == "" {
								_ = c.Close()
							}
							close(did)
							_, _ = io.Copy(io.Discard, br) // nothing more is said on it
							return
						}
					}
				}()
			}
		}()
		w := newWorldWith(t, false, func(c *Config) {
			c.Upstream.Resolve["plain.good.example:80"] = netip.MustParseAddrPort(l.Addr().String())
		}, hello)
		for i := range 2 {
			if res, body := w.do("GET", "http://plain.good.example/", ""); res.StatusCode != http.StatusOK || body != "ok" {
				t.Errorf("%s: response %d is %d %q", name, i+1, res.StatusCode, body)
			}
			if i == 0 {
				close(tell)
				<-did
			}
		}
		_ = l.Close()
	}
}
