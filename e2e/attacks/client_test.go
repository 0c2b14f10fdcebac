package attacks

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

// maxKept is how much of what a connection receives is searched for leaks.
const maxKept = 4 << 20

// line is a connection of the box. All that it receives is kept for the leak
// oracle; of a TLS connection, both what is inside and what is around it.
type line struct {
	net.Conn
	mu  sync.Mutex
	got bytes.Buffer
}

func (l *line) Read(p []byte) (int, error) {
	n, err := l.Conn.Read(p)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.got.Len() < maxKept {
		l.got.Write(p[:n])
	}
	return n, err
}

func (l *line) received() []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	return bytes.Clone(l.got.Bytes())
}

// forget drops what was received so far: it has been searched.
func (l *line) forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.got.Reset()
}

// end closes the writing half, as a client does that has no more to send.
func (l *line) end() {
	if half, ok := l.Conn.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
	}
}

// answer is one response, read to its end. Its zero value is a connection
// that was closed without one.
type answer struct {
	status  int
	class   string // of an error answer
	reason  string
	message string
	auditID string
	header  http.Header
	trailer http.Header
	body    string
	err     error // of the body: it broke off
	interim int   // 1xx answers before it
	last    bool  // the connection ends with it
}

func (a answer) String() string {
	return fmt.Sprintf("%d %s %s %.120q", a.status, a.class, a.reason, a.body)
}

func basicAuth(user, password string) string {
	return base64.StdEncoding.EncodeToString([]byte(user + ":" + password))
}

// authorization is the field by which the box proves its session.
func (c *testCase) authorization() string {
	return "Proxy-Authorization: Basic " + basicAuth("s", c.s.token) + "\r\n"
}

// dial opens a connection to the proxy.
func (c *testCase) dial() *line {
	conn, err := net.DialTimeout("tcp", c.s.addr, c.s.patience)
	c.must(err)
	_ = conn.SetDeadline(time.Now().Add(c.s.patience))
	l := &line{Conn: conn}
	c.mu.Lock()
	c.lines = append(c.lines, l)
	c.mu.Unlock()
	return l
}

// connect asks for a tunnel to "host" or "host:port" and returns the response
// to that; nothing is in the tunnel yet.
func (c *testCase) connect(hostport string) (*line, answer) {
	if !strings.Contains(hostport, ":") {
		hostport += ":443"
	}
	return c.connectRaw("CONNECT " + hostport + " HTTP/1.1\r\nHost: " + hostport + "\r\n" + c.authorization() + "\r\n")
}

func (c *testCase) connectRaw(head string) (*line, answer) {
	l := c.dial()
	_, err := io.WriteString(l, head)
	if err != nil {
		return l, answer{err: err}
	}
	a := readAnswer(bufio.NewReaderSize(l, 1), http.MethodConnect) // not a byte more
	return l, a
}

// secure wraps a tunnel in TLS with cfg; the defaults are those of a client that
// trusts the session.
func (c *testCase) secure(l *line, cfg *tls.Config) (*line, error) {
	if cfg.RootCAs == nil {
		cfg.RootCAs = c.s.roots
	}
	if cfg.NextProtos == nil {
		cfg.NextProtos = []string{"http/1.1"}
	}
	if cfg.MinVersion == 0 {
		cfg.MinVersion = tls.VersionTLS12
	}
	conn := tls.Client(l, cfg)
	if err := conn.Handshake(); err != nil {
		return nil, err
	}
	in := &line{Conn: conn}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lines = append(c.lines, in)
	return in, nil
}

// tunnel opens a TLS connection to host through the proxy: TUN(h) of the
// cases. It returns nil, and fails the case, when there is none.
func (c *testCase) tunnel(hostport string) *line {
	l, a := c.connect(hostport)
	if a.status != 200 {
		c.failf("CONNECT %s: %s", hostport, a)
		return nil
	}
	host, _, _ := strings.Cut(hostport, ":")
	in, err := c.secure(l, &tls.Config{ServerName: host})
	if err != nil {
		c.failf("TLS in the tunnel to %s: %v", hostport, err)
		return nil
	}
	return in
}

