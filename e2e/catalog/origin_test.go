package catalog

import (
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/e2e/stub"
)

// origin stands in for the services of the catalogue.
type origin struct {
	roots      string // a PEM file
	tls, plain string // 127.0.0.1:port
	services   map[string]http.Handler
}

// plainHosts are asked without TLS, too, or only so.
var plainHosts = []string{"deb.debian.org:80", "archive.ubuntu.com:80", "dl-cdn.alpinelinux.org:80",
	"local-model.test:11434"}

func startOrigin(t *testing.T, image, project string) *origin {
	t.Helper()
	o := &origin{services: map[string]http.Handler{}}
	o.addCodeHosts(t)
	o.addRegistries(t, project)
	o.addGems(t, image)
	o.addModels()
	s := stub.Start(t, stub.Script{Token: token, Key: key, Services: o.services})
	o.roots, o.tls, o.plain = s.Roots, s.Addr, o.servePlain(t)
	return o
}

// servePlain serves the same without TLS.
func (o *origin) servePlain(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{ReadHeaderTimeout: time.Minute, ErrorLog: log.New(io.Discard, "", 0),
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			host, _, _ := strings.Cut(r.Host, ":")
			if service := o.services[host]; service != nil {
				service.ServeHTTP(w, r)
				return
			}
			http.Error(w, "no such host here", http.StatusMisdirectedRequest)
		})}
	served := make(chan struct{})
	go func() { defer close(served); _ = server.Serve(l) }()
	t.Cleanup(func() { _ = server.Close(); <-served })
	return l.Addr().String()
}

// addresses are the origin's addresses by host and port.
func (o *origin) addresses() map[string]string {
	at := map[string]string{stub.OpenAI + ":443": o.tls, stub.Anthropic + ":443": o.tls}
	for host := range o.services {
		at[host+":443"] = o.tls
	}
	for _, authority := range plainHosts {
		host, _, _ := strings.Cut(authority, ":")
		delete(at, host+":443")
		at[authority] = o.plain
	}
	at["dl-cdn.alpinelinux.org:443"] = o.tls
	return at
}

// addModels adds the model providers that package stub does not have.
func (o *origin) addModels() {
	model := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"model": "m", "usage": {"prompt_tokens": 1, "completion_tokens": 2}}`)
	})
	o.services["generativelanguage.googleapis.com"] = guarded("X-Goog-Api-Key", key, model)
	o.services["openrouter.ai"] = guarded("Authorization", "Bearer "+key, model)
	o.services["local-model.test"] = unguarded(model)
}

// guarded demands a value of a field, which the client does not have.
func guarded(field, want string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if got := r.Header.Values(field); len(got) != 1 || got[0] != want {
			http.Error(w, `{"message":"Bad credentials"}`, http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// unguarded demands that no credential comes.
func unguarded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for field, values := range r.Header {
			for _, value := range values {
				if strings.Contains(value, token) || strings.Contains(value, key) || strings.Contains(value, basicToken()) {
					http.Error(w, "a credential came in "+field, http.StatusBadRequest)
					return
				}
			}
		}
		next.ServeHTTP(w, r)
	})
}

// served is fixed bytes by path, without a query; it reads only.
type served map[string][]byte

func (s served) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	data, ok := s[r.URL.Path]
	switch {
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		http.Error(w, "this reads only", http.StatusMethodNotAllowed)
		return
	case !ok:
		http.NotFound(w, r)
		return
	case strings.HasPrefix(r.URL.Path, "/simple/"):
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
	case len(data) > 0 && data[0] == '{':
		w.Header().Set("Content-Type", "application/json")
	default:
		w.Header().Set("Content-Type", "application/octet-stream")
	}
	w.Header().Set("Content-Length", fmt.Sprint(len(data)))
	_, _ = w.Write(data)
}

// text is a service that answers with one text.
func text(s string) http.Handler {
	return unguarded(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, s+"\n") }))
}

func write(t *testing.T, data string, path ...string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(path...), []byte(data), 0o600); err != nil {
		t.Fatal(err)
	}
}
