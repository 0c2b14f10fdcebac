package proxy

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/ca"
	"github.com/ALRubinger/aileron/e2e/must"
)

// h2client speaks HTTP/2 inside its tunnels.
func (w *world) h2client() *http.Client {
	trusted := x509.NewCertPool()
	trusted.AddCert(w.ca.Root())
	proxyURL := &url.URL{Scheme: "http", Host: w.addr, User: url.UserPassword("x", testToken)}
	transport := &http.Transport{Proxy: http.ProxyURL(proxyURL), ForceAttemptHTTP2: true,
		TLSClientConfig: &tls.Config{RootCAs: trusted, MinVersion: tls.VersionTLS12}, DisableCompression: true}
	w.t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: testPatience}
}

// An HTTP/1.1 client's request reaches an origin that speaks HTTP/2 alone.
func TestAnOriginOfHTTP2OnlyIsReachedByAll(t *testing.T) {
	authority, err := ca.NewSession(ca.Options{Session: "origin"})
	must.Do(t, err)
	var only http.Protocols
	only.SetHTTP2(true)
	origin := &http.Server{Protocols: &only, ReadHeaderTimeout: testPatience,
		Handler: http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			n, _ := io.Copy(io.Discard, r.Body)
			_, _ = fmt.Fprint(rw, r.Proto, " ", n)
		}), TLSConfig: &tls.Config{MinVersion: tls.VersionTLS12,
			GetConfigForClient: func(h *tls.ClientHelloInfo) (*tls.Config, error) {
				leaf, err := authority.Leaf(h.ServerName)
				if err != nil {
					return nil, err
				}
				cfg := &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"h2"}, Certificates: []tls.Certificate{*leaf}}
				if !slices.Contains(h.SupportedProtos, "h2") {
					cfg.NextProtos = []string{"none of them"} // crypto/tls would let HTTP/1.1 alone pass as no ALPN
				}
				return cfg, nil
			}}}
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	go func() { _ = origin.ServeTLS(l, "", "") }()
	t.Cleanup(func() { _ = origin.Close() })
	w := newWorldWith(t, true, func(cfg *Config) {
		cfg.Upstream.Roots = x509.NewCertPool()
		cfg.Upstream.Roots.AddCert(authority.Root())
		cfg.Upstream.Resolve["api.good.example:443"] = netip.MustParseAddrPort(l.Addr().String())
	}, nil)
	for _, body := range []int{0, 10, 300 << 10} {
		method := map[bool]string{true: "POST", false: "GET"}[body > 0]
		res, got := w.do(method, "https://api.good.example/v1/items", strings.Repeat("x", body))
		if want := fmt.Sprint("HTTP/2.0 ", body); res.StatusCode != 200 || res.ProtoMajor != 1 || got != want {
			t.Errorf("%s of %d bytes: %d %q, want %q", method, body, res.StatusCode, got, want)
		}
	}
}

func TestH2TrailersAreScrubbedAndDelivered(t *testing.T) {
	for _, clientH2 := range []bool{false, true} {
		w := newWorldOf(t, true, func(rw http.ResponseWriter, r *http.Request) {
			rw.Header().Set("Trailer", "Grpc-Status")
			_, _ = io.WriteString(rw, "hello")
			rw.(http.Flusher).Flush()
			rw.Header().Set("Grpc-Status", "0")
			rw.Header().Set(http.TrailerPrefix+"X-Echo", r.Header.Get("Authorization"))
			rw.Header().Set(http.TrailerPrefix+"Set-Cookie", "sid=1")
		})
		if clientH2 {
			w.client = w.h2client()
		}
		res, body := w.do("GET", "https://api.good.example/v1/items", "")
		if body != "hello" || res.Trailer.Get("Grpc-Status") != "0" {
			t.Fatalf("h2 %t: got %q with the trailers %v", clientH2, body, res.Trailer)
		}
		if got := res.Trailer.Get("X-Echo"); !strings.HasPrefix(got, "Bearer ***") {
			t.Errorf("h2 %t: the echoing trailer is %q", clientH2, got)
		}
		if got := res.Trailer.Get("Set-Cookie"); got != "" {
			t.Errorf("h2 %t: the trailer Set-Cookie came: %q", clientH2, got)
		}
		if row := w.last(); row.Redactions != 1 {
			t.Errorf("h2 %t: the row counts %d redactions, want 1", clientH2, row.Redactions)
		}
	}
}

func TestH2StreamsAsTheOriginWrites(t *testing.T) {
	step := make(chan struct{})
	w := newWorldOf(t, true, func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Content-Type", "text/event-stream")
		rw.(http.Flusher).Flush()
		for i := range 3 {
			<-step
			fmt.Fprintf(rw, "data: %d\n\n", i)
			rw.(http.Flusher).Flush()
		}
	})
	res, err := w.h2client().Get("https://api.good.example/v1/items")
	must.Do(t, err)
	defer res.Body.Close()
	buf := make([]byte, 64)
	for i := range 3 {
		step <- struct{}{}
		n, err := io.ReadAtLeast(res.Body, buf, len("data: 0\n\n"))
		if got, want := string(buf[:n]), fmt.Sprintf("data: %d\n\n", i); got != want {
			t.Fatalf("event %d is %q, want %q (%v)", i, got, want, err)
		}
	}
}

