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

	"github.com/ALRubinger/aileron/ca"
	"github.com/ALRubinger/aileron/cmd/aileron/internal/cli"
	"github.com/ALRubinger/aileron/spec/store"
	"github.com/ALRubinger/aileron/vault"
)

const (
	demoFQN  = "github://acme/tracker"
	demoHost = "api.tracker.example"
)

const demoManifest = `[connector]
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

const demoSpec = `{"schema_version": "aileron.connector.v1",
 "connector": {"fqn": "github://acme/tracker", "version": "1.0.0"},
 "placeholders": [{"env": "TRACKER_TOKEN", "value": "tracker-placeholder"}],
 "tools": [{"name": "tracker", "description": "Issue tracker of the demo", "operations": [
  {"name": "issues.get", "summary": "Read one issue", "method": "GET", "path": "/v1/issues/{id}",
   "hosts": ["api.tracker.example"], "idempotency": "idempotent", "credential": "bearer",
   "audit": [{"name": "issue", "source": "path.id"}]},
  {"name": "echo", "summary": "Return the request's headers", "method": "GET", "path": "/v1/echo",
   "hosts": ["api.tracker.example"], "credential": "bearer"}]}]}
`

// demo is a home of its own, and an origin that requires the secret.
type demo struct {
	Dir    string // all of it
	Flag   string
	secret string
	origin *http.Server
	addr   string
	roots  string // PEM file of the origin's root
}

func newDemo() (_ *demo, err error) {
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
	d := &demo{Dir: dir, Flag: home, secret: hex.EncodeToString(raw[:]), roots: filepath.Join(dir, "origin-root.pem")}
	return d, d.serve()
}

// serve starts the origin: real TLS, with a root of its own.
func (d *demo) serve() error {
	authority, err := ca.NewSession(ca.Options{Session: "demo origin"})
	if err != nil {
		return fmt.Errorf("make the origin's certificate: %w", err)
	}
	if err := os.WriteFile(d.roots, authority.RootPEM(), 0o600); err != nil {
		return fmt.Errorf("write the origin's root: %w", err)
	}
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{MinVersion: tls.VersionTLS12,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return authority.Leaf(demoHost) }})
	if err != nil {
		return fmt.Errorf("start the origin: %w", err)
	}
	d.addr = netip.MustParseAddrPort(l.Addr().String()).String()
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

// prepare installs the demo's connector and binds its secret, as its owner would.
func (d *demo) prepare(ctx context.Context, a *cli.App) error {
	dir := filepath.Join(d.Flag, "connector")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return fmt.Errorf("write the demo's connector: %w", err)
	}
	for name, text := range map[string]string{"manifest.toml": demoManifest, "aileron.connector.v1.json": demoSpec} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			return fmt.Errorf("write the demo's connector: %w", err)
		}
	}
	s, err := store.Open(filepath.Join(d.Flag, "store"))
	if err != nil {
		return err
	}
	if _, err := s.Install(ctx, dir, store.InstallOptions{}); err != nil {
		return err
	}
	v, err := a.VaultOf()
	if err != nil {
		return err
	}
	if err := v.Init([]byte(a.Getenv("AILERON_VAULT_PASSPHRASE"))); err != nil {
		return err
	}
	secret, err := vault.NewSecret([]byte(d.secret))
	if err != nil {
		return err
	}
	return v.Bind(vault.Binding{Name: "bearer/tracker/demo", Kind: "bearer", Connector: demoFQN, Identity: "demo"}, secret)
}
