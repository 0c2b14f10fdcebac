package attacks

import (
	"context"
	"crypto/x509"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/ca"
	"github.com/ALRubinger/aileron/e2e/harness"
	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/proxy"
	"github.com/ALRubinger/aileron/proxy/front"
	"github.com/ALRubinger/aileron/proxy/scrub"
	"github.com/ALRubinger/aileron/proxy/upstream"
	"github.com/ALRubinger/aileron/spec"
	"github.com/ALRubinger/aileron/vault"
)

// patience is for what must come: only a defect takes so long.
var patience = harness.Patience

// subject is a proxy under attack: the plane, or the naive one that the
// harness is tried on.
type subject struct {
	addr  string
	token string
	roots *x509.CertPool // what the box trusts
	rows  func(after int64) []audit.Row
	get   func(id string) (audit.Row, bool) // nil: the rows are searched
	last  func() int64                      // the newest row's number
	files func() []string                   // everything that it wrote
	logs  func() []byte
	plane *world // nil: it is not the plane, or another process's

	patience time.Duration // for what must come
	forgets  bool          // it leaves rows out, which are not waited for long
	tunnel   *line         // of control requests; nil: none is open
}

// row returns the audit row of an id.
func (s *subject) row(id string) (audit.Row, bool) {
	if s.get != nil {
		return s.get(id)
	}
	for _, r := range s.rows(0) {
		if r.ID == id {
			return r, true
		}
	}
	return audit.Row{}, false
}

// release ends the tunnel of the control requests.
func (s *subject) release() {
	if s.tunnel != nil {
		_ = s.tunnel.Close()
		s.tunnel = nil
	}
}

// fixture describes which connectors a world has, what is bound, and how its
// plane differs from the default.
type fixture struct {
	connectors []string // nil: all
	extra      []*spec.Connector
	unbound    []string // connectors without their credential
	set        func(*proxy.Config)
	door       front.Listener
}

// world is a session of the real plane: connector files from testdata, a real
// vault, the real audit log.
type world struct {
	subject
	plane  *proxy.Plane
	log    *audit.Log
	ca     *ca.Session
	grants *proxy.Grants
	home   string
	said   *must.Output
	stop   func()

	crippled bool // a case left it unable to serve
}

// connectors are the fixture's, with the secret that each is bound to.
var connectors = []struct{ name, kind, secret, user string }{
	{"api", "bearer", "S1", ""}, {"key", "api_key", "S2", ""}, {"q", "api_key", "S3", ""},
	{"basic", "basic", "S4", "user"},
	{"oauth", "oauth2", "S5a", ""}, {"plain", "", "", ""}, {"alt", "bearer", "S6", ""},
}

const passphrase = "correct horse battery staple"

// bound is the fixture's vault, made once. It is cheap to open; what a real
// one costs is the binary's, see vlt_test.go.
var bound = sync.OnceValues(func() (map[spec.FQN]proxy.Bound, error) {
	v := vault.Open(filepath.Join(on.dir, "vault"), vault.TestOnlyWorkFactor(10))
	if err := v.Init([]byte(passphrase)); err != nil {
		return nil, err
	}
	all := map[spec.FQN]proxy.Bound{}
	for _, c := range connectors {
		if c.secret == "" {
			continue
		}
		secret, err := vault.NewSecret([]byte(on.secrets[c.secret]))
		if err != nil {
			return nil, err
		}
		fqn := "github://attacks/" + c.name
		b := vault.Binding{Name: c.kind + "/" + c.name + "/test", Kind: c.kind, Connector: fqn, Identity: "test",
			Username: c.user}
		if err := v.Bind(b, secret); err != nil {
			return nil, fmt.Errorf("bind %s: %w", c.name, err)
		}
		cred, err := v.Credential(b.Name)
		if err != nil {
			return nil, fmt.Errorf("open %s: %w", c.name, err)
		}
		all[spec.FQN(fqn)] = proxy.Bound{Binding: b.Name, Credential: cred}
	}
	return all, nil
})

func loadConnector(name string) (*spec.Connector, error) {
	dir := filepath.Join("testdata", "connectors", name)
	manifest, err := os.ReadFile(filepath.Join(dir, "manifest.toml"))
	if err != nil {
		return nil, err
	}
	description, err := os.ReadFile(filepath.Join(dir, "aileron.connector.v1.json"))
	if err != nil {
		return nil, err
	}
	c, err := spec.Load(manifest, description)
	if err != nil {
		return nil, fmt.Errorf("load the connector %s: %w", name, err)
	}
	return c, nil
}

