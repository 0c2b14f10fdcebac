package proxy_test

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/ALRubinger/aileron/ca"
)

// storyOrigin is every host of a story: it keeps the bytes of each request, and answers with the story's bytes.
type storyOrigin struct {
	t      *testing.T
	roots  *x509.CertPool
	secure net.Listener
	clear  net.Listener

	mu     sync.Mutex
	sends  string
	heard  []string
	opened sync.WaitGroup
}

func newStoryOrigin(t *testing.T) *storyOrigin {
	t.Helper()
	authority, err := ca.NewSession(ca.Options{Session: "origin"})
	check(t, err)
	o := &storyOrigin{t: t, roots: x509.NewCertPool()}
	o.roots.AddCert(authority.Root())
	o.clear, err = net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	o.secure = tls.NewListener(inner, &tls.Config{MinVersion: tls.VersionTLS12,
		GetCertificate: func(h *tls.ClientHelloInfo) (*tls.Certificate, error) { return authority.Leaf(h.ServerName) }})
	for _, l := range []net.Listener{o.clear, o.secure} {
		o.opened.Go(func() { o.serve(l) })
	}
	t.Cleanup(func() { _, _ = o.clear.Close(), o.secure.Close(); o.opened.Wait() })
	return o
}

// pins leads every name of the stories to the origin. One name has no address but a private one.
func (o *storyOrigin) pins() map[string]netip.AddrPort {
	secure, clear := netip.MustParseAddrPort(o.secure.Addr().String()), netip.MustParseAddrPort(o.clear.Addr().String())
	return map[string]netip.AddrPort{
		"api.tracker.example:443": secure, "files.tracker.example:443": secure, "open.example:443": secure,
		"open.example:80": clear, "api.tracker.example:80": clear,
	}
}

func (o *storyOrigin) script(sends string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.sends = sends
}

// saw returns the requests since the last call.
func (o *storyOrigin) saw() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	heard := o.heard
	o.heard = nil
	if len(heard) == 0 {
		return "[nothing]\n"
	}
	return strings.ReplaceAll(strings.Join(heard, "\n"), storySecret, "{secret}")
}

func (o *storyOrigin) serve(l net.Listener) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		o.opened.Go(func() {
			defer conn.Close()
			for in := bufio.NewReader(conn); o.exchange(in, conn); {
			}
		})
	}
}

// exchange takes one request and answers it. It reports whether the connection can have another.
func (o *storyOrigin) exchange(in *bufio.Reader, out net.Conn) bool {
	head, err := readHead(in)
	if err != nil {
		return false
	}
	req, err := http.ReadRequest(bufio.NewReader(io.MultiReader(strings.NewReader(head), in)))
	if err != nil {
		return false
	}
	o.mu.Lock()
	sends := o.sends
	o.heard = append(o.heard, lines(head)+bodyText(req.Body, &req.Trailer))
	o.mu.Unlock()
	method := write(o.t, out, sends)
	return method != "" && !strings.Contains(sends, "{close}")
}

// readHead returns a head's bytes.
func readHead(in *bufio.Reader) (string, error) {
	var head strings.Builder
	for !strings.HasSuffix(head.String(), "\r\n\r\n") {
		b, err := in.ReadByte()
		if err != nil {
			return "", err
		}
		head.WriteByte(b)
	}
	return head.String(), nil
}

// lines returns a head as it stands in a story: its line ends are those of the file, and its fields are sorted,
// because Go's maps have no order.
func lines(head string) string {
	all := strings.Split(strings.TrimSuffix(head, "\r\n\r\n"), "\r\n")
	slices.Sort(all[1:])
	return strings.Join(all, "\n") + "\n\n"
}

