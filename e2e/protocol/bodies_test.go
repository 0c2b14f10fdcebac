package protocol

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/e2e/harness"
	"github.com/ALRubinger/aileron/e2e/must"
)

const mib = 1 << 20

// peak resets the peak if asked to, and returns the most memory that the
// session's process has held since, in bytes.
func (s *session) peak(t *testing.T, reset bool) int64 {
	t.Helper()
	dir := fmt.Sprintf("/proc/%d/", s.cmd.Process.Pid)
	if reset {
		err := os.WriteFile(dir+"clear_refs", []byte("5"), 0)
		if errors.Is(err, fs.ErrPermission) {
			harness.Need(t, "root, to measure a process that is not dumpable")
		}
		must.Do(t, err)
	}
	return memory(t, dir+"status", "VmHWM:")
}

func memory(t *testing.T, status, field string) int64 {
	t.Helper()
	raw := must.Get(os.ReadFile(status))(t)
	_, after, ok := strings.Cut(string(raw), field)
	words := strings.Fields(after)
	if !ok || len(words) < 2 {
		t.Fatalf("%s has no %s", status, field)
	}
	n := must.Get(strconv.ParseInt(words[0], 10, 64))(t)
	return n << 10
}

// A body of any size passes in the same memory, in both directions, on both
// versions, with a length and without one.
func TestLargeBodiesTakeNoMoreMemoryThanSmallOnes(t *testing.T) {
	t.Parallel()
	s := newSession(t, "")
	file := filepath.Join(t.TempDir(), "sparse")
	must.Do(t, os.WriteFile(file, nil, 0o600))
	for name, transfer := range map[string]func(t *testing.T, flag, base string, n int64) float64{
		"down": func(t *testing.T, flag, base string, n int64) float64 {
			return s.curl(t, flag, "-o", os.DevNull, fmt.Sprintf("%s/v1/get?n=%d", base, n)).Received
		},
		"down in chunks": func(t *testing.T, flag, base string, n int64) float64 {
			return s.curl(t, flag, "-o", os.DevNull, fmt.Sprintf("%s/v1/get?chunked=1&n=%d", base, n)).Received
		},
		"up": func(t *testing.T, flag, base string, n int64) float64 {
			must.Do(t, os.Truncate(file, n))
			g := s.curl(t, flag, "-T", file, base+"/v1/put")
			if !strings.HasPrefix(g.Body, fmt.Sprint(n, " ")) {
				t.Errorf("the origin read %q", g.Body)
			}
			return g.Sent
		},
	} {
		for _, c := range [][2]string{{"--http1.1", hostH1}, {"--http2", hostH2}} {
			t.Run(name+" "+c[0][2:], func(t *testing.T) {
				const small, large = 10 * mib, 150 * mib
				s.peak(t, true)
				if n := transfer(t, c[0], "https://"+c[1], small); n != small {
					t.Fatalf("%.0f of %d bytes", n, small)
				}
				before := s.peak(t, false)
				s.peak(t, true)
				if n := transfer(t, c[0], "https://"+c[1], large); n != large {
					t.Fatalf("%.0f of %d bytes", n, large)
				}
				after := s.peak(t, false)
				t.Logf("peak memory: %d MiB with 10 MiB, %d MiB with %d MiB", before/mib, after/mib, large/mib)
				if after-before > 64*mib {
					t.Errorf("the plane held %d MiB more for the large body", (after-before)/mib)
				}
			})
		}
	}
}

// client is a Go client behind the session, that speaks one version.
func (s *session) client(t *testing.T, h2 bool) *http.Client {
	t.Helper()
	u := must.Get(url.Parse(s.ProxyURL))(t)
	protocols := &http.Protocols{}
	protocols.SetHTTP1(!h2)
	protocols.SetHTTP2(h2)
	tr := &http.Transport{Proxy: http.ProxyURL(u),
		TLSClientConfig: &tls.Config{RootCAs: s.trusted(t), MinVersion: tls.VersionTLS12}, Protocols: protocols,
		DisableCompression: true}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr}
}

func (s *session) trusted(t *testing.T) *x509.CertPool {
	t.Helper()
	pem := must.Get(os.ReadFile(s.CAFile))(t)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	return roots
}

// connect opens a tunnel to host:port, and speaks nothing inside it yet.
func (s *session) connect(ctx context.Context, at string) (net.Conn, error) {
	addr, token := s.addr()
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(conn, "CONNECT %s HTTP/1.1\r\nHost: %s\r\nProxy-Authorization: Basic %s\r\n\r\n", at, at,
		base64.StdEncoding.EncodeToString([]byte("x:"+token)))
	res, err := http.ReadResponse( //nolint:bodyclose // the connection is the tunnel now
		bufio.NewReaderSize(conn, 16), &http.Request{Method: http.MethodConnect})
	if err == nil && res.StatusCode != http.StatusOK {
		err = fmt.Errorf("CONNECT %s: %s", at, res.Status)
	}
	if err != nil {
		return nil, fmt.Errorf("open a tunnel: %w", err)
	}
	return conn, nil
}

// secure is a TLS connection in a tunnel to host.
func (s *session) secure(t *testing.T, host, protocol string) *tls.Conn {
	t.Helper()
	conn := must.Get(s.connect(t.Context(), host+":443"))(t)
	t.Cleanup(func() { _ = conn.Close() })
	c := tls.Client(conn, &tls.Config{ServerName: host, RootCAs: s.trusted(t), MinVersion: tls.VersionTLS12,
		NextProtos: []string{protocol}})
	must.Do(t, c.HandshakeContext(t.Context()))
	return c
}

