package protocol

import (
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ALRubinger/aileron/e2e/stub"
)

// server is the origin: one set of answers behind listeners that speak
// different versions of HTTP.
type server struct {
	roots   string            // PEM file of the root that it is trusted by
	resolve map[string]string // host:port to the listener
	tls     *tls.Config

	mu      sync.Mutex
	seen    []seen
	held    map[string]chan struct{} // by path
	closers []func()

	conns atomic.Int64 // connections accepted
	moved atomic.Int64 // body bytes read or written by the body handlers
	gone  atomic.Int64 // requests whose client went away
}

// seen is one request that reached the origin.
type seen struct {
	Method, Path, Proto, Auth, Expect, AcceptEncoding string
	Length                                            int64
	Chunked                                           bool
}

func startServer(dir string) (*server, error) {
	root, config, err := stub.Authority()
	if err != nil {
		return nil, err
	}
	s := &server{roots: filepath.Join(dir, "origin.pem"), tls: config, resolve: map[string]string{},
		held: map[string]chan struct{}{}}
	if err := os.WriteFile(s.roots, root, 0o600); err != nil {
		return nil, err
	}
	for _, door := range []struct {
		hosts     []string
		protocols string
	}{
		{[]string{hostH1 + ":443", hostPort + ":8443"}, "1"},
		{[]string{hostH2 + ":443"}, "12"},
		{[]string{hostOnly2 + ":443"}, "2"},
		{[]string{hostOpen + ":80"}, ""},
	} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		for _, host := range door.hosts {
			s.resolve[host] = l.Addr().String()
		}
		s.serve(l, door.protocols)
	}
	return s, errors.Join(s.serveGRPC(), s.serveSocket(), s.serveOdd())
}

// serve answers on l with TLS and these versions of HTTP; none is in clear.
func (s *server) serve(l net.Listener, protocols string) {
	h := &http.Server{Handler: s, TLSConfig: s.tls.Clone(), ReadHeaderTimeout: time.Minute,
		ErrorLog: log.New(io.Discard, "", 0), ConnState: func(_ net.Conn, state http.ConnState) {
			if state == http.StateNew {
				s.conns.Add(1)
			}
		}}
	done := make(chan struct{})
	if protocols == "" {
		go func() { defer close(done); _ = h.Serve(l) }()
	} else {
		h.Protocols = &http.Protocols{}
		h.Protocols.SetHTTP1(strings.Contains(protocols, "1"))
		h.Protocols.SetHTTP2(strings.Contains(protocols, "2"))
		if protocols == "2" {
			// crypto/tls lets those that offer http/1.1 alone in, to be turned
			// away later: RFC 7301 section 3.2 asks for an alert.
			h.TLSConfig.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
				if slices.Contains(hello.SupportedProtos, "h2") {
					return nil, nil
				}
				strict := s.tls.Clone()
				strict.NextProtos = []string{"none"}
				return strict, nil
			}
		}
		go func() { defer close(done); _ = h.ServeTLS(l, "", "") }()
	}
	s.closers = append(s.closers, func() { _ = h.Close(); <-done })
}

func (s *server) close() {
	for _, f := range s.closers {
		f()
	}
}

// take returns the requests of a path that were seen since the last call.
func (s *server) take(path string) []seen {
	s.mu.Lock()
	defer s.mu.Unlock()
	var took []seen
	s.seen = slices.DeleteFunc(s.seen, func(r seen) bool {
		if r.Path == path {
			took = append(took, r)
		}
		return r.Path == path
	})
	return took
}

// hold makes a path wait until the channel is closed.
func (s *server) hold(path string) chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := make(chan struct{})
	s.held[path] = c
	return c
}

