package proxy

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/ALRubinger/aileron/ca"
	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/proxy/scrub"
	"github.com/ALRubinger/aileron/spec"
	"github.com/ALRubinger/aileron/vault"
)

// ledger is an origin that notes which credentials each connection carried.
type ledger struct {
	mu      sync.Mutex
	carried map[string][]string // by the connection's address
	open    map[string]bool
	resumed []string // credentials that came over a resumed TLS session
	release chan struct{}
}

// keepLedger starts a world whose hosts are all one ledger. Its path ending in
// /stream answers in two parts, the second one once release is closed.
func keepLedger(t *testing.T, h2 bool, bound map[spec.FQN]Bound, more ...string) (*world, *ledger) {
	t.Helper()
	led := &ledger{carried: map[string][]string{}, open: map[string]bool{}, release: make(chan struct{})}
	authority := must.Get(ca.NewSession(ca.Options{Session: "ledger"}))(t)
	var protocols http.Protocols
	protocols.SetHTTP1(!h2)
	protocols.SetHTTP2(h2)
	origin := &http.Server{ReadHeaderTimeout: testPatience, Protocols: &protocols, Handler: led, ConnState: led.note,
		TLSConfig: &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: func(h *tls.ClientHelloInfo) (*tls.Certificate,
			error) {
			return authority.Leaf(h.ServerName)
		}}}
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	go func() { _ = origin.ServeTLS(l, "", "") }()
	t.Cleanup(func() { _ = origin.Close() })
	w := newWorldWith(t, h2, func(cfg *Config) {
		// That a request has left is known a moment after its response has come, or later on a busy machine.
		cfg.Upstream.UploadGrace = testPatience
		cfg.Upstream.Roots = x509.NewCertPool()
		cfg.Upstream.Roots.AddCert(authority.Root())
		cfg.Upstream.Resolve["api.good.example:443"] = netip.MustParseAddrPort(l.Addr().String())
	}, nil)
	if h2 {
		w.client = w.h2client()
	}
	w.bind(bound, more...)
	return w, led
}

func (l *ledger) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	credential := r.Header.Get("Authorization")
	l.mu.Lock()
	if !slices.Contains(l.carried[r.RemoteAddr], credential) {
		l.carried[r.RemoteAddr] = append(l.carried[r.RemoteAddr], credential)
	}
	if r.TLS.DidResume {
		l.resumed = append(l.resumed, credential)
	}
	l.mu.Unlock()
	_, _ = io.WriteString(rw, "first\n")
	if strings.HasSuffix(r.URL.Path, "/stream") {
		rw.(http.Flusher).Flush()
		<-l.release
	}
	_, _ = io.WriteString(rw, "second")
}

func (l *ledger) note(c net.Conn, state http.ConnState) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch state {
	case http.StateNew:
		l.open[c.RemoteAddr().String()] = true
	case http.StateClosed, http.StateHijacked:
		delete(l.open, c.RemoteAddr().String())
	}
}

// of returns the connections that carried a credential, and how many of them
// are open.
func (l *ledger) of(secret string) (conns []string, open int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for conn, carried := range l.carried {
		if slices.ContainsFunc(carried, func(c string) bool { return strings.Contains(c, secret) }) {
			conns = append(conns, conn)
			if l.open[conn] {
				open++
			}
		}
	}
	return conns, open
}

// mixed returns what a connection carried that carried two credentials.
func (l *ledger) mixed() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, carried := range l.carried {
		if len(carried) > 1 {
			return carried
		}
	}
	return nil
}

func credentialOf(t *testing.T, username, secret string) vault.Credential {
	t.Helper()
	s := must.Get(vault.NewSecret([]byte(secret)))(t)
	return vault.Credential{Kind: "bearer", Username: username, Secret: s}
}

// bind grants the test's connector and more, with these credentials.
func (w *world) bind(bound map[spec.FQN]Bound, more ...string) {
	w.t.Helper()
	connector := must.Get(spec.Load([]byte(testManifest), []byte(testSpec)))(w.t)
	all := []*spec.Connector{connector}
	for _, description := range more {
		manifest := strings.ReplaceAll(testManifest, "acme/tracker", "acme/second")
		c := must.Get(spec.Load([]byte(manifest), []byte(description)))(w.t)
		all = append(all, c)
	}
	index := must.Get(spec.NewIndex(all))(w.t)
	var credentials []scrub.Credential
	for _, b := range bound {
		credentials = append(credentials, scrub.Credential{Secret: []byte(b.Credential.Secret.Reveal())})
	}
	w.plane.SetGrants(&Grants{Index: index, Bound: bound, Scrub: scrub.NewSet(credentials)})
}

const (
	oldSecret = "the-old-secret-2f0c9a71d5"
	newSecret = "the-new-secret-b83e6417fa"
)

// tracker is the test connector's binding with this secret.
func tracker(t *testing.T, secret string) map[spec.FQN]Bound {
	return map[spec.FQN]Bound{"github://acme/tracker": {Binding: "bearer/tracker/test",
		Credential: credentialOf(t, "", secret)}}
}

