// Package stub holds a server that stands in, in tests, for services that
// a test machine cannot reach: the GitHub API, two model providers, and an
// API that repeats whatever it is sent. It serves TLS on loopback under the
// services' real names and a throwaway root, demands the real credential, and
// keeps what it saw: that a request was never sent is asked here.
//
// It imports nothing of ours, so that it cannot share our mistakes.
package stub

import (
	"bytes"
	"encoding/json"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/e2e/must"
)

// The names that a Server answers to.
const (
	GitHub    = "api.github.com"
	Anthropic = "api.anthropic.com"
	Claude    = "platform.claude.com"
	OpenAI    = "api.openai.com"
	Router    = "openrouter.ai"
	Echo      = "api.echo.example"
)

// Script is what a test wants of a Server.
type Script struct {
	Token   string // the bearer that GitHub and Echo demand
	Key     string // the key that the model providers demand
	Command string // the shell command that the model asks for, once; "": it asks for none
	Tool    string // the end of the name of a tool that the model calls first, without arguments; "": none
	Hold    bool   // the model's answer to the command's result waits for Release

	// Again makes Anthropic's model say that it waits, and ask for the command again, as long as the command's result
	// is that of a request that needs an approval.
	Again bool

	// Subscription makes Anthropic demand the key as a bearer, as the token of a
	// subscription is one.
	Subscription bool

	// Streams leaves the bodies of requests to the handlers, and keeps none.
	Streams bool

	// Services are further hosts, or others in the place of those above.
	Services map[string]http.Handler
}

// Server answers for all the names above.
type Server struct {
	Addr  string // 127.0.0.1:port
	Roots string // a PEM file with the root that vouches for it

	// Release, once closed, lets go on what stalls: GET /stall at Echo, and a
	// model that is held.
	Release chan struct{}

	script      Script
	connections atomic.Int64
	mu          sync.Mutex
	seen        []Seen
}

// Seen is one request as it arrived.
type Seen struct {
	Method, Host, Path, Query string
	Header                    http.Header
	Body                      string // its beginning, up to a MiB
}

// Auth is the Authorization that came with the request.
func (s Seen) Auth() string { return s.Header.Get("Authorization") }

// APIKey is the X-Api-Key that came with the request.
func (s Seen) APIKey() string { return s.Header.Get("X-Api-Key") }

// Start serves until the test ends.
func Start(t testing.TB, script Script) *Server {
	t.Helper()
	root, config, err := Authority()
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{Roots: filepath.Join(t.TempDir(), "root.pem"), script: script, Release: make(chan struct{})}
	must.Do(t, os.WriteFile(s.Roots, root, 0o600))
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	s.Addr = l.Addr().String()
	server := &http.Server{
		Handler:           s.handler(),
		ReadHeaderTimeout: time.Minute,
		TLSConfig:         config,
		ErrorLog:          log.New(io.Discard, "", 0), // broken handshakes are what some tests are about
	}
	served := make(chan struct{})
	go func() { defer close(served); _ = server.ServeTLS(counted{l, &s.connections}, "", "") }()
	t.Cleanup(func() { _ = server.Close(); <-served })
	return s
}

// Seen is what has arrived so far.
func (s *Server) Seen() []Seen {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.seen)
}

// Connections counts the TCP connections so far, whatever came of them.
func (s *Server) Connections() int { return int(s.connections.Load()) }

type counted struct {
	net.Listener
	n *atomic.Int64
}

func (c counted) Accept() (net.Conn, error) {
	conn, err := c.Listener.Accept()
	if err == nil {
		c.n.Add(1)
	}
	return conn, err
}

// handler records every request, then asks the service that it names.
func (s *Server) handler() http.Handler {
	bearer := func(r *http.Request) bool {
		auth := r.Header.Values("Authorization")
		return len(auth) == 1 && (auth[0] == "Bearer "+s.script.Token || auth[0] == "token "+s.script.Token)
	}
	key := func(r *http.Request) bool { return r.Header.Get("Authorization") == "Bearer "+s.script.Key }
	services := map[string]http.Handler{
		GitHub: guard(s.github(), bearer),
		Echo:   guard(s.echo(), bearer),
		OpenAI: guard(s.openai(), key),
		Router: guard(s.openai(), key),
		Anthropic: guard(s.anthropic(),
			func(r *http.Request) bool {
				if s.script.Subscription {
					return open(r) || r.Header.Get("Authorization") == "Bearer "+s.script.Key && r.Header.Get("X-Api-Key") == ""
				}
				return open(r) || r.Header.Get("X-Api-Key") == s.script.Key
			}),
		Claude: guard(s.anthropic(), open),
	}
	maps.Copy(services, s.script.Services)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.record(r)
		host, _, _ := strings.Cut(r.Host, ":") // a service answers on every port
		service, ok := services[host]
		if !ok {
			answer(w, http.StatusMisdirectedRequest, map[string]any{"message": "no such host here"})
			return
		}
		service.ServeHTTP(w, r)
	})
}

// open are the paths that want no key.
func open(r *http.Request) bool { return r.URL.Path == "/api/hello" || r.URL.Path == "/v1/oauth/hello" }

func guard(next http.Handler, allowed func(*http.Request) bool) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !allowed(r) {
			answer(w, http.StatusUnauthorized, map[string]any{"message": "Bad credentials"})
			return
		}
		next.ServeHTTP(w, r)
	})
}

// record keeps a request; handlers get the beginning of its body.
func (s *Server) record(r *http.Request) {
	var body []byte
	if !s.script.Streams {
		body, _ = io.ReadAll(io.LimitReader(r.Body, 1<<20))
		_, _ = io.Copy(io.Discard, r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen = append(s.seen, Seen{Method: r.Method, Host: r.Host, Path: r.URL.EscapedPath(), Query: r.URL.RawQuery,
		Header: r.Header.Clone(), Body: string(body)})
}

func reply(w http.ResponseWriter, v any) { answer(w, http.StatusOK, v) }

func answer(w http.ResponseWriter, code int, v any) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(v)
}
