package session

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/internal/unixsocket"
	"github.com/ALRubinger/aileron/proxy/api"
)

// serveControl serves the owner's endpoints on sessions/<id>/control.sock. No
// sandbox ever sees this socket; its mode is what guards it. While the session
// is still being opened only the stop is served.
func (s *Session) serveControl() error {
	path := filepath.Join(s.dir, "control.sock")
	l, err := unixsocket.Listen(path, 0o600)
	if err != nil {
		return fmt.Errorf("open the control socket: %w", err)
	}
	server := &http.Server{Handler: s.controlHandler(), ReadHeaderTimeout: 5 * time.Second, ErrorLog: nil}
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = server.Serve(l)
	}()
	s.closeControl = sync.OnceFunc(func() {
		// Requests in progress get their responses.
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if server.Shutdown(ctx) != nil {
			_ = server.Close()
		}
		<-served
	})
	return nil
}

// controlHandler returns the endpoints of the control socket.
func (s *Session) controlHandler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", s.whenReady(s.controlHealth))
	mux.HandleFunc("GET /v1/session", s.whenReady(s.controlDescription))
	mux.HandleFunc("POST /v1/session/stop", s.controlStop)
	mux.HandleFunc("GET /v1/ca", s.whenReady(s.controlCA))
	mux.HandleFunc("GET /v1/audit", s.whenReady(s.controlAudit))
	mux.HandleFunc("GET /v1/audit/{id}", s.whenReady(s.controlAuditRow))
	mux.HandleFunc("GET /v1/approvals", s.controlApprovals)
	mux.HandleFunc("POST /v1/approvals/{id}", s.whenReady(s.controlDecide))
	mux.HandleFunc("GET /v1/vault/status", s.whenReady(s.controlVault))
	mux.HandleFunc("POST /v1/vault/unlock", s.whenReady(s.controlUnlock))
	return mux
}

// whenReady refuses requests while the session is still being opened.
func (s *Session) whenReady(serve http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-s.ready:
			serve(w, r)
		default:
			respondError(w, http.StatusServiceUnavailable, "unavailable", "starting", "the session is still starting")
		}
	}
}

func (s *Session) controlHealth(w http.ResponseWriter, _ *http.Request) {
	respond(w, 200, map[string]string{"status": "ok"})
}

func (s *Session) controlDescription(w http.ResponseWriter, _ *http.Request) {
	respond(w, 200, api.Describe(s.plane))
}

// controlStop requests the end of the session once the response has been sent:
// the end does not wait for the client.
func (s *Session) controlStop(w http.ResponseWriter, _ *http.Request) {
	respond(w, 202, map[string]string{"status": "stopping"})
	_ = http.NewResponseController(w).Flush() // the client may be gone
	s.opts.Stop.Request()
}

func (s *Session) controlAuditRow(w http.ResponseWriter, r *http.Request) {
	row, err := s.audit.Get(r.Context(), r.PathValue("id"))
	if err != nil {
		respondError(w, 404, "invalid_request", "not_found", "there is no such audit row")
		return
	}
	respond(w, 200, row)
}

func (s *Session) controlAudit(w http.ResponseWriter, r *http.Request) {
	limit := 100
	if raw := r.URL.Query().Get("limit"); raw != "" {
		n, err := strconv.Atoi(raw)
		if err != nil || n < 0 {
			respondError(w, 400, "invalid_request", "malformed_request", "limit is not a number")
			return
		}
		limit = n
	}
	rows, err := s.audit.List(r.Context(), audit.Filter{Session: s.id, Limit: limit, Newest: true})
	if err != nil {
		respondError(w, 503, "unavailable", "audit_unavailable", "the audit log cannot be read")
		return
	}
	if rows == nil {
		rows = []audit.Row{}
	}
	respond(w, 200, rows)
}

func (s *Session) controlVault(w http.ResponseWriter, _ *http.Request) {
	if s.vault == nil {
		respond(w, 200, map[string]bool{"initialised": false, "locked": false})
		return
	}
	locked := !s.vault.Unlocked() || s.vault.LockedForAll()
	respond(w, 200, map[string]bool{"initialised": s.vault.Initialised(), "locked": locked})
}

