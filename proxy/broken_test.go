package proxy

import (
	"bytes"
	"crypto/tls"
	"io"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/ALRubinger/aileron/e2e/must"
)

// reset ends a connection with a RST.
func reset(c net.Conn) {
	below := c.(*tls.Conn).NetConn()
	_ = below.(*net.TCPConn).SetLinger(0)
	_ = below.Close()
}

// end ends a connection, and reads what comes until its peer does.
func end(c net.Conn) {
	_ = c.(*tls.Conn).CloseWrite()
	_, _ = io.Copy(io.Discard, c)
}

// denied fails unless a GET and an upload are denied for this reason, in the
// response and in the row.
func (w *world) denied(status int, why Reason) {
	w.t.Helper()
	for method, body := range map[string]string{"GET": "", "POST": strings.Repeat("a body ", 1000)} {
		res, got := w.do(method, "https://api.good.example/v1/items", body)
		class := map[int]string{403: "network_error", 502: "network_error", 504: "timeout"}[status]
		if c, r := reason(w.t, got); res.StatusCode != status || c != class || r != why {
			w.t.Errorf("%s: got %d %s %s, want %d %s", method, res.StatusCode, c, r, status, why)
		}
		if row := w.last(); Reason(row.Reason) != why || row.Status != status {
			w.t.Errorf("%s: the row has the reason %q and the status %d, want %q", method, row.Reason, row.Status, why)
		}
	}
}

func TestWhatAnUpstreamDidInsteadOfRespondingIsNamed(t *testing.T) {
	write := func(s string) func(net.Conn) {
		return func(c net.Conn) { _, _ = io.WriteString(c, s); _ = c.Close() }
	}
	for name, c := range map[string]struct {
		say    func(net.Conn)
		status int
		reason Reason
	}{
		"SSH":           {write("SSH-2.0-OpenSSH_9.2\r\n"), 502, ReasonUpstreamHTTP},
		"bytes":         {write("\x00\x01\xff\xfe\x16\x03"), 502, ReasonUpstreamHTTP},
		"HTTP/2 to all": {write("\x00\x00\x00\x04\x00\x00\x00\x00\x00"), 502, ReasonUpstreamHTTP},
		"HTTP/0.9":      {write("<html>hello</html>"), 502, ReasonUpstreamHTTP},
		"no status":     {write("HTTP/1.1 fine\r\n\r\n"), 502, ReasonUpstreamHTTP},
		"a field of 400 KB": {write("HTTP/1.1 200 OK\r\nX-Long: " + strings.Repeat("0123456789", 40<<10)), 502,
			ReasonUpstreamHead},
		"fields without end": {func(c net.Conn) {
			_, err := io.WriteString(c, "HTTP/1.1 200 OK\r\n")
			for i := byte(0); err == nil; i++ {
				_, err = io.WriteString(c, "X-"+string('a'+rune(i%26))+": "+strings.Repeat("more", int(i)+1)+"\r\n")
			}
		}, 502, ReasonUpstreamHead},
		"interim responses without end": {func(c net.Conn) {
			for err := error(nil); err == nil; {
				_, err = io.WriteString(c, "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n")
			}
		}, 502, ReasonUpstreamHead},
		"a head that stands still": {func(c net.Conn) {
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nX-Slow: ")
			_, _ = c.Read(make([]byte, 1))
		}, 504, ReasonUpstreamSlow},
		"nothing":               {func(c net.Conn) { _, _ = c.Read(make([]byte, 1)) }, 504, ReasonTimeout},
		"the end":               {func(c net.Conn) { _ = c.Close() }, 502, ReasonUpstreamEnd},
		"the end inside a head": {write("HTTP/1.1 200 OK\r\nContent-Le"), 502, ReasonUpstreamEnd},
		"a reset":               {reset, 502, ReasonUpstreamRST},
		"a reset inside a head": {func(c net.Conn) { _, _ = io.WriteString(c, "HTTP/1.1 200 O"); reset(c) }, 502,
			ReasonUpstreamRST},
	} {
		t.Run(name, func(t *testing.T) {
			w, _ := speak(t, func(cfg *Config) {
				switch c.reason {
				case ReasonTimeout:
					cfg.Upstream.ResponseHeader = 300 * time.Millisecond
				case ReasonUpstreamSlow: // the beginning of the head has come before
					cfg.Upstream.ResponseHeader = 3 * time.Second
				}
			}, func(conn net.Conn, _ string) { c.say(conn) })
			w.denied(c.status, c.reason)
		})
	}
}

// blockOf is a field section of a response.
func blockOf(fields ...string) []byte {
	var b bytes.Buffer
	enc := hpack.NewEncoder(&b)
	for i := 0; i+1 < len(fields); i += 2 {
		_ = enc.WriteField(hpack.HeaderField{Name: fields[i], Value: fields[i+1]})
	}
	return b.Bytes()
}

