package protocol

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/e2e/harness"
	"github.com/ALRubinger/aileron/e2e/must"
)

// Each tunnel is open to the end of its TLS handshake, and sends nothing.
func TestIdleTunnelsAreCheap(t *testing.T) {
	t.Parallel()
	n := 10000
	if _, parts := harness.TurnOf(); parts > 1 {
		n = 2000 // as many as show what each of them takes
	}
	var files syscall.Rlimit
	must.Do(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files))
	// The session keeps a second descriptor for each, to go on to the origin.
	if most := int(files.Cur)/2 - 500; most < n {
		t.Logf("the limit of open files is %d: %d tunnels instead of %d", files.Cur, most, n)
		n = most
	}
	s := newSession(t, fmt.Sprintf("[limits]\nconnections = %d\nidle_timeout = \"10m\"\nhandshake_timeout = \"1m\"\n",
		n+100))
	status := fmt.Sprintf("/proc/%d/status", s.cmd.Process.Pid)
	if g := s.curl(t, "https://"+hostH1+"/v1/hello"); g.Status != 200 {
		t.Fatalf("before: %d", g.Status)
	}
	before := memory(t, status, "VmRSS:")
	cfg := &tls.Config{ServerName: hostH1, RootCAs: s.trusted(t), MinVersion: tls.VersionTLS12,
		NextProtos: []string{"http/1.1"}}
	conns := make([]*tls.Conn, n)
	defer func() {
		for _, c := range conns {
			if c != nil {
				_ = c.NetConn().Close()
			}
		}
	}()
	var next atomic.Int64
	var opening sync.WaitGroup
	began := time.Now()
	for range 16 {
		opening.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				conn, err := s.connect(t.Context(), hostH1+":443")
				if err != nil {
					t.Errorf("tunnel %d: %v", i, err)
					return
				}
				conns[i] = tls.Client(conn, cfg)
				if err := conns[i].HandshakeContext(t.Context()); err != nil {
					t.Errorf("tunnel %d: %v", i, err)
					return
				}
			}
		})
	}
	opening.Wait()
	if t.Failed() {
		return
	}
	after := memory(t, status, "VmRSS:")
	t.Logf("%d idle tunnels, opened in %v: %d MiB before, %d MiB now, %.1f KiB each", n,
		time.Since(began).Round(time.Millisecond), before/mib, after/mib, float64(after-before)/1024/float64(n))
	// About twice what they take, what waits for the collector included.
	if each := (after - before) / int64(n); each > 100<<10 {
		t.Errorf("an idle tunnel takes %d KiB", each>>10)
	}
	for _, flag := range []string{"--http1.1", "--http2"} {
		if g := s.curl(t, flag, "https://"+hostH1+"/v1/hello"); g.Status != 200 {
			t.Errorf("another client got %d", g.Status)
		}
	}
	// The idle ones still work.
	for _, i := range []int{0, n / 2, n - 1} {
		_ = conns[i].SetDeadline(time.Now().Add(harness.Patience))
		fmt.Fprintf(conns[i], "GET /v1/hello HTTP/1.1\r\nHost: %s\r\n\r\n", hostH1)
		if body := answer(t, bufio.NewReader(conns[i])); body != "hello" {
			t.Errorf("tunnel %d: %q", i, body)
		}
	}
}
