package serve

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/internal/session"
	"github.com/ALRubinger/aileron/internal/uplink"
)

const testKey = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFG"

// A sandbox elsewhere is served as one that shares the sockets: its relay has the files of the agent, and brings its
// connections.
func TestARelayElsewhereIsServed(t *testing.T) {
	w := newWorld(t)
	w.grant(t, `secret.file = "token"`)
	w.write(t, "token", testSecret)
	w.write(t, "key", testKey+"\n")
	o := w.options(t)
	o.Dir, o.Public = "", w.public
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	o.Relay = Relay{Dial: l.Addr().String(), Key: filepath.Join(w.grants, "key")}
	w.start(t, o)
	if status, body := w.probe(t, "/readyz"); status != 503 || !strings.Contains(body, "relay_not_connected") {
		t.Errorf("/readyz without a relay = %d %s", status, body)
	}
	files := make(chan map[string][]byte, 1)
	relay := must.Get(uplink.NewRelay(uplink.RelayConfig{Key: must.Get(uplink.ParseKey(testKey))(t),
		Accept: func(_ context.Context, _ netip.Addr, _ []uint16, got map[string][]byte) error {
			files <- got
			return nil
		}}))(t)
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan struct{})
	go func() { defer close(served); relay.Serve(ctx, l) }()
	t.Cleanup(func() { cancel(); <-served })
	got := <-files
	for _, name := range []string{"ca.pem", "bundle.pem", "env"} {
		if want := must.Get(os.ReadFile(filepath.Join(w.public, name)))(t); string(got[name]) != string(want) {
			t.Errorf("the relay's %s is not that of the agent", name)
		}
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(got["ca.pem"])
	transport := &http.Transport{Proxy: http.ProxyURL(must.Get(url.Parse(session.SealedProxy))(t)),
		TLSClientConfig: &tls.Config{RootCAs: roots},
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return relay.Open(ctx, uplink.Proxy)
		}}
	defer transport.CloseIdleConnections()
	status, body := w.get(t, &http.Client{Transport: transport}, "/user")
	if status != 200 || w.last() != "Bearer "+testSecret || strings.Contains(body, testSecret) {
		t.Errorf("GET /user = %d %q; upstream got %q", status, body, w.last())
	}
	w.waitFor(t, "it is ready", func() bool { status, _ := w.probe(t, "/readyz"); return status == 200 })
	transport.CloseIdleConnections()
	w.write(t, "grants.toml", "")
	if next := <-files; len(next["env"]) == 0 || string(next["env"]) == string(got["env"]) {
		t.Errorf("after a change of the grants the sandbox has the variables %s", next["env"])
	}
	must.Do(t, w.end())
	w.checkLeaks(t)
}