var ways = map[string]struct {
	method string
	body   string
	h2     bool
}{
	"HTTP/1.1":           {"GET", "", false},
	"HTTP/1.1 with body": {"POST", "a body", false},
	"HTTP/2":             {"GET", "", true},
	"HTTP/2 with body":   {"POST", "a body", true},
}

func TestAConnectionCarriesOneValueOfACredential(t *testing.T) {
	for name, way := range ways {
		t.Run(name, func(t *testing.T) {
			w, led := keepLedger(t, way.h2, tracker(t, oldSecret))
			ask := func() {
				t.Helper()
				if res, body := w.do(way.method, "https://api.good.example/v1/items", way.body); res.StatusCode != 200 ||
					body != "first\nsecond" {
					t.Fatalf("%d %q", res.StatusCode, body)
				}
			}
			ask()
			w.bind(tracker(t, newSecret))
			ask()
			if mixed := led.mixed(); mixed != nil {
				t.Fatalf("one connection carried %q", mixed)
			}
			if len(led.resumed) != 0 {
				t.Errorf("the TLS session of the old value was resumed with %q", led.resumed)
			}
			w.eventually(func() bool { _, open := led.of(oldSecret); return open == 0 })
		})
	}
}

func TestAStreamKeepsItsConnectionAndItsCredential(t *testing.T) {
	for name, h2 := range map[string]bool{"HTTP/1.1": false, "HTTP/2": true} {
		t.Run(name, func(t *testing.T) {
			w, led := keepLedger(t, h2, tracker(t, oldSecret))
			res, err := w.client.Get("https://api.good.example/v1/items/stream")
			must.Do(t, err)
			defer res.Body.Close()
			must.Get(io.ReadFull(res.Body, make([]byte, len("first\n"))))(t)
			w.bind(tracker(t, newSecret))
			w.do("GET", "https://api.good.example/v1/items", "")
			if mixed := led.mixed(); mixed != nil {
				t.Fatalf("one connection carried %q", mixed)
			}
			if conns, open := led.of(oldSecret); len(conns) != 1 || open != 1 {
				t.Errorf("%d connections carried the old value, %d are open, while its stream is under way", len(conns), open)
			}
			close(led.release)
			if rest, err := io.ReadAll(res.Body); err != nil || string(rest) != "second" {
				t.Errorf("the stream ends with %q, %v", rest, err)
			}
			w.eventually(func() bool { _, open := led.of(oldSecret); return open == 0 })
			if conns, open := led.of(newSecret); len(conns) != 1 || open != 1 {
				t.Errorf("%d connections carried the new value, %d are open", len(conns), open)
			}
		})
	}
}

func TestTwoCredentialsForOneHostShareNothing(t *testing.T) {
	const second = `{"schema_version":"aileron.connector.v1","connector":{"fqn":"github://acme/second","version":"1.2.0"},
"tools":[{"name":"second","operations":[
 {"name":"items","method":"GET","path":"/v2/items","hosts":["api.good.example"],"credential":"bearer"},
 {"name":"create","method":"POST","path":"/v2/items","hosts":["api.good.example"],"credential":"bearer"}]}]}`
	for name, way := range ways {
		t.Run(name, func(t *testing.T) {
			bound := tracker(t, oldSecret)
			bound["github://acme/second"] = Bound{Binding: "bearer/second/test", Credential: credentialOf(t, "", newSecret)}
			w, led := keepLedger(t, way.h2, bound, second)
			for range 2 {
				for _, version := range []string{"v1", "v2"} {
					if res, body := w.do(way.method, "https://api.good.example/"+version+"/items", way.body); res.StatusCode != 200 {
						t.Fatalf("%s: %d %q", version, res.StatusCode, body)
					}
				}
			}
			if mixed := led.mixed(); mixed != nil {
				t.Errorf("one connection carried %q", mixed)
			}
			if len(led.resumed) != 0 {
				t.Errorf("the TLS session of one credential was resumed with %q", led.resumed)
			}
			for _, secret := range []string{oldSecret, newSecret} {
				if conns, _ := led.of(secret); len(conns) != 1 {
					t.Errorf("%d connections carried one credential, want 1", len(conns))
				}
			}
		})
	}
}

func TestThePoolIsTheValuesNotTheBindings(t *testing.T) {
	w, led := keepLedger(t, false, tracker(t, oldSecret))
	w.do("GET", "https://api.good.example/v1/items", "")
	again := tracker(t, oldSecret)
	again["github://acme/tracker"] = Bound{Binding: "bearer/tracker/other",
		Credential: again["github://acme/tracker"].Credential}
	w.bind(again)
	w.do("GET", "https://api.good.example/v1/items", "")
	if conns, _ := led.of(oldSecret); len(conns) != 1 {
		t.Errorf("%d connections carried a value that did not change, want 1", len(conns))
	}
}
