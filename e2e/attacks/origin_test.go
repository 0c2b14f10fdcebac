package attacks

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// origin is one scripted server. It keeps the raw bytes of every request, as
// they came out of TLS, and answers as the case scripts it.
type origin struct {
	name   string // "host:port"
	host   string
	l      net.Listener
	config func(*tls.ClientHelloInfo) (*tls.Config, error) // nil: plain HTTP

	conns atomic.Int64 // ever accepted

	mu     sync.Mutex
	open   map[*watched]bool
	hits   []*hit
	strays [][]byte // what came on connections and is no request
	script func(*visit)
	raw    func(net.Conn) // takes a whole connection instead
	tls    *tls.Config    // a case's own
}

// hit is one request as the origin got it.
type hit struct {
	origin string // "host:port"
	conn   int64
	sni    string
	Method string
	Target string // as on the wire
	Host   string
	Header http.Header
	Raw    []byte // the whole of it, body included
	Body   []byte
}

// visit is a request that waits for its answer.
type visit struct {
	hit   // as it was when the head had come
	req   *http.Request
	conn  net.Conn
	close bool // end the connection after the answer
	keep  func(body []byte)
}

// body reads the request's body to its end.
func (v *visit) body() []byte {
	if v.keep != nil {
		v.Body, _ = io.ReadAll(v.req.Body)
		v.keep(v.Body)
		v.keep = nil
	}
	return v.Body
}

// send writes bytes as they are.
func (v *visit) send(format string, args ...any) {
	if len(args) > 0 {
		format = fmt.Sprintf(format, args...)
	}
	_, _ = io.WriteString(v.conn, format)
}

// reply answers with a head of these fields and a body of announced length.
func (v *visit) reply(status int, body string, fields ...string) {
	v.body()
	var head strings.Builder
	fmt.Fprintf(&head, "HTTP/1.1 %d %s\r\n", status, http.StatusText(status))
	for i := 0; i+1 < len(fields); i += 2 {
		fmt.Fprintf(&head, "%s: %s\r\n", fields[i], fields[i+1])
	}
	if status != http.StatusNoContent && status != http.StatusNotModified {
		fmt.Fprintf(&head, "Content-Length: %d\r\n", len(body))
	}
	if v.req.Method == http.MethodHead {
		body = ""
	}
	v.send("%s\r\n%s", head.String(), body)
}

// echo answers with all that the request said, as echo services do.
func (v *visit) echo() {
	body := v.body()
	fields := map[string]string{}
	for name, values := range v.Header {
		fields[name] = strings.Join(values, ", ")
	}
	raw, _ := json.Marshal(map[string]any{"method": v.Method, "url": v.Target, "headers": fields, "body": string(body)})
	v.reply(http.StatusOK, string(raw), "Content-Type", "application/json")
}

// credential is the secret as it stands in the request, wherever that is.
func (v *visit) credential() string {
	for _, s := range on.secrets {
		if bytes.Contains(v.Raw, []byte(s)) {
			return s
		}
	}
	return ""
}

func startOrigin(r *roots, host string, at netip.AddrPort) (*origin, error) {
	l, err := net.Listen("tcp", at.String())
	if err != nil {
		return nil, err
	}
	o := &origin{name: nameOf(host, at.Port()), host: host, l: l, open: map[*watched]bool{}}
	if at.Port() != 80 {
		o.config = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
			o.mu.Lock()
			own := o.tls
			o.mu.Unlock()
			if own != nil {
				return own, nil
			}
			leaf, err := r.leaf(host)
			if err != nil {
				return nil, err
			}
			return &tls.Config{Certificates: []tls.Certificate{*leaf}, MinVersion: tls.VersionTLS12,
				NextProtos: []string{"http/1.1"}}, nil
		}
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go o.serve(&watched{TCPConn: c.(*net.TCPConn)})
		}
	}()
	return o, nil
}

