// Package services has stand-ins for the services of the catalogue, under their real names: code hosts with real
// repositories, registries with a package each, model providers, mail, calendars and chat. They demand the credential
// that belongs to each, and that none comes where none belongs. [Start] starts them; e2e/catalog and e2e/day run
// clients against them.
package services

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

	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/e2e/stub"
)

// Canaries that open nothing: they exist to be searched for.
const (
	Token = "ghp_services/TOKEN+0123456789abcdefXYZ"  // GitHub, GitLab, and what is not a model provider
	Key   = "sk-ant-services/KEY+9876543210fedcbaZYX" // the model providers
)

// Origin stands in for the services of the catalogue.
type Origin struct {
	*stub.Server
	SumDB string // the value of GOSUMDB for its checksum database

	root     string // of GitHub's repositories
	plain    string // 127.0.0.1:port
	services map[string]http.Handler
}

// plainHosts are asked without TLS, too, or only so.
var plainHosts = []string{"deb.debian.org:80", "archive.ubuntu.com:80", "dl-cdn.alpinelinux.org:80",
	"local-model.test:11434"}

// Start serves until the test ends. Repository is a directory with the files of the repository acme/tool, or "" for
// one file; image has the program gem, which makes a gem for RubyGems.org, or is "" for none.
func Start(t *testing.T, repository, image string, script stub.Script) *Origin {
	t.Helper()
	o := &Origin{services: map[string]http.Handler{}}
	o.addCodeHosts(t, repository)
	o.addRegistries(t)
	if image != "" {
		o.addGems(t, image)
	}
	o.addModels()
	o.addApps()
	script.Token, script.Key, script.Services = Token, Key, o.services
	o.Server = stub.Start(t, script)
	o.plain = o.servePlain(t)
	return o
}

// Repository returns the directory of a bare repository, such as acme/tool.git.
func (o *Origin) Repository(name string) string { return filepath.Join(o.root, name) }

// servePlain serves the same without TLS.
func (o *Origin) servePlain(t *testing.T) string {
	t.Helper()
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
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

// Addresses are the origin's addresses by host and port.
func (o *Origin) Addresses() map[string]string {
	at := map[string]string{stub.OpenAI + ":443": o.Addr, stub.Anthropic + ":443": o.Addr, stub.Router + ":443": o.Addr}
	for host := range o.services {
		at[host+":443"] = o.Addr
	}
	for _, authority := range plainHosts {
		host, _, _ := strings.Cut(authority, ":")
		delete(at, host+":443")
		at[authority] = o.plain
	}
	at["dl-cdn.alpinelinux.org:443"] = o.Addr
	return at
}

// The responses of models, which their libraries read.
const (
	completion = `{"id": "c", "object": "chat.completion", "created": 1, "model": "m", "system_fingerprint": null, ` +
		`"choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "of the model"}}], ` +
		`"usage": {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}}`
	candidates = `{"modelVersion": "m", "candidates": [{"index": 0, "finishReason": "STOP", "content": ` +
		`{"role": "model", "parts": [{"text": "of the model"}]}}], "usageMetadata": {"promptTokenCount": 1}}`
)

// addModels adds the model providers that package stub does not have.
func (o *Origin) addModels() {
	model := func(response string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, response)
		})
	}
	o.services["generativelanguage.googleapis.com"] = guarded("X-Goog-Api-Key", Key, model(candidates))
	o.services["local-model.test"] = Unguarded(model(completion))
}

// addApps adds Google's mail and calendars, Linear and Slack, each with one answer.
func (o *Origin) addApps() {
	for host, answer := range map[string]string{
		"gmail.googleapis.com": `{"messages": [{"id": "m1", "threadId": "of the mail"}]}`,
		"www.googleapis.com":   `{"items": [{"id": "e1", "summary": "of the calendar"}]}`,
		"api.linear.app":       `{"data": {"viewer": {"name": "of Linear"}}}`,
		"slack.com":            `{"ok": true, "channel": "C1", "ts": "1.2", "text": "of the channel"}`,
	} {
		o.services[host] = guarded("Authorization", "Bearer "+Token, http.HandlerFunc(
			func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				_, _ = io.WriteString(w, answer)
			}))
	}
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

// Unguarded demands that no credential comes.
func Unguarded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for field, values := range r.Header {
			for _, value := range values {
				if strings.Contains(value, Token) || strings.Contains(value, Key) || strings.Contains(value, basicToken()) {
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
	return Unguarded(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, s+"\n") }))
}

func write(t *testing.T, data string, path ...string) {
	t.Helper()
	must.Do(t, os.WriteFile(filepath.Join(path...), []byte(data), 0o600))
}
