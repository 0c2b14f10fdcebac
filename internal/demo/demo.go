// Package demo is what aileron demo shows: a home of its own with a connector and a secret, an origin that requires the
// secret, and a script that does what an agent would do. Open [New] first.
package demo

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/ca"
	"github.com/ALRubinger/aileron/internal/home"
	"github.com/ALRubinger/aileron/spec/store"
	"github.com/ALRubinger/aileron/vault"
)

const (
	fqn  = "github://acme/tracker"
	Host = "api.tracker.example"
)

const manifest = `[connector]
name = "github://acme/tracker"
version = "1.0.0"
[capabilities.network]
hosts = ["api.tracker.example:443"]
[capabilities.credential]
kind = "bearer"
scope = "Read and echo issues"
[provides]
intents = ["read_issues"]
`

const specification = `{"schema_version": "aileron.connector.v1",
 "connector": {"fqn": "github://acme/tracker", "version": "1.0.0"},
 "placeholders": [{"env": "TRACKER_TOKEN", "value": "tracker-placeholder"}],
 "tools": [{"name": "tracker", "description": "Issue tracker of the demo", "operations": [
  {"name": "issues.get", "summary": "Read one issue", "method": "GET", "path": "/v1/issues/{id}",
   "hosts": ["api.tracker.example"], "idempotency": "idempotent", "credential": "bearer",
   "audit": [{"name": "issue", "source": "path.id"}]},
  {"name": "echo", "summary": "Return the request's headers", "method": "GET", "path": "/v1/echo",
   "hosts": ["api.tracker.example"], "credential": "bearer"}]}]}
`

// Demo is a home of its own, and an origin that requires the secret.
type Demo struct {
	Dir    string // all of it
	Home   string
	secret string
	origin *http.Server
	Addr   string // of the origin
	Roots  string // PEM file of the origin's root
}

// New makes a home, and starts the origin.
func New() (_ *Demo, err error) {
	dir, err := os.MkdirTemp("", "aileron-demo-")
	if err != nil {
		return nil, fmt.Errorf("make a home for the demo: %w", err)
	}
	defer func() {
		if err != nil {
			_ = os.RemoveAll(dir)
		}
	}()
	home := filepath.Join(dir, "home")
	if err := os.Mkdir(home, 0o700); err != nil {
		return nil, fmt.Errorf("make a home for the demo: %w", err)
	}
	//nolint:gosec // an empty directory that the sandbox writes to
	if err := os.Mkdir(filepath.Join(dir, "project"), 0o777); err != nil {
		return nil, fmt.Errorf("make the demo's project: %w", err)
	}
	var raw [16]byte
	if _, err := rand.Read(raw[:]); err != nil {
		return nil, fmt.Errorf("make the demo's secret: %w", err)
	}
	d := &Demo{Dir: dir, Home: home, secret: hex.EncodeToString(raw[:]), Roots: filepath.Join(dir, "origin-root.pem")}
	return d, d.serve()
}

// serve starts the origin: real TLS, with a root of its own.
func (d *Demo) serve() error {
	authority, err := ca.NewSession(ca.Options{Session: "demo origin"})
	if err != nil {
		return fmt.Errorf("make the origin's certificate: %w", err)
	}
	if err := os.WriteFile(d.Roots, authority.RootPEM(), 0o600); err != nil {
		return fmt.Errorf("write the origin's root: %w", err)
	}
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{MinVersion: tls.VersionTLS12,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return authority.Leaf(Host) }})
	if err != nil {
		return fmt.Errorf("start the origin: %w", err)
	}
	d.Addr = netip.MustParseAddrPort(l.Addr().String()).String()
	mux := http.NewServeMux()
	reply := func(w http.ResponseWriter, v any) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(v)
	}
	mux.HandleFunc("GET /v1/issues/{id}", func(w http.ResponseWriter, r *http.Request) {
		reply(w, map[string]any{"id": r.PathValue("id"), "title": "The door sticks", "the_secret_was_right": true})
	})
	mux.HandleFunc("GET /v1/echo", func(w http.ResponseWriter, r *http.Request) {
		reply(w, map[string]any{"your_authorization_header": r.Header.Get("Authorization")})
	})
	guard := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+d.secret {
			http.Error(w, "the secret is wrong", http.StatusUnauthorized)
			return
		}
		mux.ServeHTTP(w, r)
	})
	d.origin = &http.Server{Handler: guard, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = d.origin.Serve(l) }()
	return nil
}

