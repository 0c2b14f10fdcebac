package matrix

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"log"
	mathrand "math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/e2e/harness"
	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/e2e/stub"
)

const (
	bigBytes = 50_000_000
	events   = 3
)

// origin stands in for all the services of the matrix, on loopback, under
// their own names.
type origin struct {
	roots string // a PEM file with the root that vouches for it
	big   []byte // what a big transfer carries: nothing compresses it
	sum   string // of big
	sites map[string]site
	git   *gitSite

	tls, plain string // 127.0.0.1:port
	acks       string // where the driver marks which events have come

	mu   sync.Mutex
	late map[string]int // events that went before the one before had come
}

type site struct {
	http.Handler
	plain bool // http://, port 80
}

// wanted is what a cell must bring.
type wanted struct {
	bytes int64
	sha   string
	path  string // host and path whose row the audit log must have once; "" for none
}

func startOrigin(t *testing.T, acks string, at registries) *origin {
	t.Helper()
	o := &origin{roots: filepath.Join(t.TempDir(), "roots.pem"), big: make([]byte, bigBytes), acks: acks,
		late: map[string]int{}}
	_, _ = mathrand.NewChaCha8([32]byte{50}).Read(o.big)
	o.sum = sha256hex(o.big)
	o.git = o.newGit(t)
	index, wheels := o.pypi(t)
	sparse, crates := o.crates(t)
	o.sites = map[string]site{
		"api.github.com":         {Handler: guarded("Bearer "+token, o.api())},
		"github.com":             {Handler: guarded(basic(gitUser, password), o.git)},
		"pypi.org":               {Handler: index},
		"files.pythonhosted.org": {Handler: wheels},
		"index.crates.io":        {Handler: sparse},
		"static.crates.io":       {Handler: crates},
		"s3.amazonaws.com":       {Handler: o.s3()},
		at.npm.Host:              {Handler: o.npm(t, at.npm.Host)},
		at.goproxy.Host:          {Handler: o.goproxy(t)},
		at.apt.Host:              {Handler: o.debian(), plain: at.apt.Scheme == "http"},
	}
	handler := func(plain bool) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			s, ok := o.sites[r.Host]
			if !ok || s.plain != plain {
				http.Error(w, "no such host here", http.StatusMisdirectedRequest)
				return
			}
			s.ServeHTTP(w, r)
		})
	}
	root, config, err := stub.Authority()
	if err == nil {
		err = os.WriteFile(o.roots, root, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	o.tls, o.plain = serve(t, handler(false), config), serve(t, handler(true), nil)
	return o
}

func serve(t *testing.T, h http.Handler, config *tls.Config) string {
	t.Helper()
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	server := &http.Server{Handler: h, TLSConfig: config, ReadHeaderTimeout: time.Minute,
		ErrorLog: log.New(io.Discard, "", 0)}
	served := make(chan struct{})
	go func() {
		defer close(served)
		if config == nil {
			_ = server.Serve(l)
		} else {
			_ = server.ServeTLS(l, "", "")
		}
	}()
	t.Cleanup(func() { _ = server.Close(); <-served })
	return l.Addr().String()
}

// authorities are the origin's names, each with its port and its address.
func (o *origin) authorities() map[string]string {
	found := map[string]string{}
	for host, s := range o.sites {
		if s.plain {
			found[host+":80"] = o.plain
		} else {
			found[host+":443"] = o.tls
		}
	}
	return found
}

// guarded demands the credential, which the client does not have.
func guarded(want string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if auth := r.Header.Values("Authorization"); len(auth) != 1 || auth[0] != want {
			http.Error(w, `{"message":"Bad credentials"}`, http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func basic(user, password string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password))
}

// api answers for the clients that only get. In the place of owner and
// repository stand the mode and the client, so that each cell has a path.
func (o *origin) api() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /repos/{mode}/{client}", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		_, _ = io.WriteString(w, small(r.PathValue("mode"), r.PathValue("client")))
	})
	mux.HandleFunc("GET /repos/{mode}/{client}/tarball", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/gzip")
		w.Header().Set("Content-Length", fmt.Sprint(len(o.big)))
		_, _ = w.Write(o.big)
	})
	mux.HandleFunc("GET /repos/{mode}/{client}/events", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		id := r.PathValue("mode") + "." + r.PathValue("client")
		for n := range events {
			_, _ = io.WriteString(w, event(n))
			_ = http.NewResponseController(w).Flush()
			if n+1 < events && !o.came(r.Context(), id, n) {
				o.mu.Lock()
				o.late[id]++
				o.mu.Unlock()
			}
		}
	})
	return mux
}

func small(mode, client string) string {
	return fmt.Sprintf(`{"full_name":"%s/%s","private":true}`, mode, client)
}

func event(n int) string {
	return fmt.Sprintf("id: %d\nevent: tick\ndata: {\"n\":%d}\n\n", n, n)
}

// came waits until the driver has seen an event, or the client has gone.
func (o *origin) came(client context.Context, id string, n int) bool {
	client, cancel := context.WithTimeout(client, harness.Patience)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for client.Err() == nil {
		if _, err := os.Stat(filepath.Join(o.acks, fmt.Sprintf("%s.%d", id, n))); err == nil {
			return true
		}
		select {
		case <-tick.C:
		case <-client.Done():
		}
	}
	return false
}

// hasty reports whether an event was sent before the one before had come.
func (o *origin) hasty(c cell) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.late[c.Mode+"."+c.Client] > 0
}

func (o *origin) want(t *testing.T, c cell) wanted {
	path := "api.github.com/repos/" + c.Mode + "/" + c.Client
	_, packaged := packaged[c.Client]
	switch {
	case c.Transfer == "push":
		return o.git.pushed(t, c.Mode)
	case c.Transfer == "fetch":
		return wantOf(o.blob("small"), "")
	case packaged && c.Transfer == "big":
		return wanted{bytes: bigBytes, sha: o.sum}
	case packaged:
		return wantOf(o.blob(c.Transfer), "")
	}
	switch c.Transfer {
	case "small":
		return wantOf([]byte(small(c.Mode, c.Client)), path)
	case "events":
		var all strings.Builder
		for n := range events {
			all.WriteString(event(n))
		}
		return wantOf([]byte(all.String()), path+"/events")
	default:
		return wanted{bigBytes, o.sum, path + "/tarball"}
	}
}

func wantOf(data []byte, path string) wanted {
	sum := sha256.Sum256(data)
	return wanted{int64(len(data)), hex.EncodeToString(sum[:]), path}
}
