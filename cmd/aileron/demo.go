package main

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
	"os/exec"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/ca"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/internal/launch"
	"github.com/ALRubinger/aileron/sandbox"
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

func newDemoCommand(a *app) *cobra.Command {
	engine := "auto"
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "See aileron work, with nothing set up",
		Long: `See aileron work in a temporary home, with an origin server on this machine, a
connector and a secret of its own, and a sandbox on the engine that it finds.
The sandbox makes a credentialed call, gets an echoed secret back redacted, is
denied what no operation allows, and is mediated even where it ignores the
proxy. Without an engine the same happens on this host, where nothing is sealed.`,
		Example: "  aileron demo",
		Args:    usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := oneOf("sandbox", engine, append(knownEngines(), "off")...); err != nil {
				return err
			}
			return runDemo(cmd.Context(), a, engine)
		},
	}
	cmd.Flags().StringVar(&engine, "sandbox", engine, "auto, podman, docker, or off")
	return cmd
}

// demo is a home of its own, and an origin that requires the secret.
type demo struct {
	dir    string // all of it
	home   string
	secret string
	origin *http.Server
	addr   string
	roots  string // PEM file of the origin's root
}

func runDemo(ctx context.Context, a *app, engine string) error {
	d, err := newDemo()
	if err != nil {
		return err
	}
	defer func() {
		_ = d.origin.Close()
		_ = os.RemoveAll(d.dir)
	}()
	sub := *a
	sub.home = d.home
	sub.getenv = func(name string) string {
		if name == "AILERON_VAULT_PASSPHRASE" {
			return "the-demo-vault-" + d.secret[:8]
		}
		return ""
	}
	if err := d.prepare(ctx, &sub); err != nil {
		return err
	}
	a.infof("aileron demo: an origin at https://%s (on this machine) requires a secret; "+
		"the vault has it, the sandbox will not", demoHost)
	boxed := a.canSandboxDemo(ctx, engine)
	if err := d.play(ctx, &sub, engine, boxed); err != nil {
		return err
	}
	fmt.Fprintf(a.stdout, "\n# on the host: what a reviewer sees (aileron audit list)\n")
	if err := auditList(ctx, &sub, audit.Filter{}); err != nil {
		return err
	}
	return d.verdict(ctx, &sub, boxed)
}

// canSandboxDemo reports whether there is an engine, and prints where the demo runs.
func (a *app) canSandboxDemo(ctx context.Context, engine string) bool {
	if engine == "off" {
		a.infof("aileron demo: running on the host, cooperatively: it is NOT sealed")
		return false
	}
	e, err := a.findEngine(ctx, engine)
	if err != nil {
		a.infof("aileron demo: %v", err)
		a.infof("aileron demo: running on the host instead, cooperatively: it is NOT sealed")
		return false
	}
	defer e.Close()
	a.infof("aileron demo: running in a sealed sandbox on %s", e.Describe())
	return true
}

// play runs the script without the secret.
func (d *demo) play(ctx context.Context, a *app, engine string, boxed bool) error {
	opts := &sandboxOptions{sandbox: engine, build: "auto", dir: filepath.Join(d.dir, "project")}
	opts.egress, opts.resolve, opts.upstreamCA = "deny", []string{demoHost + ":443:" + d.addr}, d.roots
	if boxed {
		image := sandbox.BaseImage(thisBuild().release)
		return a.runSandboxed(ctx, opts, launch.Sandbox{Agent: "demo", Image: image, Command: []string{"sh", "-c",
			demoScript}})
	}
	if _, err := exec.LookPath("curl"); err != nil {
		return hint.New(fmt.Errorf("run the demo on the host: there is no curl"), "install curl, or Podman for a sandbox")
	}
	command := []string{"sh", "-c", "cooperative=1; " + demoScript}
	return a.runOnHost(ctx, &opts.sessionOptions, launch.HostCommand{Agent: "demo", Args: command})
}

// demoScript does what an agent would do, with curl alone.
const demoScript = `
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
	d := &demo{dir: dir, home: home, secret: hex.EncodeToString(raw[:]), roots: filepath.Join(dir, "origin-root.pem")}
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
func (d *demo) prepare(ctx context.Context, a *app) error {
	dir := filepath.Join(d.home, "connector")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return fmt.Errorf("write the demo's connector: %w", err)
	}
	for name, text := range map[string]string{"manifest.toml": demoManifest, "aileron.connector.v1.json": demoSpec} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			return fmt.Errorf("write the demo's connector: %w", err)
		}
	}
	s, err := store.Open(filepath.Join(d.home, "store"))
	if err != nil {
		return err
	}
	if _, err := s.Install(ctx, dir, store.InstallOptions{}); err != nil {
		return err
	}
	v, err := a.vaultOf()
	if err != nil {
		return err
	}
	if err := v.Init([]byte(a.getenv("AILERON_VAULT_PASSPHRASE"))); err != nil {
		return err
	}
	secret, err := vault.NewSecret([]byte(d.secret))
	if err != nil {
		return err
	}
	return v.Bind(vault.Binding{Name: "bearer/tracker/demo", Kind: "bearer", Connector: demoFQN, Identity: "demo"}, secret)
}

// verdict checks that the audit log agrees with what was printed.
func (d *demo) verdict(ctx context.Context, a *app, boxed bool) error {
	l, err := a.auditReader()
	if err != nil || l == nil {
		return fmt.Errorf("read the demo's audit log: %w", err)
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
		return err
	}
	report, err := l.Verify(ctx)
	if err != nil {
		return err
	}
	want := map[bool][2]int{true: {3, 2}, false: {2, 1}}[boxed]
	if count["proxied"] != want[0] || count["rejected"] != want[1] || redacted == 0 || !report.OK {
		return fmt.Errorf("the demo did not go as expected: %d proxied, %d rejected, %d redacted, chain ok: %v",
			count["proxied"], count["rejected"], redacted, report.OK)
	}
	a.infof("")
	a.infof("aileron demo: done: %d calls proxied, %d denied, the secret redacted %d time(s), %d audit events verified",
		count["proxied"], count["rejected"], redacted, report.Rows)
	return nil
}
