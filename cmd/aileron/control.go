package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strconv"
	"time"

	"github.com/ALRubinger/aileron/audit"
)

// control serves the owner's endpoints on sessions/<id>/control.sock. No box
// ever sees this socket; its mode is what guards it.
func (s *session) control(ctx context.Context) error {
	path := filepath.Join(s.dir, "control.sock")
	l, err := listenUnix(path, 0o600)
	if err != nil {
		return fmt.Errorf("open the control socket: %w", err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { answer(w, 200, map[string]string{"status": "ok"}) })
	mux.HandleFunc("GET /v1/session", func(w http.ResponseWriter, _ *http.Request) { answer(w, 200, s.plane.Describe()) })
	mux.HandleFunc("POST /v1/session/stop", s.controlStop)
	mux.HandleFunc("GET /v1/audit", s.controlAudit)
	mux.HandleFunc("GET /v1/audit/{id}", func(w http.ResponseWriter, r *http.Request) {
		row, err := s.audit.Get(r.Context(), r.PathValue("id"))
		if err != nil {
			answerError(w, 404, "invalid_request", "not_found", "there is no such audit row")
			return
		}
		answer(w, 200, row)
	})
	mux.HandleFunc("GET /v1/vault/status", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, 200, map[string]bool{"initialised": s.vault.Initialised(), "locked": !s.vault.Unlocked() || s.vault.LockedForAll()})
	})
	mux.HandleFunc("POST /v1/vault/unlock", s.controlUnlock)
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second, ErrorLog: nil}
	s.serving.Go(func() {
		ended := make(chan struct{})
		stop := context.AfterFunc(ctx, func() {
			defer close(ended)
			// What is under way gets its answer.
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
			defer cancel()
			if server.Shutdown(ctx) != nil {
				_ = server.Close()
			}
		})
		_ = server.Serve(l)
		if !stop() {
			<-ended
		}
	})
	return nil
}

// controlStop ends the session once the answer has left: the end does not wait
// for it.
func (s *session) controlStop(w http.ResponseWriter, _ *http.Request) {
	answer(w, 202, map[string]string{"status": "stopping"})
	_ = http.NewResponseController(w).Flush() // whoever asked may be gone
	s.ask()
}

func (s *session) controlAudit(w http.ResponseWriter, r *http.Request) {
	limit := 100
	if raw := r.URL.Query().Get("limit"); raw != "" {
		n, err := strconv.Atoi(raw)
		if err != nil || n < 0 {
			answerError(w, 400, "invalid_request", "malformed_request", "limit is not a number")
			return
		}
		limit = n
	}
	rows, err := s.audit.List(r.Context(), audit.Filter{Session: s.id, Limit: limit, Newest: true})
	if err != nil {
		answerError(w, 503, "unavailable", "audit_unavailable", "the audit log cannot be read")
		return
	}
	if rows == nil {
		rows = []audit.Row{}
	}
	answer(w, 200, rows)
}

// controlUnlock opens the vault of a running session again after a lock.
func (s *session) controlUnlock(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Passphrase string `json:"passphrase"`
	}
	if err := json.NewDecoder(io.LimitReader(r.Body, 64<<10)).Decode(&body); err != nil {
		answerError(w, 400, "invalid_request", "malformed_request", "the body is not {\"passphrase\":…}")
		return
	}
	if err := s.vault.Unlock([]byte(body.Passphrase)); err != nil {
		answerError(w, 403, "capability_denied", "vault_locked", "the passphrase is wrong")
		return
	}
	s.grants.refresh(r.Context(), true)
	answer(w, 200, map[string]bool{"locked": false})
}

func answer(w http.ResponseWriter, status int, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		status, body = http.StatusInternalServerError, []byte("{}")
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)+1))
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n'))
}

func answerError(w http.ResponseWriter, status int, class, reason, message string) {
	answer(w, status, map[string]any{"error": map[string]any{
		"class": class, "message": message, "requested": "", "granted": []string{}, "audit_id": "",
		"retriable": false, "details": map[string]string{"reason": reason},
	}})
}

// callControl sends one request to a running session's control socket. On a
// busy machine a session takes its time: to unlock, it derives a key.
func callControl(ctx context.Context, home, id, method, path string, body io.Reader) ([]byte, error) {
	socket := filepath.Join(home, "sessions", id, "control.sock")
	client := &http.Client{Timeout: time.Minute, Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return dialUnix(ctx, socket)
		},
	}}
	defer client.CloseIdleConnections()
	req, err := http.NewRequestWithContext(ctx, method, "http://session"+path, body)
	if err != nil {
		return nil, err
	}
	res, err := client.Do(req)
	if err != nil {
		return nil, errors.New("the session does not answer on its control socket")
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(res.Body, 16<<20))
	if err != nil {
		return nil, errors.New("the session's answer broke off")
	}
	if res.StatusCode >= 300 {
		return nil, fmt.Errorf("the session refused with status %d", res.StatusCode)
	}
	return raw, nil
}
