package forge

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
)

// proxy is a company's proxy: it opens tunnels, to the stand-in whatever their name.
type proxy struct {
	to    string
	mu    sync.Mutex
	names []string
}

// ServeHTTP implements http.Handler.
func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	p.names = append(p.names, r.Method+" "+r.Host)
	p.mu.Unlock()
	out, err := net.Dial("tcp", p.to)
	if err != nil || r.Method != http.MethodConnect {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	defer out.Close()
	w.WriteHeader(http.StatusOK)
	in, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer in.Close()
	go func() { _, _ = io.Copy(out, buffered) }()
	_, _ = io.Copy(in, out)
}

// Behind a company's proxy everything goes through it, redirects included; a redirect to an
// address inside is refused there, too.
func TestSourcesBehindAProxy(t *testing.T) {
	t.Parallel()
	f, u, _ := published(t)
	p := &proxy{to: f.Server.Addr}
	server := httptest.NewServer(p)
	defer server.Close()
	flags := []string{"--upstream-ca", f.Server.Roots, "--upstream-proxy", server.URL}
	args := append([]string{"connector", "install", tracker + "@" + version, "--yes"}, flags...)
	if out, errs, code := u.start(args...); code != 0 {
		t.Errorf("it ends with %d: %s%s", code, out, errs)
	}
	p.mu.Lock()
	names := slices.Clone(p.names)
	p.mu.Unlock()
	if want := []string{"CONNECT " + GitHub + ":443", "CONNECT " + GitHubAssets + ":443"}; !slices.Equal(names, want) {
		t.Errorf("the proxy got %v, want %v", names, want)
	}
	f.Faults = at(GitHub, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "https://10.0.0.1/x", http.StatusFound)
	})
	other := newUser(t, f)
	_, errs, code := other.start(args...)
	if code != 1 || !strings.Contains(errs, "the name leads to no address that may be reached") {
		t.Errorf("a redirect inside ends with %d: %s", code, errs)
	}
	other.isClean()
}
