package matrix

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/url"
	"os/exec"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/e2e/harness"
)

// Real registries, where this machine's own settings reach some: their names
// are read from npm and go, and stand nowhere in these tests.
func TestRealPackagesComeThroughThePlane(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, ask, probe, script, want string
	}{
		{"npm install", "npm config get registry", "ms",
			`npm install --no-audit --no-fund --no-update-notifier --registry "$1" ms@2.1.3
			node -e 'console.log(require("ms")("2 days"))'`, "172800000"},
		{"go mod download", "go env GOPROXY | cut -d, -f1", "rsc.io/quote/@v/v1.5.2.info",
			`GOPATH=$PWD/go GOFLAGS=-modcacherw GOPROXY=$1 go mod download -json rsc.io/quote@v1.5.2`,
			"h1:w5fcysjrx7yqtD/aO+QwRjYZOKnaM9Uh2b40tElTs3Y="},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			registry, addr := reach(t, c.ask, c.probe)
			image := needImage(t, "podman", "image")
			p := newPerson(t)
			authority := registry.Hostname() + ":443"
			p.installOpen(authority)
			// A mirror inside a network has a private address, which is reached only
			// when its owner asks for it, as here.
			var r result
			for range 3 { // it is not of this machine, and may fail a request
				r = p.box(image, []string{"--resolve", authority + ":" + addr}, "sh", "-euc",
					"cd /tmp; export HOME=/tmp; "+c.script, "-", registry.String())
				if r.code == 0 {
					break
				}
				t.Logf("exit %d:\n%s\n%s", r.code, r.out, r.err)
			}
			if r.code != 0 || !strings.Contains(r.out, c.want) {
				t.Errorf("exit %d, and it does not say %q:\n%s\n%s", r.code, c.want, r.out, r.err)
			}
			found := 0
			for at, n := range p.proxied() {
				if strings.HasPrefix(at, registry.Hostname()+"/") {
					found += n
				}
			}
			if found == 0 {
				t.Error("the audit log has no row of it")
			}
		})
	}
}

// reach is the registry that this machine uses, and its address. The test is
// skipped where there is none, in CI too: it asks for something outside.
func reach(t *testing.T, ask, probe string) (*url.URL, string) {
	t.Helper()
	out, err := exec.Command("sh", "-c", ask).Output()
	registry, parseErr := url.Parse(strings.TrimSpace(string(out)))
	if err != nil || parseErr != nil || registry.Scheme != "https" || registry.Port() != "" {
		t.Skipf("no registry over https: %s", ask)
	}
	var addr string
	transport := &http.Transport{TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12},
		DialContext: func(ctx context.Context, network, to string) (net.Conn, error) {
			conn, err := (&net.Dialer{}).DialContext(ctx, network, to)
			if err == nil {
				addr, _, _ = net.SplitHostPort(conn.RemoteAddr().String())
			}
			return conn, err
		}}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport, Timeout: harness.Patience}
	res, err := client.Get(registry.JoinPath(probe).String())
	if err != nil {
		t.Skip("the registry of this machine is not reached")
	}
	res.Body.Close()
	if res.StatusCode != http.StatusOK || strings.Contains(addr, ":") {
		t.Skipf("the registry of this machine answers %s", res.Status)
	}
	return registry, addr
}