// most is more than all buffers on the way, sockets' included, and far less
// than the bodies here.
const most = 48 * mib

// stalled waits until n does not grow any more, and returns it.
func stalled(t *testing.T, n *atomic.Int64) int64 {
	t.Helper()
	last, since := n.Load(), time.Now()
	harness.WaitFor(t, "the sender stops", func() bool {
		if now := n.Load(); now != last {
			last, since = now, time.Now()
		}
		return last > 0 && time.Since(since) > time.Second
	})
	return last
}

func TestAClientThatDoesNotReadHoldsTheOrigin(t *testing.T) {
	for _, h2 := range []bool{false, true} {
		host := map[bool]string{false: hostH1, true: hostH2}[h2]
		origin.moved.Store(0)
		gone := origin.gone.Load()
		large := "https://" + host + "/v1/get?n=524288000"
		res := must.Get(shared.client(t, h2).Get(large))(t) //nolint:bodyclose // closed below
		if n := stalled(t, &origin.moved); n > most {
			t.Errorf("HTTP/2 %t: the origin sent %d MiB to a client that reads nothing", h2, n/mib)
		} else {
			t.Logf("HTTP/2 %t: %d KiB are on the way", h2, n>>10)
		}
		// The client's end is the origin's.
		res.Body.Close()
		harness.WaitFor(t, "the origin is told", func() bool { return origin.gone.Load() > gone })
	}
}

func TestAnOriginThatDoesNotReadHoldsTheClient(t *testing.T) {
	const upload = 2 * most
	for _, h2 := range []bool{false, true} {
		host := map[bool]string{false: hostH1, true: hostH2}[h2]
		release := origin.hold("/v1/put")
		var sent atomic.Int64
		done := make(chan string)
		go func() {
			defer close(done)
			body := struct{ io.Reader }{io.TeeReader(io.LimitReader(zeros{}, upload), counter{&sent})}
			res, err := shared.client(t, h2).Post("https://"+host+"/v1/put", "application/octet-stream", body)
			if err != nil {
				done <- err.Error()
				return
			}
			defer res.Body.Close()
			got, _ := io.ReadAll(res.Body)
			done <- string(got)
		}()
		if n := stalled(t, &sent); n > most {
			t.Errorf("HTTP/2 %t: the client sent %d MiB to an origin that reads nothing", h2, n/mib)
		} else {
			t.Logf("HTTP/2 %t: %d KiB are on the way", h2, n>>10)
		}
		close(release)
		if got := <-done; !strings.HasPrefix(got, fmt.Sprint(upload, " ")) {
			t.Errorf("HTTP/2 %t: the whole came as %q", h2, got)
		}
		<-done
	}
}

// answer reads one response, and returns its body.
func answer(t *testing.T, br *bufio.Reader) string {
	t.Helper()
	res := must.Get(http.ReadResponse(br, nil))(t) //nolint:bodyclose // closed below
	defer res.Body.Close()
	body := must.Get(io.ReadAll(res.Body))(t)
	return string(body)
}

// curl gave up pipelining: these are the bytes of a client that has not.
func TestPipelinedRequestsAreAnsweredInOrder(t *testing.T) {
	conn := shared.secure(t, hostH1, "http/1.1")
	_ = conn.SetDeadline(time.Now().Add(harness.Patience))
	const n = 50
	go func() {
		var all strings.Builder
		for i := range n {
			fmt.Fprintf(&all, "POST /v1/put HTTP/1.1\r\nHost: %s\r\nContent-Length: %d\r\n\r\n%s", hostH1, i+1,
				strings.Repeat("x", i+1))
		}
		_, _ = io.WriteString(conn, all.String())
	}()
	br := bufio.NewReader(conn)
	for i := range n {
		if body := answer(t, br); !strings.HasPrefix(body, fmt.Sprint(i+1, " ")) {
			t.Errorf("answer %d is %q", i, body)
		}
	}
}

func TestPipelinedRequestsWaitOutsideThePlane(t *testing.T) {
	release := origin.hold("/v1/hold")
	path := fmt.Sprintf("/v1/hello/next-%d", time.Now().UnixNano()) // the requests of a run before may still come
	conn := shared.secure(t, hostH1, "http/1.1")
	_ = conn.SetReadDeadline(time.Now().Add(harness.Patience))
	var sent atomic.Int64
	written := make(chan struct{})
	go func() {
		defer close(written)
		first := "GET /v1/hold HTTP/1.1\r\nHost: " + hostH1 + "\r\n\r\n"
		next := []byte(strings.Repeat("GET "+path+" HTTP/1.1\r\nHost: "+hostH1+"\r\n\r\n", 1000))
		_, _ = io.WriteString(conn, first)
		for sent.Load() < 2*most {
			n, err := conn.Write(next)
			sent.Add(int64(n))
			if err != nil {
				return
			}
		}
	}()
	if n := stalled(t, &sent); n > most {
		t.Errorf("%d MiB of requests were taken while one was under way", n/mib)
	}
	if saw := origin.take(path); len(saw) != 0 {
		t.Errorf("the origin saw %d requests before it answered the first", len(saw))
	}
	close(release)
	br := bufio.NewReader(conn)
	for i := range 100 {
		want := "hello"
		if i == 0 {
			want = "released"
		}
		if body := answer(t, br); body != want {
			t.Fatalf("answer %d is %q", i, body)
		}
	}
	_ = conn.NetConn().Close()
	<-written
}