// h2raw is a client that sends whatever frames it likes.
type h2raw struct {
	*http2.Framer
	conn *tls.Conn
	enc  *hpack.Encoder
	buf  bytes.Buffer
}

func (w *world) h2raw(host string) *h2raw {
	w.t.Helper()
	c := &h2raw{conn: w.tunnelOf(host, "h2")}
	w.t.Cleanup(func() { _ = c.conn.Close() })
	must.Get(io.WriteString(c.conn, http2.ClientPreface))(w.t)
	c.Framer = http2.NewFramer(c.conn, c.conn)
	c.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	c.enc = hpack.NewEncoder(&c.buf)
	must.Do(w.t, c.WriteSettings())
	return c
}

func (c *h2raw) open(id uint32, fields ...string) error {
	c.buf.Reset()
	for i := 0; i+1 < len(fields); i += 2 {
		_ = c.enc.WriteField(hpack.HeaderField{Name: fields[i], Value: fields[i+1]})
	}
	return c.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: c.buf.Bytes(), EndStream: true,
		EndHeaders: true})
}

// verdict is how the stream ended: its status, or "reset" or "goaway" with the code.
func (c *h2raw) verdict(id uint32) string {
	for {
		f, err := c.ReadFrame()
		if err != nil {
			return "closed"
		}
		switch f := f.(type) {
		case *http2.MetaHeadersFrame:
			if f.StreamID == id {
				return f.PseudoValue("status")
			}
		case *http2.RSTStreamFrame:
			if f.StreamID == id {
				return "reset " + f.ErrCode.String()
			}
		case *http2.GoAwayFrame:
			return "goaway " + f.ErrCode.String()
		}
	}
}

func TestAHeadTooLargeForHTTP2GetsAResponse(t *testing.T) {
	w := newWorld(t, func(rw http.ResponseWriter, _ *http.Request) {})
	raw := w.h2raw("api.good.example")
	raw.buf.Reset()
	for _, f := range [][2]string{{":method", "GET"}, {":scheme", "https"}, {":authority", "api.good.example"},
		{":path", "/v1/items"}} {
		_ = raw.enc.WriteField(hpack.HeaderField{Name: f[0], Value: f[1]})
	}
	for i := range 70 {
		_ = raw.enc.WriteField(hpack.HeaderField{Name: "x", Value: strings.Repeat(string(rune('!'+i)), 1<<10),
			Sensitive: true})
	}
	block := raw.buf.Bytes()
	must.Do(t, raw.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: block[:16<<10], EndStream: true}))
	for block = block[16<<10:]; len(block) > 0; {
		n := min(len(block), 16<<10)
		must.Do(t, raw.WriteContinuation(1, n == len(block), block[:n]))
		block = block[n:]
	}
	if got := raw.verdict(1); got != "431" {
		t.Errorf("the stream ended with %q, want 431", got)
	}
	if row := w.last(); Reason(row.Reason) != ReasonHeadTooLarge {
		t.Errorf("the row's reason is %q", row.Reason)
	}
}

func TestRapidResetsCostTheClientItsStreams(t *testing.T) {
	w := newWorld(t, func(rw http.ResponseWriter, r *http.Request) {
		if r.Host == "api.good.example" {
			<-r.Context().Done()
		}
	})
	raw := w.h2raw("api.good.example")
	for id := uint32(1); id < 6001; id += 2 {
		if raw.open(id, ":method", "GET", ":scheme", "https", ":authority", "api.good.example", ":path", "/v1/items") != nil {
			break
		}
		if raw.WriteRSTStream(id, http2.ErrCodeCancel) != nil {
			break
		}
	}
	_ = raw.conn.Close()
	if res, _ := w.do("GET", "https://plain.good.example/", ""); res.StatusCode != 200 {
		t.Errorf("another client got %d", res.StatusCode)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if n := len(w.seen); n > 2500 {
		t.Errorf("the origin saw %d of 3000 requests that were reset at once", n)
	}
}

// outcomes are the rows that end a request.
func (w *world) outcomes() []audit.Row {
	var out []audit.Row
	for _, r := range w.rows() {
		if r.Event != audit.EventProxyStarted {
			out = append(out, r)
		}
	}
	return out
}

func TestAGRPCClientIsDeniedWithAGRPCStatus(t *testing.T) {
	w := newWorldOf(t, true, func(http.ResponseWriter, *http.Request) { t.Error("the origin was reached") })
	w.client = w.h2client()
	for path, want := range map[string]string{"/pkg.Service/Method": "7", "/v1/%2e%2e/items": "3"} {
		r, err := http.NewRequestWithContext(t.Context(), "POST", "https://api.good.example"+path,
			strings.NewReader("\x00\x00\x00\x00\x00"))
		must.Do(t, err)
		r.Header.Set("Content-Type", "application/grpc+proto")
		res := must.Get(w.client.Do(r))(t)
		body, _ := io.ReadAll(res.Body)
		_ = res.Body.Close()
		if res.StatusCode != 200 || res.Header.Get("Grpc-Status") != want || len(body) > 0 ||
			res.Header.Get("Content-Type") != "application/grpc" {
			t.Errorf("%s: %d %v %q, want the status %s", path, res.StatusCode, res.Header, body, want)
		}
		if m := res.Header.Get("Grpc-Message"); !strings.HasPrefix(m, "aileron: ") ||
			res.Header.Get("X-Aileron-Audit-Id") == "" {
			t.Errorf("%s: the message is %q", path, m)
		}
	}
}
