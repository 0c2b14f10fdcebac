package launch

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/ALRubinger/aileron/ca"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/internal/hostport"
	"github.com/ALRubinger/aileron/internal/session"
	"github.com/ALRubinger/aileron/internal/trust"
	"github.com/ALRubinger/aileron/proxy/front"
	"github.com/ALRubinger/aileron/sandbox/agents"
)

// Host describes a session on this host.
type Host struct {
	Agent  string // names the command in the audit log; "" for none
	Mode   string // off or proxy
	Listen string // HOST:PORT; port 0 is any
	CAFile string // gets the session's CA; "" is a file in the session's directory
	Stop   *session.StopRequest
	Models []agents.Endpoint // that the command takes from its environment
}

// HostSession is a session that serves a TCP port of this machine.
type HostSession struct {
	*session.Session
	ProxyURL string // with the session's token
	APIURL   string
	CAFile   string // the session's CA
	Bundle   string // the system's roots and the session's CA
	Exposed  bool   // other machines may reach the port

	models []string // the variables of models' endpoints
}

// OpenHost opens a session, writes its CA and bundle, and serves it on a TCP port. The caller closes it.
func (l *Launcher) OpenHost(ctx context.Context, o Host) (_ *HostSession, err error) {
	s, err := l.Open(ctx, o.Agent, o.Mode, o.Stop)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			s.Abandon(ctx)
		}
	}()
	listener, err := net.Listen("tcp", o.Listen)
	if err != nil {
		return nil, hint.New(fmt.Errorf("listen on %s: %w", o.Listen, errors.Unwrap(err)),
			"choose a free port with --listen, or 127.0.0.1:0 for any")
	}
	h := &HostSession{Session: s, CAFile: filepath.Join(s.Dir(), "ca.pem"), Bundle: filepath.Join(s.Dir(), "bundle.pem")}
	if o.CAFile != "" {
		if h.CAFile, err = filepath.Abs(o.CAFile); err != nil {
			return nil, errors.Join(err, listener.Close())
		}
	}
	if err = h.writeTrust(); err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	at := reachable(listener.Addr())
	h.Exposed = isExposed(listener.Addr())
	h.ProxyURL = "http://aileron:" + s.Token() + "@" + at
	h.APIURL = "http://" + at + "/v1"
	if err = s.Serve(ctx, false); err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	models := modelsOf(o.Models, s.Connectors(), rand.Text)
	h.models = models.environment("http://"+at, l.Environ, l.Infof)
	s.Listen(ctx, listener, front.Listener{Names: listenNames(o.Listen, listener.Addr()), Models: models.served()})
	s.Sweep(ctx)
	return h, nil
}

// reachable returns a listener's address as its clients on this machine write it: a listener on every address is
// reached on loopback.
func reachable(at net.Addr) string {
	tcp, ok := at.(*net.TCPAddr)
	if !ok || !tcp.IP.IsUnspecified() {
		return at.String()
	}
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(tcp.Port))
}

// isExposed reports whether other machines may reach the address.
func isExposed(at net.Addr) bool {
	tcp, ok := at.(*net.TCPAddr)
	return ok && !tcp.IP.IsLoopback()
}

// listenNames returns the name by which the listener was asked for, if it was one.
func listenNames(asked string, at net.Addr) []string {
	host, _, err := net.SplitHostPort(asked)
	tcp, ok := at.(*net.TCPAddr)
	if err != nil || !ok {
		return nil
	}
	name, err := hostport.ParseName(host)
	if err != nil {
		return nil // an address, or empty
	}
	return []string{hostport.Authority{Host: name, Port: uint16(tcp.Port)}.String()} //nolint:gosec // a TCP port
}

// writeTrust writes the public halves: the CA, and a bundle of it and the system's roots.
func (h *HostSession) writeTrust() error {
	root := h.RootPEM()
	if err := os.WriteFile(h.CAFile, root, 0o644); err != nil { //nolint:gosec // a CA certificate is public
		return hint.New(fmt.Errorf("write the session's CA: %w", err),
			"--ca-out names a file in a directory that exists")
	}
	system, err := ca.SystemBundle()
	if err != nil {
		system = nil // a host without roots trusts the session's CA alone
	}
	if err := os.WriteFile(h.Bundle, ca.Bundle(system, root), 0o600); err != nil {
		return fmt.Errorf("write the trust bundle: %w", err)
	}
	return nil
}

// Environment returns the variables by which a command of this host uses the session: proxy, trust, API, placeholders
// and endpoints of models.
func (h *HostSession) Environment() []string {
	env := append(h.clients().Variables(),
		"AILERON_API_URL="+h.APIURL, "AILERON_TOKEN="+h.Token(), "AILERON_SESSION_ID="+h.ID())
	return slices.Concat(env, h.Placeholders(), h.models)
}

// clients returns what clients on this host learn from variables.
func (h *HostSession) clients() trust.Environment {
	return trust.Environment{
		Proxy: h.ProxyURL, NoProxy: []string{"localhost", "127.0.0.1", "::1"}, CA: h.CAFile, Bundle: h.Bundle,
	}
}
