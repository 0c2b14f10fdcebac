package main

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/elazarl/goproxy"
	"github.com/google/martian/v3"
	martianh2 "github.com/google/martian/v3/h2"
	martianlog "github.com/google/martian/v3/log"
	"github.com/google/martian/v3/mitm"
)

// serveGoproxy serves goproxy as its readme shows MITM: every CONNECT, with a
// store of leaves. Its transport verifies and has a pool that fits; without
// one it is an order of magnitude slower and measures only that.
func serveGoproxy(ctx context.Context, cfg partConfig, ready func(announcement) error) error {
	transport, err := cfg.transport()
	if err != nil {
		return err
	}
	a, err := newAuthority("goproxy")
	if err != nil {
		return err
	}
	file, err := a.writePEM(cfg.dir, "goproxy")
	if err != nil {
		return err
	}
	p := goproxy.NewProxyHttpServer()
	p.Tr = transport
	p.AllowHTTP2 = true
	p.CertStore = &leafStore{leaves: map[string]*tls.Certificate{}}
	action := &goproxy.ConnectAction{Action: goproxy.ConnectMitm,
		TLSConfig: goproxy.TLSConfigFromCA(&tls.Certificate{Certificate: [][]byte{a.cert.Raw}, PrivateKey: a.key,
			Leaf: a.cert})}
	p.OnRequest().HandleConnect(goproxy.FuncHttpsHandler(func(host string, _ *goproxy.ProxyCtx) (*goproxy.ConnectAction,
		string) {
		return action, host
	}))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := &http.Server{Handler: p, ReadHeaderTimeout: time.Minute}
	go func() { <-ctx.Done(); _ = server.Close() }()
	if err := ready(announcement{ProxyURL: "http://" + l.Addr().String(), CAFile: file}); err != nil {
		return err
	}
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// leafStore is goproxy's CertStorage.
type leafStore struct {
	mu     sync.Mutex
	leaves map[string]*tls.Certificate
}

func (s *leafStore) Fetch(host string, mint func() (*tls.Certificate, error)) (*tls.Certificate, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.leaves[host]; c != nil {
		return c, nil
	}
	c, err := mint()
	if err == nil {
		s.leaves[host] = c
	}
	return c, err
}

// serveMartian serves martian with its MITM and its HTTP/2, and no modifiers.
func serveMartian(ctx context.Context, cfg partConfig, ready func(announcement) error) error {
	martianlog.SetLevel(martianlog.Silent) // it writes a line for each connection that ends
	transport, err := cfg.transport()
	if err != nil {
		return err
	}
	a, err := newAuthority("martian")
	if err != nil {
		return err
	}
	file, err := a.writePEM(cfg.dir, "martian")
	if err != nil {
		return err
	}
	config, err := mitm.NewConfig(a.cert, a.key)
	if err != nil {
		return err
	}
	config.SetH2Config(&martianh2.Config{RootCAs: transport.TLSClientConfig.RootCAs,
		AllowedHostsFilter: func(string) bool { return true }})
	p := martian.NewProxy()
	p.SetMITM(config)
	p.SetRoundTripper(transport)
	p.SetDial(func(network, addr string) (net.Conn, error) { return cfg.dial(ctx, network, addr) })
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	go func() { <-ctx.Done(); _ = l.Close() }()
	if err := ready(announcement{ProxyURL: "http://" + l.Addr().String(), CAFile: file}); err != nil {
		return err
	}
	return p.Serve(l)
}