// Prepare installs the demo's connector and binds its secret, as its owner would.
func (d *Demo) Prepare(ctx context.Context, at *home.Dir) error {
	dir := filepath.Join(d.Home, "connector")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return fmt.Errorf("write the demo's connector: %w", err)
	}
	for name, text := range map[string]string{"manifest.toml": manifest, "aileron.connector.v1.json": specification} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			return fmt.Errorf("write the demo's connector: %w", err)
		}
	}
	s, err := store.Open(filepath.Join(d.Home, "store"))
	if err != nil {
		return err
	}
	if _, err := s.Install(ctx, dir, store.InstallOptions{}); err != nil {
		return err
	}
	v, err := at.VaultOf()
	if err != nil {
		return err
	}
	if err := v.Init([]byte(d.Passphrase())); err != nil {
		return err
	}
	secret, err := vault.NewSecret([]byte(d.secret))
	if err != nil {
		return err
	}
	return v.Bind(vault.Binding{Name: "bearer/tracker/demo", Kind: "bearer", Connector: fqn, Identity: "demo"}, secret)
}

// Script does what an agent would do, with curl alone.
const Script = `
say() { printf '\n# %s\n' "$*"; }
say "1. a call that an operation allows: curl https://api.tracker.example/v1/issues/42"
curl -sS https://api.tracker.example/v1/issues/42 || exit 1
say "2. what the sandbox has of the secret: TRACKER_TOKEN=$TRACKER_TOKEN, a worthless placeholder"
say "3. an endpoint that echoes our headers: the secret comes back redacted"
curl -sS https://api.tracker.example/v1/echo || exit 1
say "4. what no operation allows is denied, inside the tunnel, and never sent"
curl -sS https://api.tracker.example/admin
if [ -z "$cooperative" ]; then
say "5. a client that ignores the proxy is mediated all the same: curl --noproxy '*'"
env -u HTTPS_PROXY -u https_proxy -u HTTP_PROXY -u http_proxy \
  curl -sS --noproxy '*' https://api.tracker.example/v1/issues/43 || exit 1
say "6. and there is no other way out"
curl -sS --noproxy '*' --max-time 5 https://192.0.2.1/ || true
fi
`

// Passphrase returns that of the vault.
func (d *Demo) Passphrase() string { return "the-demo-vault-" + d.secret[:8] }

// Close ends the origin, and removes the home.
func (d *Demo) Close() {
	_ = d.origin.Close()
	_ = os.RemoveAll(d.Dir)
}

// Outcome is what the audit log has of the demo.
type Outcome struct {
	Proxied, Rejected, Redacted int
	Rows                        int64
}

// Verdict returns what the audit log has, and an error unless that is what was printed.
func Verdict(ctx context.Context, at *home.Dir, boxed bool) (done Outcome, err error) {
	l, err := at.AuditReader()
	if err != nil || l == nil {
		return done, fmt.Errorf("read the demo's audit log: %w", err)
	}
	defer l.Close()
	count := map[audit.Decision]int{}
	redacted := 0
	err = l.Each(ctx, audit.Filter{}, func(r audit.Row) error {
		count[r.Decision]++
		redacted += r.Redactions
		return nil
	})
	if err != nil {
		return done, err
	}
	report, err := l.Verify(ctx)
	if err != nil {
		return done, err
	}
	want := map[bool][2]int{true: {3, 2}, false: {2, 1}}[boxed]
	if count["proxied"] != want[0] || count["rejected"] != want[1] || redacted == 0 || !report.OK {
		return done, fmt.Errorf("the demo did not go as expected: %d proxied, %d rejected, %d redacted, chain ok: %v",
			count["proxied"], count["rejected"], redacted, report.OK)
	}
	return Outcome{count["proxied"], count["rejected"], redacted, report.Rows}, nil
}
