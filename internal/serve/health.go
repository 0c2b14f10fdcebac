package serve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/internal/metrics"
	"github.com/ALRubinger/aileron/internal/session"
	"github.com/ALRubinger/aileron/internal/unixsocket"
)

// probes is the listener for an orchestrator: is the process alive, does it serve, and what has it counted. It grants
// nothing, and the sandbox must not reach it all the same: what it counts is the operator's.
type probes struct {
	at     net.Addr
	server *http.Server
	served chan struct{}
}

// serveHealth serves until close.
func (s *server) serveHealth(ctx context.Context) (*probes, error) {
	l, err := listenHealth(ctx, s.Health)
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", s.readyz)
	mux.HandleFunc("GET /metrics", s.metrics)
	p := &probes{at: l.Addr(), served: make(chan struct{}), server: &http.Server{Handler: mux,
		ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 5 * time.Second, WriteTimeout: 10 * time.Second,
		IdleTimeout: time.Minute, MaxHeaderBytes: 8 << 10}}
	go func() {
		defer close(p.served)
		_ = p.server.Serve(l)
	}()
	return p, nil
}

// ports returns the TCP ports on which it listens: a sandbox must not reach them.
func (p *probes) ports() []uint16 {
	if p == nil {
		return nil
	}
	if tcp, ok := p.at.(*net.TCPAddr); ok {
		return []uint16{uint16(tcp.Port)} //nolint:gosec // a TCP port
	}
	return nil
}

// listenHealth listens on HOST:PORT or unix:PATH.
func listenHealth(ctx context.Context, address string) (net.Listener, error) {
	var l net.Listener
	path, isUnix := strings.CutPrefix(address, "unix:")
	var err error
	if isUnix {
		if path, err = filepath.Abs(path); err == nil {
			if err = removeSocket(path); err == nil {
				l, err = unixsocket.Listen(path, 0o600)
			}
		}
	} else {
		l, err = (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	}
	if err != nil {
		if op := (*net.OpError)(nil); errors.As(err, &op) {
			err = op.Err
		}
		return nil, hint.New(fmt.Errorf("listen on %s: %w", address, err), "--health takes HOST:PORT, or unix:PATH")
	}
	return l, nil
}

// readiness is the body of /readyz.
type readiness struct {
	Ready     bool     `json:"ready"`
	Reasons   []string `json:"reasons"` // why not
	SessionID string   `json:"session_id"`
	// Connectors are those that are granted: a session without any is ready, and refuses what needs one.
	Connectors  int `json:"connectors"`
	Credentials int `json:"credentials"`
}

// minFree is how many bytes the audit log needs on its disk.
const minFree = 4 << 20

// readiness returns whether requests are served now.
func (s *server) readiness() readiness {
	h := s.session.Health()
	r := readiness{Reasons: []string{}, SessionID: s.session.ID(), Connectors: h.Connectors, Credentials: h.Credentials}
	if h.Draining {
		r.Reasons = append(r.Reasons, "draining")
	}
	if !h.Writable || isFull(s.Session.Home) {
		r.Reasons = append(r.Reasons, "audit_unavailable")
	}
	if s.uplink != nil && !s.uplink.Connected() {
		r.Reasons = append(r.Reasons, "relay_not_connected")
	}
	r.Ready = len(r.Reasons) == 0
	return r
}

// isFull reports whether the disk of the audit log has no room for more rows.
func isFull(dir string) bool {
	var fs unix.Statfs_t
	if unix.Statfs(dir, &fs) != nil {
		return false
	}
	return fs.Bavail*uint64(max(fs.Bsize, 0)) < minFree
}

func (s *server) readyz(w http.ResponseWriter, _ *http.Request) {
	r := s.readiness()
	w.Header().Set("Content-Type", "application/json")
	if !r.Ready {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	_ = json.NewEncoder(w).Encode(r)
}

func (s *server) metrics(w http.ResponseWriter, _ *http.Request) {
	r, h := s.readiness(), s.session.Health()
	w.Header().Set("Content-Type", metrics.ContentType)
	_ = s.counts.Write(w, metrics.State{Ready: r.Ready, Writable: h.Writable, Connectors: h.Connectors,
		Credentials: h.Credentials, Queue: h.Queued})
}

// close ends the listener. Responses under way are sent.
func (p *probes) close() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if p.server.Shutdown(ctx) != nil {
		_ = p.server.Close()
	}
	<-p.served
}

// Check returns an error unless a session serves the sockets in a directory.
func Check(ctx context.Context, dir string) error {
	ctx, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return unixsocket.Dial(ctx, filepath.Join(dir, session.ProxySocket))
	}
	client := &http.Client{Transport: &http.Transport{DialContext: dial}}
	defer client.CloseIdleConnections()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, session.SealedProxy+"/healthz", nil)
	if err != nil {
		return err
	}
	res, err := client.Do(req)
	if err != nil {
		return hint.New(fmt.Errorf("ask the session in %s: %w", dir, errors.Unwrap(err)),
			"start it with: aileron serve --dir %s", dir)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("the session in %s does not serve: status %d", dir, res.StatusCode)
	}
	return nil
}

// checkTime bounds [Check].
const checkTime = 5 * time.Second
