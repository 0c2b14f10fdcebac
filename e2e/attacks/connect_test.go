package attacks

import (
	"bytes"
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/ALRubinger/aileron/e2e/harness"
	"github.com/ALRubinger/aileron/e2e/must"
)

// con: what may come in a tunnel, or instead of one.
func con() category {
	return category{name: "CON", cases: join(written("tunnels"), []attack{
		{id: "CON-04", does: "a ClientHello in pieces, or of an absurd size", run: conHello},
		{id: "CON-05", does: "versions and ciphers of before TLS 1.2", run: conOld},
		{id: "CON-08", does: "early data and renegotiation", run: conReplay},
		{id: "CON-09", does: "a client that half-closes gets its response", run: conHalfClosed},
		{id: "CON-13", does: "the way by which the bytes came changes no decision", run: conRelay},
	})}
}

// violates fails the case unless its row is this refusal, and nothing was
// sent.
func (c *testCase) violates(want refusal) {
	c.untouched()
	c.rowSays("the connection", want)
}

// splitter writes the first flight in pieces.
type splitter struct {
	net.Conn
	once  sync.Once
	split func(hello []byte) [][]byte
}

func (s *splitter) Write(p []byte) (int, error) {
	var err error
	first := false
	s.once.Do(func() {
		first = true
		for _, piece := range s.split(p) {
			if _, err = s.Conn.Write(piece); err != nil {
				return
			}
			<-time.After(2 * time.Millisecond) // so that each is a packet of its own
		}
	})
	if first {
		return len(p), err
	}
	return s.Conn.Write(p)
}

func conHello(c *testCase) {
	wide := func(size int) []string {
		protocols := []string{"http/1.1"}
		for n := 0; n < size; n += 250 {
			protocols = append(protocols, fmt.Sprintf("%05d", n)+strings.Repeat("p", 244))
		}
		return protocols
	}
	c.each("64 KiB", func(c *testCase) {
		l, a := c.connect("api.good.test")
		c.is("CONNECT", a, 200)
		c.rows++
		hello := append([]byte{1, 1, 0, 16}, make([]byte, 0x10010)...)
		raw := ""
		for len(hello) > 0 {
			n := min(len(hello), 16<<10)
			raw, hello = raw+"\x16\x03\x01"+string([]byte{byte(n >> 8), byte(n)})+string(hello[:n]), hello[n:]
		}
		c.say(l, raw)
		c.violates(handshakeFailed)
	})
	for name, h := range map[string]struct {
		protocols []string
		split     func([]byte) [][]byte
	}{
		"twenty packets": {nil, func(p []byte) [][]byte {
			var parts [][]byte
			for len(p) > 0 {
				n := min(len(p), 1+len(p)/20)
				parts, p = append(parts, p[:n]), p[n:]
			}
			return parts
		}},
		"three records": {nil, func(p []byte) [][]byte {
			var parts [][]byte
			for body := p[5:]; len(body) > 0; {
				n := min(len(body), (len(p)-5+2)/3)
				record := binary.BigEndian.AppendUint16(bytes.Clone(p[:3]), uint16(n))
				parts, body = append(parts, append(record, body[:n]...)), body[n:]
			}
			return parts
		}},
		"16 KiB": {wide(15 << 10), nil},
	} {
		c.each(name, func(c *testCase) {
			l, a := c.connect("api.good.test")
			c.is("CONNECT", a, 200)
			split := h.split
			if split == nil {
				split = func(p []byte) [][]byte { return [][]byte{p} }
			}
			conn := tls.Client(&splitter{Conn: l, split: split},
				&tls.Config{ServerName: "api.good.test", RootCAs: c.s.roots,
					NextProtos: append([]string{"http/1.1"}, h.protocols...), MinVersion: tls.VersionTLS12})
			err := conn.Handshake()
			c.rows++
			if err != nil {
				c.failf("the handshake: %v", err)
				return
			}
			in := &line{Conn: conn}
			c.lines = append(c.lines, in)
			c.is("the request", c.say(in, head("GET", "api.good.test", "/v1/items"), "GET")[0], 200)
		})
	}
}

