package sweep

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"sync"
	"syscall"

	"github.com/ALRubinger/aileron/e2e/harness"
	"github.com/ALRubinger/aileron/e2e/must"
)

// session is a running aileron proxy.
type session struct {
	SessionID string `json:"session_id"`
	ProxyURL  string `json:"proxy_url"`
	CAFile    string `json:"ca_file"`
	APIURL    string `json:"api_url"`

	p     *person
	cmd   *exec.Cmd
	proxy *url.URL
	roots *x509.CertPool
	ended chan struct{}
	dial  func(ctx context.Context, network, address string) (net.Conn, error) // nil: as proxy says
}

// serve starts aileron proxy.
func (p *person) serve(flags ...string) *session {
	p.t.Helper()
	s := &session{p: p, ended: make(chan struct{})}
	cmd, said := p.command(append(append([]string{"proxy", "--json"}, p.reach()...), flags...)...)
	said.tokens = true
	s.cmd = cmd
	cmd.Stdout = nil
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := cmd.StdoutPipe()
	if err != nil {
		p.t.Fatal(err)
	}
	must.Do(p.t, cmd.Start())
	lines := bufio.NewReader(out)
	line, err := lines.ReadBytes('\n')
	if err != nil {
		_ = cmd.Wait()
		p.t.Fatalf("aileron proxy: %v\n%s", err, said.err.String())
	}
	said.out.Write(line)
	go func() {
		defer close(s.ended)
		_, _ = io.Copy(&said.out, lines)
		_ = cmd.Wait()
	}()
	p.t.Cleanup(func() { s.end(syscall.SIGKILL) })
	if err := json.Unmarshal(line, s); err != nil {
		p.t.Fatalf("aileron proxy prints %q: %v", line, err)
	}
	if s.proxy, err = url.Parse(s.ProxyURL); err != nil {
		p.t.Fatal(err)
	}
	token, _ := s.proxy.User.Password()
	p.canary.token(s.SessionID, token)
	pem := must.Get(os.ReadFile(s.CAFile))(p.t)
	s.roots = x509.NewCertPool()
	s.roots.AppendCertsFromPEM(pem)
	return s
}

// end sends a signal and waits for the end.
func (s *session) end(sig syscall.Signal) {
	_ = s.cmd.Process.Signal(sig)
	<-s.ended
}

// client returns a client that uses the session's proxy, over HTTP/2 or not. The caller closes its connections.
func (s *session) client(http2 bool) *http.Client {
	transport := &http.Transport{Proxy: http.ProxyURL(s.proxy), ForceAttemptHTTP2: http2, DialContext: s.dial,
		TLSClientConfig:    &tls.Config{RootCAs: s.roots, MinVersion: tls.VersionTLS12},
		ProxyConnectHeader: http.Header{"X-Connect": {s.p.canary.text("a request field")}}}
	if !http2 {
		transport.TLSNextProto = map[string]func(string, *tls.Conn) http.RoundTripper{}
	}
	return &http.Client{Transport: transport, Timeout: harness.Patience,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// clients calls do with a client of each version of HTTP.
func (s *session) clients(do func(version string, client *http.Client)) {
	var all sync.WaitGroup
	for version, http2 := range map[string]bool{"HTTP/1.1": false, "HTTP/2.0": true} {
		all.Go(func() {
			client := s.client(http2)
			defer client.CloseIdleConnections()
			do(version, client)
		})
	}
	all.Wait()
}