// say sends bytes on a connection, reads as many answers as there are
// methods, then ends it and reads to its end. An answer beyond those fails
// the case.
func (c *testCase) say(l *line, raw string, methods ...string) []answer {
	answers := make([]answer, len(methods))
	if l == nil {
		return answers
	}
	wrote := make(chan struct{})
	go func() { defer close(wrote); _, _ = io.WriteString(l, raw) }()
	br := bufio.NewReader(l)
	for i, method := range methods {
		answers[i] = readAnswer(br, method)
		if answers[i].status == 0 {
			break
		}
	}
	if len(methods) == 0 {
		<-wrote
	}
	_ = l.SetReadDeadline(time.Now().Add(c.s.patience))
	l.end()
	if rest, _ := io.ReadAll(br); bytes.Contains(rest, []byte("HTTP/1.1 ")) {
		c.failf("there is an answer too many: %.100q", rest)
	}
	_ = l.Close()
	<-wrote
	return answers
}

// tun sends bytes in a tunnel of their own and returns the one response to them.
func (c *testCase) tun(hostport, raw string) answer {
	c.rows++
	method, _, _ := strings.Cut(raw, " ")
	return c.say(c.tunnel(hostport), raw, method)[0]
}

// fwd sends bytes to the proxy itself and returns the one response: FWD.
func (c *testCase) fwd(raw string) answer {
	c.rows++
	method, _, _ := strings.Cut(raw, " ")
	return c.say(c.dial(), raw, method)[0]
}

// head is a request's head, with Host where the fields hold none.
func head(method, host, target string, fields ...string) string {
	s := method + " " + target + " HTTP/1.1\r\nHost: " + host + "\r\n"
	for _, f := range fields {
		s += f + "\r\n"
	}
	return s + "\r\n"
}

// get asks for a path in a tunnel of its own.
func (c *testCase) get(hostport, target string, fields ...string) answer {
	return c.tun(hostport, head("GET", hostport, target, fields...))
}

// post sends a body to a path in a tunnel of its own.
func (c *testCase) post(hostport, target, body string, fields ...string) answer {
	return c.tun(hostport, head("POST", hostport, target, append(fields, fmt.Sprintf("Content-Length: %d", len(body)))...)+
		body)
}

// absolute asks the proxy itself for a target in absolute form.
func (c *testCase) absolute(target, host string) answer {
	return c.fwd("GET " + target + " HTTP/1.1\r\nHost: " + host + "\r\n" + c.authorization() + "\r\n")
}

// readAnswer reads one answer to its end, and drops the interim ones.
func readAnswer(br *bufio.Reader, method string) answer {
	for interim := 0; ; interim++ {
		res, err := http.ReadResponse(br, &http.Request{Method: method})
		if err != nil {
			return answer{err: err, interim: interim}
		}
		if res.StatusCode < 200 && res.StatusCode != http.StatusSwitchingProtocols {
			continue
		}
		a := answer{status: res.StatusCode, header: res.Header, interim: interim, last: res.Close}
		if res.StatusCode != http.StatusSwitchingProtocols &&
			(method != http.MethodConnect || res.StatusCode != http.StatusOK) {
			var body []byte
			body, a.err = io.ReadAll(res.Body)
			_ = res.Body.Close()
			a.body, a.trailer = string(body), res.Trailer
		}
		readError(&a)
		return a
	}
}

// readError takes the JSON of a refusal apart.
func readError(a *answer) {
	var said struct {
		Error struct {
			Class, Message string
			AuditID        string `json:"audit_id"`
			Details        struct{ Reason string }
		}
	}
	if a.status >= 400 && json.Unmarshal([]byte(a.body), &said) == nil {
		e := said.Error
		a.class, a.reason, a.message, a.auditID = e.Class, e.Details.Reason, e.Message, e.AuditID
	}
}

// plain notes text that the box received in a form that the leak oracle
// cannot read in the bytes: HPACK.
func (c *testCase) plain(text string) {
	l := &line{}
	l.got.WriteString(text)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.read = append(c.read, l)
}

func repeated(s string, n int) string { return strings.Repeat(s, n) }