func (o *origin) serve(raw *watched) {
	o.mu.Lock()
	o.open[raw] = true
	whole := o.raw
	o.mu.Unlock()
	number := o.conns.Add(1)
	defer func() {
		_ = raw.Close()
		o.mu.Lock()
		delete(o.open, raw)
		o.mu.Unlock()
	}()
	if whole != nil {
		whole(raw)
		return
	}
	conn, sni := net.Conn(raw), ""
	if o.config != nil {
		secure := tls.Server(raw, &tls.Config{GetConfigForClient: o.config, MinVersion: tls.VersionTLS12})
		_ = secure.SetDeadline(time.Now().Add(patience))
		if secure.Handshake() != nil {
			return
		}
		_ = secure.SetDeadline(time.Time{})
		conn, sni = secure, secure.ConnectionState().ServerName
	}
	var kept bytes.Buffer
	br := bufio.NewReader(io.TeeReader(conn, &kept))
	for {
		before := kept.Len() - br.Buffered()
		req, err := http.ReadRequest(br)
		if err != nil {
			if stray := kept.Bytes()[before:]; len(stray) > 0 {
				o.mu.Lock()
				o.strays = append(o.strays, bytes.Clone(stray))
				o.mu.Unlock()
			}
			return
		}
		h := &hit{origin: o.name, conn: number, sni: sni, Method: req.Method, Target: req.RequestURI, Host: req.Host,
			Header: req.Header}
		h.Raw = bytes.Clone(kept.Bytes()[before : kept.Len()-br.Buffered()])
		o.mu.Lock()
		o.hits = append(o.hits, h)
		script := o.script
		raw.serving = true
		o.mu.Unlock()
		v := &visit{hit: *h, req: req, conn: conn, keep: func(body []byte) {
			o.mu.Lock()
			defer o.mu.Unlock()
			h.Body, h.Raw = body, append(h.Raw, body...)
		}}
		if script == nil {
			script = func(v *visit) { v.reply(http.StatusOK, "hello", "Content-Type", "text/plain") }
		}
		script(v)
		_ = v.body()
		if v.close {
			return
		}
		o.mu.Lock()
		raw.serving = false
		o.mu.Unlock()
	}
}

// watched is an origin's connection, which records whether all that
// came on it has been read.
type watched struct {
	*net.TCPConn
	serving bool // a request that has been noted; guarded by the origin's mu

	mu      sync.Mutex
	waiting bool // for more, and there was nothing
}

// Read reads as net.TCPConn does.
func (w *watched) Read(p []byte) (n int, err error) {
	raw, err := w.SyscallConn()
	if err != nil {
		return 0, err
	}
	var failed error
	err = raw.Read(func(fd uintptr) bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		for failed = unix.EINTR; failed == unix.EINTR; {
			n, failed = unix.Read(int(fd), p)
		}
		w.waiting = failed == unix.EAGAIN
		return !w.waiting
	})
	switch {
	case err != nil:
		return 0, err
	case failed != nil:
		return 0, os.NewSyscallError("read", failed)
	case n == 0 && len(p) > 0:
		return 0, io.EOF
	}
	return n, nil
}

// taken reports that the origin waits for what has not come yet.
func (w *watched) taken() bool {
	raw, err := w.SyscallConn()
	if err != nil {
		return true
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	nothing := false
	if err := raw.Control(func(fd uintptr) {
		_, _, err := unix.Recvfrom(int(fd), make([]byte, 1), unix.MSG_PEEK|unix.MSG_DONTWAIT)
		nothing = err == unix.EAGAIN
	}); err != nil {
		return true // it is closed
	}
	return w.waiting && nothing
}

// settled reports that nothing is on its way to be noted: of no connection is
// there more to be read before the request on it is answered.
func (o *origin) settled() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	for c := range o.open {
		if o.raw == nil && !c.serving && !c.taken() {
			return false
		}
	}
	return true
}

// plays sets how the origin answers from now on; nil is a greeting.
func (o *origin) plays(script func(*visit)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.script = script
}

// reset undoes what a case set, and returns what came in.
func (o *origin) reset() (hits []hit, strays [][]byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.raw != nil || o.tls != nil {
		for c := range o.open { // no connection of a strange kind outlives its case
			_ = c.Close()
		}
	}
	hits, strays = snapshot(o.hits), o.strays
	o.hits, o.strays, o.script, o.raw, o.tls = nil, nil, nil, nil, nil
	return hits, strays
}

// seen is what came in since the case began.
func (o *origin) seen() []hit {
	o.mu.Lock()
	defer o.mu.Unlock()
	return snapshot(o.hits)
}

// snapshot copies hits, whose bodies may still be coming.
func snapshot(hits []*hit) []hit {
	var all []hit
	for _, h := range hits {
		c := *h
		c.Raw = bytes.Clone(h.Raw)
		all = append(all, c)
	}
	return all
}

// cut ends every connection that the origin has.
func (o *origin) cut() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for c := range o.open {
		_ = c.Close()
	}
}

// serving reports whether the origin has a connection.
func (o *origin) serving() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.open) > 0
}

func nameOf(host string, port uint16) string { return fmt.Sprintf("%s:%d", host, port) }

// takes sets what happens to whole connections, before TLS.
func (o *origin) takes(raw func(net.Conn)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.raw = raw
}

// presents sets a configuration of TLS of the case's own.
func (o *origin) presents(cfg *tls.Config) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.tls = cfg
}

// forget drops what came in so far: the case has judged it itself.
func (o *origin) forget() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.hits = nil
}