// controlUnlock opens the vault of a running session again after a lock.
func (s *Session) controlUnlock(w http.ResponseWriter, r *http.Request) {
	if s.vault == nil {
		respondError(w, 404, "invalid_request", "not_found", "this session has no vault")
		return
	}
	var body struct {
		Passphrase string `json:"passphrase"`
	}
	if err := json.NewDecoder(io.LimitReader(r.Body, 64<<10)).Decode(&body); err != nil {
		respondError(w, 400, "invalid_request", "malformed_request", "the body is not {\"passphrase\":…}")
		return
	}
	if err := s.vault.Unlock([]byte(body.Passphrase)); err != nil {
		respondError(w, 403, "capability_denied", "vault_locked", err.Error())
		return
	}
	s.loader.reload(r.Context())
	respond(w, 200, map[string]bool{"locked": false})
}

// respond writes a response with v as JSON. It is written whole, with its
// length, so that the client detects a truncated one.
func respond(w http.ResponseWriter, status int, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		status, body = http.StatusInternalServerError, []byte("{}")
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)+1))
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n'))
}

// respondError writes an error of CONTRACT section 4.
func respondError(w http.ResponseWriter, status int, class, reason, message string) {
	respond(w, status, map[string]any{"error": map[string]any{
		"class": class, "message": message, "connector": "", "requested": "", "granted": []string{}, "audit_id": "",
		"retriable": false, "details": map[string]string{"reason": reason},
	}})
}

// Unlock opens the vault of a running session again after a lock: the session
// had forgotten what opens it.
func Unlock(ctx context.Context, home, id string, passphrase []byte) error {
	body, err := json.Marshal(map[string]string{"passphrase": string(passphrase)})
	if err != nil {
		return err
	}
	_, err = controlClient{home: home, id: id}.call(ctx, "POST", "/v1/vault/unlock", bytes.NewReader(body))
	return err
}

// controlTimeout bounds one call of a control socket. On a busy machine a
// session takes its time: to unlock, it derives a key.
const controlTimeout = time.Minute

// maxControlBody bounds the response of a control socket.
const maxControlBody = 16 << 20

// controlClient calls the control socket of a running session.
type controlClient struct {
	home, id string
	check    func(net.Conn) error // accepts the socket's other end before anything is sent; nil accepts any
}

// call sends one request and returns the body of the response. A response that
// is not a success is an error with the session's message.
func (c controlClient) call(ctx context.Context, method, path string, body io.Reader) ([]byte, error) {
	client := &http.Client{Timeout: controlTimeout, Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return c.dial(ctx) },
	}}
	defer client.CloseIdleConnections()
	req, err := http.NewRequestWithContext(ctx, method, "http://session"+path, body)
	if err != nil {
		return nil, err
	}
	res, err := client.Do(req)
	if errors.Is(err, unixsocket.ErrForeign) {
		return nil, unixsocket.ErrForeign
	}
	if err != nil {
		return nil, errors.New("the session does not answer on its control socket")
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(res.Body, maxControlBody))
	if err != nil {
		return nil, errors.New("the session's response was cut short")
	}
	if res.StatusCode >= 300 {
		return nil, refusedBy(res.StatusCode, raw)
	}
	return raw, nil
}

// dial connects to the control socket.
func (c controlClient) dial(ctx context.Context) (net.Conn, error) {
	conn, err := unixsocket.Dial(ctx, filepath.Join(sessionsDir(c.home), c.id, "control.sock"))
	if err != nil || c.check == nil {
		return conn, err
	}
	if err := c.check(conn); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return conn, nil
}

// refusedBy returns the error of a response that respondError wrote.
func refusedBy(status int, raw []byte) error {
	var body struct {
		Error struct {
			Message string `json:"message"`
		} `json:"error"`
	}
	if json.Unmarshal(raw, &body) != nil || body.Error.Message == "" {
		return fmt.Errorf("the session refused with status %d", status)
	}
	return fmt.Errorf("the session refused with status %d: %s", status, body.Error.Message)
}