// grantsOf is what a session with this fixture may do.
func grantsOf(f fixture) (*proxy.Grants, error) {
	names := f.connectors
	if names == nil {
		for _, c := range connectors {
			names = append(names, c.name)
		}
	}
	credentials, err := bound()
	if err != nil {
		return nil, err
	}
	g := &proxy.Grants{Bound: map[spec.FQN]proxy.Bound{}}
	var redacted []scrub.Credential
	all := append([]*spec.Connector{}, f.extra...)
	for _, name := range names {
		c, err := loadConnector(name)
		if err != nil {
			return nil, err
		}
		all = append(all, c)
		if b, ok := credentials[c.FQN]; ok {
			g.Bound[c.FQN] = b
			redacted = append(redacted,
				scrub.Credential{Secret: []byte(b.Credential.Secret.Reveal()), Username: b.Credential.Username})
		}
	}
	for _, name := range f.unbound {
		delete(g.Bound, spec.FQN("github://attacks/"+name))
	}
	g.Scrub = scrub.NewSet(redacted)
	g.Index, err = spec.NewIndex(all)
	return g, err
}

// newWorld opens a session. The address floor is on: no address is pinned.
func newWorld(t testing.TB, f fixture) *world {
	t.Helper()
	check := func(err error) {
		if err != nil {
			t.Helper()
			t.Fatal(err)
		}
	}
	w := &world{said: &must.Output{}}
	var err error
	w.home, err = os.MkdirTemp(on.dir, "home-")
	check(err)
	w.ca, err = ca.NewSession(ca.Options{Session: "attacks"})
	check(err)
	session := audit.NewID()
	w.log, err = audit.Open(filepath.Join(w.home, "audit.db"), audit.Options{Session: session})
	check(err)
	roots := x509.NewCertPool()
	roots.AddCert(on.roots.cert)
	cfg := proxy.Config{Session: session, Token: "token-of-this-session-" + audit.NewID(), CA: w.ca, Audit: w.log,
		Poison:   true,
		Upstream: upstream.Options{Roots: roots},
		Log:      slog.New(slog.NewTextHandler(w.said, &slog.HandlerOptions{Level: slog.LevelDebug}))}
	if f.set != nil {
		f.set(&cfg)
	}
	w.plane, err = proxy.New(cfg)
	check(err)
	w.grants, err = grantsOf(f)
	check(err)
	w.plane.SetGrants(w.grants)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	check(err)
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan struct{})
	go func() { defer close(served); _ = front.New(w.plane).Serve(ctx, l, f.door) }()
	w.stop = sync.OnceFunc(func() {
		w.release()
		drain, late := context.WithTimeout(context.Background(), patience)
		defer late()
		w.plane.Drain(drain) // in this order, as a session closes
		if drain.Err() != nil {
			t.Errorf("the session was not drained within %v", patience)
		}
		cancel()
		select {
		case <-served:
		case <-time.After(patience):
			t.Errorf("the session did not end within %v of its end", patience)
		}
		if err := w.log.Close(); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(w.stop)
	trusted := x509.NewCertPool()
	trusted.AddCert(w.ca.Root())
	w.subject = subject{patience: patience, addr: l.Addr().String(), token: cfg.Token, roots: trusted, plane: w,
		logs: w.said.Bytes,
		rows: func(after int64) []audit.Row {
			rows, err := w.log.List(context.Background(), audit.Filter{AfterSeq: after})
			if err != nil {
				t.Errorf("read the audit log: %v", err)
			}
			return rows
		},
		get: func(id string) (audit.Row, bool) {
			row, err := w.log.Get(context.Background(), id)
			return row, err == nil
		},
		last: func() int64 {
			rows, err := w.log.List(context.Background(), audit.Filter{Limit: 1, Newest: true})
			if err != nil || len(rows) == 0 {
				return 0
			}
			return rows[0].Seq
		},
		files: func() []string { return []string{w.home, filepath.Join(on.dir, "vault")} }}
	return w
}

// verify walks the audit chain of a session that has ended.
func verify(t *testing.T, w *world) {
	log := must.Get(audit.Open(filepath.Join(w.home, "audit.db"), audit.Options{}))(t)
	defer log.Close()
	r, err := log.Verify(context.Background())
	if err != nil || !r.OK {
		t.Errorf("O3: the audit chain does not hold: %v (%+v)", err, r)
	}
}
