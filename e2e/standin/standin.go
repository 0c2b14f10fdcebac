// Package standin holds servers that stand in for real services in tests,
// because the real ones cannot be reached from a test machine: the GitHub
// API, and a model provider that speaks Anthropic's protocol. They serve TLS
// on loopback, under a root of their own, for the services' real names.
package standin

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/ca"
)

// Seen is one request that reached a stand-in.
type Seen struct {
	Method, Host, Path, Query, Auth, APIKey, Body string
}

// Server is a stand-in for some hosts.
type Server struct {
	Addr  string // 127.0.0.1:port
	Roots string // PEM file of the root that it is trusted by

	// Release lets GET /stall go on.
	Release chan struct{}

	mu   sync.Mutex
	seen []Seen
	key  string
	tool string
}

// Start serves until the test ends. key is what every request must carry as a
// bearer or an x-api-key; tool is the shell command that the model asks for.
func Start(t testing.TB, key, tool string) *Server {
	t.Helper()
	authority, err := ca.NewSession(ca.Options{Session: "stand-in"})
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{Roots: filepath.Join(t.TempDir(), "root.pem"), key: key, tool: tool, Release: make(chan struct{})}
	if err := os.WriteFile(s.Roots, authority.RootPEM(), 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{MinVersion: tls.VersionTLS12,
		GetCertificate: func(h *tls.ClientHelloInfo) (*tls.Certificate, error) { return authority.Leaf(h.ServerName) }})
	if err != nil {
		t.Fatal(err)
	}
	s.Addr = l.Addr().String()
	mux := http.NewServeMux()
	s.github(mux)
	s.anthropic(mux)
	server := &http.Server{Handler: s.guard(mux), ReadHeaderTimeout: time.Minute, BaseContext: func(net.Listener) context.Context { return context.Background() }}
	served := make(chan struct{})
	go func() { defer close(served); _ = server.Serve(l) }()
	t.Cleanup(func() { _ = server.Close(); <-served })
	return s
}

// Seen is what reached the stand-in so far.
func (s *Server) Seen() []Seen {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Seen{}, s.seen...)
}

func (s *Server) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(strings.NewReader(string(body)))
		s.mu.Lock()
		s.seen = append(s.seen, Seen{r.Method, r.Host, r.URL.EscapedPath(), r.URL.RawQuery, r.Header.Get("Authorization"), r.Header.Get("X-Api-Key"), string(body)})
		s.mu.Unlock()
		auth := r.Header.Get("Authorization")
		if auth != "Bearer "+s.key && auth != "token "+s.key && r.Header.Get("X-Api-Key") != s.key {
			http.Error(w, `{"message":"Bad credentials"}`, http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func reply(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	_ = json.NewEncoder(w).Encode(v)
}

func (s *Server) github(mux *http.ServeMux) {
	mux.HandleFunc("GET /user", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Oauth-Scopes", "repo")
		w.Header().Set("X-Echoed", r.Header.Get("Authorization"))
		reply(w, map[string]any{"login": "octo-stand-in", "id": 1})
	})
	mux.HandleFunc("GET /repos/{owner}/{repo}", func(w http.ResponseWriter, r *http.Request) {
		reply(w, map[string]any{"full_name": r.PathValue("owner") + "/" + r.PathValue("repo"), "private": true})
	})
	// The next two are named by the example connector; what they answer is a
	// hostile server's: the credential, whole and in pieces.
	mux.HandleFunc("GET /rate_limit", func(w http.ResponseWriter, r *http.Request) {
		reply(w, map[string]any{"echo": r.Header.Get("Authorization")})
	})
	mux.HandleFunc("GET /user/repos", func(w http.ResponseWriter, r *http.Request) {
		for _, c := range []byte("in pieces: " + r.Header.Get("Authorization") + " end") {
			_, _ = w.Write([]byte{c})
			_ = http.NewResponseController(w).Flush()
		}
	})
	mux.HandleFunc("GET /search/code", func(_ http.ResponseWriter, r *http.Request) {
		select { // stalls until the test or the client ends it
		case <-s.Release:
		case <-r.Context().Done():
		case <-time.After(time.Minute):
		}
	})
	mux.HandleFunc("POST /graphql", func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if strings.Contains(string(body), "issues") {
			reply(w, map[string]any{"data": map[string]any{"repository": map[string]any{"hasIssuesEnabled": true,
				"issues": map[string]any{"totalCount": 1, "pageInfo": map[string]any{"hasNextPage": false, "endCursor": ""},
					"nodes": []any{map[string]any{"number": 7, "title": "An issue of the stand-in", "state": "OPEN", "url": "https://github.com/o/r/issues/7",
						"updatedAt": "2026-01-02T03:04:05Z", "labels": map[string]any{"nodes": []any{}, "totalCount": 0}}}}}}})
			return
		}
		reply(w, map[string]any{"data": map[string]any{"viewer": map[string]any{"login": "octo-stand-in"}}})
	})
}

// anthropic answers a prompt with one call of a shell tool, and a prompt that
// carries a tool's result with a final text.
func (s *Server) anthropic(mux *http.ServeMux) {
	mux.HandleFunc("POST /v1/messages/count_tokens", func(w http.ResponseWriter, _ *http.Request) { reply(w, map[string]int{"input_tokens": 10}) })
	mux.HandleFunc("POST /v1/messages", func(w http.ResponseWriter, r *http.Request) {
		var req struct {
			Model    string `json:"model"`
			Messages json.RawMessage
			Tools    []struct {
				Name string `json:"name"`
			} `json:"tools"`
		}
		if err := json.NewDecoder(r.Body).Decode(&req); err != nil {
			http.Error(w, "bad request", http.StatusBadRequest)
			return
		}
		shell := ""
		for _, t := range req.Tools {
			if strings.EqualFold(t.Name, "bash") || t.Name == "shell" {
				shell = t.Name
			}
		}
		w.Header().Set("Content-Type", "text/event-stream")
		send := func(event string, v map[string]any) {
			v["type"] = event
			raw, _ := json.Marshal(v)
			fmt.Fprintf(w, "event: %s\ndata: %s\n\n", event, raw)
			_ = http.NewResponseController(w).Flush()
		}
		send("message_start", map[string]any{"message": map[string]any{"id": "msg_1", "type": "message", "role": "assistant", "model": req.Model,
			"content": []any{}, "stop_reason": nil, "stop_sequence": nil, "usage": map[string]int{"input_tokens": 10, "output_tokens": 1}}})
		stop := "end_turn"
		if shell != "" && !strings.Contains(string(req.Messages), "tool_result") {
			stop = "tool_use"
			input, _ := json.Marshal(map[string]string{"command": s.tool, "description": "Runs the test's command"})
			send("content_block_start", map[string]any{"index": 0, "content_block": map[string]any{"type": "tool_use", "id": "toolu_1", "name": shell, "input": map[string]any{}}})
			send("content_block_delta", map[string]any{"index": 0, "delta": map[string]any{"type": "input_json_delta", "partial_json": string(input)}})
		} else {
			send("content_block_start", map[string]any{"index": 0, "content_block": map[string]any{"type": "text", "text": ""}})
			send("content_block_delta", map[string]any{"index": 0, "delta": map[string]any{"type": "text_delta", "text": "All done, says the stand-in."}})
		}
		send("content_block_stop", map[string]any{"index": 0})
		send("message_delta", map[string]any{"delta": map[string]any{"stop_reason": stop, "stop_sequence": nil}, "usage": map[string]int{"output_tokens": 5}})
		send("message_stop", map[string]any{})
	})
}