// write writes a message of a story to conn, a piece at a time, and returns the method or version that it begins with.
func write(t *testing.T, conn net.Conn, text string) string {
	t.Helper()
	text = strings.TrimSuffix(strings.ReplaceAll(text, "{close}\n", ""), "\n")
	head, body, _ := strings.Cut(text, "\n\n")
	head = strings.ReplaceAll(expand(head), "\n", "\r\n")
	head = strings.ReplaceAll(head, "{LF}\r\n", "\n")
	body = expand(body)
	raw := strings.Contains(body, "{raw}")
	body = strings.ReplaceAll(strings.ReplaceAll(body, "{raw}", ""), "{CRLF}\n", "\r\n")
	head = strings.ReplaceAll(head, "{length}", strconv.Itoa(len(strings.ReplaceAll(body, "{piece}", ""))))
	pieces := []string{head + "\r\n\r\n"}
	if !raw && strings.Contains(strings.ToLower(head), "transfer-encoding: chunked") {
		body, trailers, _ := strings.Cut(body, "{trailers}\n")
		for piece := range strings.SplitSeq(body, "{piece}") {
			pieces = append(pieces, fmt.Sprintf("%x\r\n%s\r\n", len(piece), piece))
		}
		if trailers = strings.ReplaceAll(trailers, "\n", "\r\n"); trailers != "" {
			trailers += "\r\n"
		}
		pieces = append(pieces, "0\r\n"+trailers+"\r\n")
	} else {
		pieces = append(pieces, strings.Split(body, "{piece}")...)
	}
	for _, piece := range pieces {
		if _, err := io.WriteString(conn, piece); err != nil {
			break // the plane may have hung up: what it sent has the reason
		}
	}
	first, _, _ := strings.Cut(head, " ")
	return first
}

var padding = regexp.MustCompile(`\{pad (\d+)\}`)

// expand replaces what a story abbreviates.
func expand(text string) string {
	text = strings.NewReplacer("{secret}", storySecret, "{CR}", "\r", "{NUL}", "\x00").Replace(text)
	return padding.ReplaceAllStringFunc(text, func(m string) string {
		n, _ := strconv.Atoi(padding.FindStringSubmatch(m)[1])
		return strings.Repeat("a", n)
	})
}

func hostOf(text string) string {
	for line := range strings.Lines(text) {
		if name, value, _ := strings.Cut(line, ":"); strings.EqualFold(name, "host") {
			return strings.TrimSpace(value)
		}
	}
	return "api.tracker.example"
}

// readResponse returns what came, with interim responses, until the response has ended.
func readResponse(in *bufio.Reader, method string) string {
	text := ""
	for {
		head, err := readHead(in)
		if err != nil {
			return text + "[the connection is closed]\n"
		}
		res, err := http.ReadResponse(bufio.NewReader(io.MultiReader(strings.NewReader(head), in)),
			&http.Request{Method: method})
		if err != nil {
			return text + lines(head) + "[this is no response]\n"
		}
		text += normalize(lines(head) + bodyText(res.Body, &res.Trailer))
		if res.StatusCode >= 200 || res.StatusCode == 101 {
			return text
		}
	}
}

// responseText returns a response of Go's client, its fields sorted.
func responseText(res *http.Response) string {
	text := res.Proto + " " + res.Status + "\n" + fieldsText(res.Header) + "\n" + bodyText(res.Body, &res.Trailer)
	return normalize(text)
}

func fieldsText(h http.Header) string {
	var all []string
	for name, values := range h {
		for _, v := range values {
			all = append(all, name+": "+v+"\n")
		}
	}
	slices.Sort(all)
	return strings.Join(all, "")
}

// bodyText returns a body with a line end, the trailers behind it, and whether it broke off.
func bodyText(body io.ReadCloser, trailer *http.Header) string {
	data, err := io.ReadAll(body)
	text := string(data)
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	if len(*trailer) > 0 {
		text += "[trailers]\n" + fieldsText(*trailer)
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		text += "[the body is cut off]\n"
	} else if err != nil {
		text += "[the body is broken]\n"
	}
	return text
}

var varying = regexp.MustCompile(
	`(X-Aileron-Audit-Id: |"audit_id":"|"approval_id":"|/v1/approvals/|user's approval )[0-9A-Z]{26}`)

// normalize replaces what differs in each run.
func normalize(text string) string { return varying.ReplaceAllString(text, "${1}{id}") }