func conOld(c *testCase) {
	for name, cfg := range map[string]*tls.Config{
		"TLS 1.0": {MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS10},
		"TLS 1.1": {MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11},
		"RC4": {MaxVersion: tls.VersionTLS12,
			CipherSuites: []uint16{tls.TLS_RSA_WITH_RC4_128_SHA, tls.TLS_ECDHE_RSA_WITH_RC4_128_SHA,
				tls.TLS_ECDHE_ECDSA_WITH_RC4_128_SHA}},
		"3DES": {MaxVersion: tls.VersionTLS12,
			CipherSuites: []uint16{tls.TLS_RSA_WITH_3DES_EDE_CBC_SHA, tls.TLS_ECDHE_RSA_WITH_3DES_EDE_CBC_SHA}},
	} {
		c.each(name, func(c *testCase) {
			l, a := c.connect("api.good.test")
			c.is("CONNECT", a, 200)
			cfg.ServerName = "api.good.test"
			c.rows++
			if _, err := c.secure(l, cfg); err == nil {
				c.failf("the handshake was taken")
			}
			_ = l.Close()
			c.violates(handshakeFailed)
		})
	}
	for name, suites := range map[string]string{"SSLv3": "", "NULL": "\x00\x02\x00\x01", "export": "\x00\x03\x00\x08"} {
		c.each(name, func(c *testCase) {
			version := "\x03\x03"
			if suites == "" {
				version, suites = "\x03\x00", "\x00\x2f\x00\x35"
			}
			body := version + strings.Repeat("r", 32) + "\x00" + "\x00" + string(rune(len(suites))) + suites + "\x01\x00"
			hello := "\x01\x00\x00" + string(rune(len(body))) + body
			l, a := c.connect("api.good.test")
			c.is("CONNECT", a, 200)
			c.rows++
			c.say(l, "\x16\x03\x00\x00"+string(rune(len(hello)))+hello)
			if got := l.received(); bytes.Contains(got, []byte("\x16\x03")) {
				c.failf("the server went on: %x", got)
			}
			c.violates(handshakeFailed)
		})
	}
}

func conReplay(c *testCase) {
	c.each("early data", func(c *testCase) {
		tickets := &oneTicket{}
		l, a := c.connect("api.good.test")
		c.is("CONNECT", a, 200)
		in, err := c.secure(l, &tls.Config{ServerName: "api.good.test", ClientSessionCache: tickets,
			MinVersion: tls.VersionTLS13})
		c.must(err)
		c.rows++
		c.is("the request", c.say(in, head("GET", "api.good.test", "/v1/items"), "GET")[0], 200)
		if tickets.session == nil {
			c.failf("there is no ticket to look at")
			return
		}
		_, state, err := tickets.session.ResumptionState()
		c.must(err)
		if state.EarlyData {
			c.failf("the ticket allows early data")
		}
	})
	if !harness.Has(c.t, "openssl") {
		c.t.Log("openssl is not here to ask for a renegotiation")
		return
	}
	c.each("renegotiation", func(c *testCase) {
		root := filepath.Join(on.dir, "session.pem")
		c.must(os.WriteFile(root, c.s.plane.ca.RootPEM(), 0o600))
		cmd := exec.Command("openssl", "s_client", "-proxy", c.s.addr, "-proxy_user", "s", "-proxy_pass", "pass:"+c.s.token,
			"-connect", "api.good.test:443", "-servername", "api.good.test", "-CAfile", root, "-tls1_2")
		in, err := cmd.StdinPipe()
		c.must(err)
		var out must.Output
		cmd.Stdout, cmd.Stderr = &out, &out
		c.must(cmd.Start())
		killed := time.AfterFunc(c.s.patience, func() { _ = cmd.Process.Kill() })
		_, _ = io.WriteString(in, "R\n")
		_ = cmd.Wait() // it ends by itself when the server refuses
		killed.Stop()
		_ = in.Close()
		c.rows = -1
		c.plain(out.String())
		if text := out.String(); !strings.Contains(text, "RENEGOTIATING") ||
			!strings.Contains(text, "renegotiation") && !strings.Contains(text, "alert") && !strings.Contains(text, "error") {
			c.failf("openssl says %s", text)
		}
	})
}

// conRelay asks through a relay what was asked directly.
func conRelay(c *testCase) {
	relay, err := net.Listen("tcp", "127.0.0.1:0")
	c.must(err)
	defer relay.Close()
	target := c.s.addr
	go func() {
		for {
			in, err := relay.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", target)
			if err != nil {
				_ = in.Close()
				continue
			}
			go func() { _, _ = io.Copy(out, in); _ = out.(*net.TCPConn).CloseWrite() }()
			go func() { _, _ = io.Copy(in, out); _ = in.Close(); _ = out.Close() }()
		}
	}()
	for name, ask := range map[string]func(c *testCase) answer{
		"allowed": func(c *testCase) answer { return c.get("api.good.test", "/v1/items") },
		"denied":  func(c *testCase) answer { return c.get("api.good.test", "/admin") },
		"no host": func(c *testCase) answer { return c.get("evil.test", "/") },
		"no token": func(c *testCase) answer {
			return c.fwd("CONNECT api.good.test:443 HTTP/1.1\r\nHost: api.good.test:443\r\n\r\n")
		},
	} {
		c.each(name, func(c *testCase) {
			direct := ask(c)
			through := *c.s
			through.addr = relay.Addr().String()
			mine := c.s
			c.reaches = func(d dial) bool { return d.to.String() == through.addr || d.to.String() == target }
			c.s = &through
			relayed := ask(c)
			c.s = mine
			if direct.status != relayed.status || direct.reason != relayed.reason {
				c.failf("directly %s, through a relay %s", direct, relayed)
			}
		})
	}
}