func (s *server) wait(r *http.Request) {
	s.mu.Lock()
	c := s.held[r.URL.Path]
	s.mu.Unlock()
	if c == nil {
		return
	}
	select {
	case <-c:
	case <-r.Context().Done():
		s.gone.Add(1)
	}
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.seen = append(s.seen, seen{r.Method, r.URL.Path, r.Proto, r.Header.Get("Authorization"), r.Header.Get("Expect"),
		r.Header.Get("Accept-Encoding"),
		r.ContentLength, len(r.TransferEncoding) > 0})
	s.mu.Unlock()
	if !strings.HasPrefix(r.Host, hostOpen) && !strings.HasPrefix(r.Host, "127.0.0.1:") &&
		r.Header.Get("Authorization") != "Bearer "+secret {
		http.Error(w, "no", http.StatusUnauthorized)
		return
	}
	w.Header().Set("X-Origin-Proto", r.Proto)
	name, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/v1/"), "/") // what follows tells tests apart
	switch name {
	case "early":
		w.Header().Set("Link", "</style.css>; rel=preload; as=style")
		w.WriteHeader(http.StatusEarlyHints)
		fmt.Fprint(w, "late")
	case "put":
		s.put(w, r)
	case "get":
		s.get(w, r)
	case "trailers":
		w.Header().Set("Trailer", "X-Checksum")
		fmt.Fprint(w, "body")
		// With a Content-Length, curl's HTTP/2 does not wait for trailers.
		_ = http.NewResponseController(w).Flush()
		w.Header().Set("X-Checksum", "abc")
		w.Header().Set(http.TrailerPrefix+"X-Echo", r.Header.Get("Authorization"))
	case "204":
		w.WriteHeader(http.StatusNoContent)
	case "304":
		w.Header().Set("Etag", `"v1"`)
		w.WriteHeader(http.StatusNotModified)
	case "length":
		w.Header().Set("Content-Length", "12345")
		if r.Method != http.MethodHead {
			_, _ = io.CopyN(w, zeros{}, 12345)
		}
	case "stream":
		s.events(w, r)
	case "abort":
		if r.URL.Query().Get("chunked") == "" {
			w.Header().Set("Content-Length", "1000")
		}
		fmt.Fprint(w, "half")
		_ = http.NewResponseController(w).Flush()
		s.wait(r)
		panic(http.ErrAbortHandler)
	case "refuse": // without reading the body
		http.Error(w, "not this", http.StatusRequestEntityTooLarge)
	case "hold":
		s.wait(r)
		fmt.Fprint(w, "released")
	default:
		if strings.HasPrefix(r.URL.Path, "/parts/") {
			http.ServeContent(w, r, "blob.bin", time.Unix(1700000000, 0), strings.NewReader(strings.Repeat("0123456789", 1000)))
			return
		}
		fmt.Fprint(w, "hello")
	}
}

// put reads the body and reports what came.
func (s *server) put(w http.ResponseWriter, r *http.Request) {
	s.wait(r)
	sum := sha256.New()
	n, err := io.Copy(io.MultiWriter(sum, counter{&s.moved}), r.Body)
	if err != nil {
		s.gone.Add(1)
		panic(http.ErrAbortHandler) // net/http would answer 200
	}
	fmt.Fprintf(w, "%d %s", n, hex.EncodeToString(sum.Sum(nil)))
}

// get answers with as many zeros as are asked for, chunked when asked to.
func (s *server) get(w http.ResponseWriter, r *http.Request) {
	n, _ := strconv.ParseInt(r.URL.Query().Get("n"), 10, 64)
	if r.URL.Query().Get("chunked") == "" {
		w.Header().Set("Content-Length", strconv.FormatInt(n, 10))
	}
	if _, err := io.CopyN(io.MultiWriter(w, counter{&s.moved}), zeros{}, n); err != nil {
		s.gone.Add(1)
	}
}

// events sends what is said, as it is said, until "" is.
func (s *server) events(w http.ResponseWriter, r *http.Request) {
	w.Header()["Content-Type"] = []string{r.URL.Query().Get("type")}
	if r.URL.Query().Get("type") == "" {
		w.Header()["Content-Type"] = nil
	}
	w.WriteHeader(http.StatusOK)
	_ = http.NewResponseController(w).Flush()
	for {
		select {
		case line := <-say:
			if line == "" {
				return
			}
			_, _ = io.WriteString(w, line)
			_ = http.NewResponseController(w).Flush()
		case <-r.Context().Done():
			s.gone.Add(1)
			return
		}
	}
}

// say feeds the one /v1/stream that is under way.
var say = make(chan string)

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

type counter struct{ n *atomic.Int64 }

func (c counter) Write(p []byte) (int, error) { c.n.Add(int64(len(p))); return len(p), nil }

func sum(data []byte) string {
	h := sha256.Sum256(data)
	return hex.EncodeToString(h[:])
}
