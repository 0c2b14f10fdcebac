package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

const (
	apiHost    = "api.bench.example"
	manyDomain = "many.bench.example" // each tunnel of scenario C names a host below it
	secret     = "bench-SECRET/0123456789+abcdefghijklmnop"
	// placeholder is what every client sends for a credential, as an agent does.
	placeholder = "placeholder"
)

// item is an answer of an ordinary length, as an API gives it.
var item = []byte(`{"id":1,"title":"an answer of an ordinary length, as an API gives it",` +
	`"state":"open","labels":["a","b"]}`)

// counts is what the origin saw.
type counts struct {
	Total        int64 `json:"total"`
	Credentialed int64 `json:"credentialed"` // with the secret as bearer
}

type origin struct {
	total, credentialed atomic.Int64
	blobs               map[string][]byte // one MiB of each kind
}

// serveOrigin is the API that all requests are for: TLS, HTTP/1.1 and HTTP/2.
func serveOrigin(ctx context.Context, cfg partConfig, ready func(announcement) error) error {
	a, err := newAuthority("origin")
	if err != nil {
		return err
	}
	roots, err := a.writePEM(cfg.dir, "origin")
	if err != nil {
		return err
	}
	// One certificate for all names, so that a new host costs the origin nothing.
	leaf, err := a.mint(apiHost, "*."+manyDomain, "localhost")
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	o := &origin{blobs: blobs()}
	server := &http.Server{Handler: o.routes(), ReadHeaderTimeout: time.Minute,
		TLSConfig: &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{*leaf}}}
	defer server.Close()
	go func() { <-ctx.Done(); _ = server.Close() }()
	if err := ready(announcement{Addr: l.Addr().String(), CAFile: roots}); err != nil {
		return err
	}
	if err := server.ServeTLS(l, "", ""); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

func (o *origin) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/items", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", strconv.Itoa(len(item)))
		_, _ = w.Write(item)
	})
	mux.HandleFunc("GET /v1/echo", func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.Header.Get("Authorization"))
	})
	mux.HandleFunc("GET /v1/blob/{kind}/{mib}", o.blob)
	mux.HandleFunc("POST /v1/upload", func(w http.ResponseWriter, r *http.Request) {
		n, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, r.Body, make([]byte, 64<<10))
		if err != nil {
			http.Error(w, "the body broke off", http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"bytes":%d}`, n)
	})
	mux.HandleFunc("GET /v1/events/{n}/{gap}", events)
	count := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		o.total.Add(1)
		if r.Header.Get("Authorization") == "Bearer "+secret {
			o.credentialed.Add(1)
		}
		mux.ServeHTTP(w, r)
	})
	outer := http.NewServeMux()
	outer.Handle("/v1/", count)
	outer.HandleFunc("GET /counts", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(counts{o.total.Load(), o.credentialed.Load()})
	})
	return outer
}

// blob answers with mib MiB of a kind.
func (o *origin) blob(w http.ResponseWriter, r *http.Request) {
	chunk, ok := o.blobs[r.PathValue("kind")]
	n, err := strconv.Atoi(r.PathValue("mib"))
	if !ok || err != nil {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(n<<20))
	for range n {
		if _, err := w.Write(chunk); err != nil {
			return
		}
	}
}

// events sends n events, gap apart, each with the moment of its sending.
func events(w http.ResponseWriter, r *http.Request) {
	n, err := strconv.Atoi(r.PathValue("n"))
	gap, wrong := time.ParseDuration(r.PathValue("gap"))
	if err = errors.Join(err, wrong); err != nil {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	flush := http.NewResponseController(w)
	for range n {
		fmt.Fprintf(w, "data: {\"sent\":%d,\"type\":\"content_block_delta\",\"delta\":{\"text\":\" some words of an "+
			"answer\"}}\n\n", time.Now().UnixNano())
		if flush.Flush() != nil {
			return
		}
		select {
		case <-time.After(gap):
		case <-r.Context().Done():
			return
		}
	}
}

// blobs is one MiB of JSON as an API lists it, and one of base64.
func blobs() map[string][]byte {
	r := rand.New(rand.NewPCG(1, 2))
	words := strings.Fields("the proxy shall stream what arrives and wipe every trace of a credential out of answers " +
		"headers trailers events archives and lists of issues")
	var text bytes.Buffer
	for id := 0; text.Len() < 1<<20; id++ {
		fmt.Fprintf(&text, `{"id":%d,"node":"I_kwDO%08x","title":"`, id, r.Uint32())
		for range 6 + r.IntN(8) {
			text.WriteString(words[r.IntN(len(words))] + " ")
		}
		fmt.Fprintf(&text, `","url":"https://%s/issues/%d?page=%d","closed":false},`+"\n", apiHost, id, r.IntN(9))
	}
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
	packed := make([]byte, 1<<20)
	for i := range packed {
		packed[i] = alphabet[r.IntN(64)]
	}
	return map[string][]byte{"json": text.Bytes()[:1<<20], "base64": packed}
}
