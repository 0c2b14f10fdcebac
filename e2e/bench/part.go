package main

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"sync"
)

// partConfig is the configuration of a part of the bench.
type partConfig struct {
	dir    string // for certificates; the origin's is origin.pem
	origin string // its address, whatever the name that is asked for
}

// announcement is the one line that a part prints when it is ready. aileron
// proxy --json prints the same, as far as it goes.
type announcement struct {
	Addr     string `json:"addr,omitempty"`
	ProxyURL string `json:"proxy_url,omitempty"`
	CAFile   string `json:"ca_file,omitempty"`
}

func (a announcement) print(w io.Writer) error { return json.NewEncoder(w).Encode(a) }

// transport reaches the origin with a pool that fits, and verifies it.
func (c partConfig) transport() (*http.Transport, error) {
	roots, err := rootsOf(filepath.Join(c.dir, "origin.pem"))
	if err != nil {
		return nil, err
	}
	return &http.Transport{
		DialContext:         c.dial,
		TLSClientConfig:     &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
		MaxIdleConns:        512,
		MaxIdleConnsPerHost: 128,
		DisableCompression:  true,
	}, nil
}

func (c partConfig) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	var d net.Dialer
	return d.DialContext(ctx, "tcp", c.origin)
}

// intercept listens with a CA of its own, and serves each connection.
func (c partConfig) intercept(ctx context.Context, name string, ready func(announcement) error,
	serve func(*authority) func(net.Conn)) error {
	a, err := newAuthority(name)
	if err != nil {
		return err
	}
	file, err := a.writePEM(c.dir, name)
	if err != nil {
		return err
	}
	return accept(ctx, file, ready, serve(a))
}

// accept serves connections until ctx ends.
func accept(ctx context.Context, caFile string, ready func(announcement) error, serve func(net.Conn)) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	go func() { <-ctx.Done(); _ = l.Close() }()
	if err := ready(announcement{ProxyURL: "http://" + l.Addr().String(), CAFile: caFile}); err != nil {
		return err
	}
	for {
		conn, err := l.Accept()
		if err != nil {
			return err
		}
		go serve(conn)
	}
}

// serveConnect is a plain CONNECT tunnel: what a proxy costs that looks at
// nothing.
func serveConnect(ctx context.Context, cfg partConfig, ready func(announcement) error) error {
	return accept(ctx, filepath.Join(cfg.dir, "origin.pem"), ready, func(client net.Conn) {
		defer client.Close()
		if !readConnect(client) {
			return
		}
		upstream, err := cfg.dial(ctx, "", "")
		if err != nil {
			return
		}
		defer upstream.Close()
		if _, err := io.WriteString(client, "HTTP/1.1 200 OK\r\n\r\n"); err != nil {
			return
		}
		var both sync.WaitGroup
		pipe := func(to, from net.Conn) {
			_, _ = io.Copy(to, from)
			_ = to.(*net.TCPConn).CloseWrite()
		}
		both.Go(func() { pipe(upstream, client) })
		pipe(client, upstream)
		both.Wait()
	})
}

// readConnect reads up to the end of a head and no byte further.
func readConnect(conn net.Conn) bool {
	var head []byte
	buf := make([]byte, 4096)
	for len(head) < 64<<10 {
		n, err := conn.Read(buf)
		head = append(head, buf[:n]...)
		if err != nil {
			return false
		}
		if len(head) >= 4 && string(head[len(head)-4:]) == "\r\n\r\n" {
			return true // the client waits for an answer: nothing follows
		}
	}
	return false
}