func TestWhatAnUpstreamOfHTTP2DidInsteadOfRespondingIsNamed(t *testing.T) {
	respond := func(fr *http2.Framer, id uint32, block []byte) {
		part := block[:min(len(block), 16<<10)]
		_ = fr.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: part, EndHeaders: len(part) == len(block)})
		for block = block[len(part):]; len(block) > 0; block = block[len(part):] {
			part = block[:min(len(block), 16<<10)]
			_ = fr.WriteContinuation(id, len(part) == len(block), part)
		}
	}
	repeated := []string{":status", "200"}
	for range 200 { // each is one byte of the block behind the first, and 2 KiB of the list
		repeated = append(repeated, "x-repeated", strings.Repeat("again", 400))
	}
	varied := []string{":status", "200"}
	for i := range 400 {
		varied = append(varied, "x-varied", strings.Repeat(string(rune('!'+i%90))+"{}~^", 200))
	}
	for name, c := range map[string]struct {
		say    func(c net.Conn, fr *http2.Framer, id uint32)
		reason Reason
	}{
		"HTTP/1.1": {func(c net.Conn, _ *http2.Framer, _ uint32) {
			_, _ = io.WriteString(c, "HTTP/1.1 400 Bad Request\r\n\r\n")
		}, ReasonUpstreamHTTP},
		"bytes": {func(c net.Conn, _ *http2.Framer, _ uint32) {
			_,
				_ = io.WriteString(c, "\x7f\xff\xff garbage")
		}, ReasonUpstreamHTTP},
		"a frame of no stream": {func(_ net.Conn, fr *http2.Framer,
			_ uint32) {
			_ = fr.WriteRawFrame(http2.FrameData, 0, 0, []byte("x"))
		}, ReasonUpstreamHTTP},
		"a section of no HPACK": {func(_ net.Conn, fr *http2.Framer,
			id uint32) {
			respond(fr, id, []byte("\xff\xff\xff\xff\xff\xff"))
		}, ReasonUpstreamHTTP},
		"no status": {func(_ net.Conn, fr *http2.Framer, id uint32) { respond(fr, id, blockOf("x-a", "b")) },
			ReasonUpstreamHTTP},
		"a name in upper case": {func(_ net.Conn, fr *http2.Framer,
			id uint32) {
			respond(fr, id, blockOf(":status", "200", "X-A", "b"))
		}, ReasonUpstreamHTTP},
		"a list that is too long": {func(_ net.Conn, fr *http2.Framer, id uint32) { respond(fr, id, blockOf(repeated...)) },
			ReasonUpstreamHead},
		"a head without end": {func(_ net.Conn, fr *http2.Framer, id uint32) { respond(fr, id, blockOf(varied...)) },
			ReasonUpstreamHead},
		"interim responses without end": {func(_ net.Conn, fr *http2.Framer, id uint32) {
			for range 5000 {
				_ = fr.WriteHeaders(http2.HeadersFrameParam{StreamID: id,
					BlockFragment: blockOf(":status", "103", "link", "</x>"), EndHeaders: true})
			}
		}, ReasonUpstreamHead},
		"the end": {func(c net.Conn, _ *http2.Framer, _ uint32) { end(c) }, ReasonUpstreamEnd},
		"the end in a frame": {func(c net.Conn, _ *http2.Framer, _ uint32) {
			_, _ = io.WriteString(c, "\x00\x00\x10\x01\x04")
			end(c)
		}, ReasonUpstreamEnd},
		"a reset": {func(c net.Conn, _ *http2.Framer, _ uint32) { reset(c) }, ReasonUpstreamRST},
		"a reset of the stream": {func(_ net.Conn, fr *http2.Framer,
			id uint32) {
			_ = fr.WriteRSTStream(id, http2.ErrCodeInternal)
		}, ReasonUpstreamRST},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorldWith(t, true, scripted(t, "h2", func(_ int, conn *tls.Conn) {
				h2Heads(conn, func(fr *http2.Framer, id uint32) bool {
					c.say(conn, fr, id)
					return true
				})
			}), nil)
			w.client = w.h2client()
			w.denied(502, c.reason)
		})
	}
}

func TestAnUpstreamThatSpeaksNoTLSIsNamed(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must.Do(t, err)
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(c, "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
			_ = c.(*net.TCPConn).CloseWrite()
			_, _ = io.Copy(io.Discard, c)
			_ = c.Close()
		}
	}()
	w := newWorldWith(t, false, func(c *Config) {
		c.Upstream.Resolve["api.good.example:443"] = netip.MustParseAddrPort(l.Addr().String())
	}, nil)
	w.denied(403, ReasonTLSUpstream)
	if _, body := w.do("GET", "https://api.good.example/v1/items", ""); !strings.Contains(body, "does not speak TLS") {
		t.Errorf("the message is %s", body)
	}
}
