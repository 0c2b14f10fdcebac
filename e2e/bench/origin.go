package main

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"strconv"
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

// counts is what the origin saw.
type counts struct {
	Total        int64 `json:"total"`
	Credentialed int64 `json:"credentialed"` // with the secret as bearer
}

type origin struct {
	total, credentialed atomic.Int64
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
	leaf, err := a.mint(apiHost, loginHost, "*."+manyDomain, "localhost")
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	o := &origin{}
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
		maps.Copy(w.Header(), itemHead)
		_, _ = w.Write(item)
	})
	mux.HandleFunc("GET /v1/echo", func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.Header.Get("Authorization"))
	})
	mux.HandleFunc("POST /v1/token", token)
	mux.HandleFunc("GET /v1/blob/{kind}/{mib}", blob)
	mux.HandleFunc("GET /v1/leak/{kind}", leak)
	mux.HandleFunc("POST /v1/upload/{kind}", upload)
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

// blob responds with mib MiB of a kind.
func blob(w http.ResponseWriter, r *http.Request) {
	kind := r.PathValue("kind")
	chunk, ok := chunks()[kind]
	mib, err := strconv.Atoi(r.PathValue("mib"))
	if !ok || err != nil {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", contentType(kind))
	w.Header().Set("Content-Length", strconv.Itoa(mib<<20))
	for left := mib << 20; left > 0; {
		n, err := w.Write(chunk[:min(len(chunk), left)])
		if err != nil {
			return
		}
		left -= n
	}
}

// leak responds with a body of a kind that has the secret in it.
func leak(w http.ResponseWriter, r *http.Request) {
	kind := r.PathValue("kind")
	chunk, ok := chunks()[kind]
	if !ok {
		http.NotFound(w, r)
		return
	}
	leaky, _ := leaking(chunk)
	w.Header().Set("Content-Type", contentType(kind))
	w.Header().Set("Content-Length", strconv.Itoa(len(leaky)))
	_, _ = w.Write(leaky)
}

// upload compares what arrives with a kind of body and responds with its length.
func upload(w http.ResponseWriter, r *http.Request) {
	chunk, ok := chunks()[r.PathValue("kind")]
	if r.PathValue("kind") == "item" {
		chunk, ok = item, true
	}
	if !ok {
		http.NotFound(w, r)
		return
	}
	got := &repeating{chunk: chunk}
	if _, err := io.CopyBuffer(struct{ io.Writer }{got}, r.Body, make([]byte, 64<<10)); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"bytes":%d}`, got.n)
}
