package main

import (
	"context"
	_ "embed"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

//go:embed mitmproxy.py
var mitmproxyAddon []byte

// startMitmproxy starts the mitmdump of this machine with its defaults, but for the roots of the origin. An addon
// leads its connections to the origin, as a transport does for the Go proxies.
func startMitmproxy(ctx context.Context, cfg partConfig) (*process, error) {
	dir := filepath.Join(cfg.dir, "mitmproxy")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	addon := filepath.Join(dir, "addon.py")
	if err := os.WriteFile(addon, mitmproxyAddon, 0o600); err != nil {
		return nil, err
	}
	addr, err := freeAddress()
	if err != nil {
		return nil, err
	}
	host, port, _ := net.SplitHostPort(addr)
	cmd := exec.Command("mitmdump", "--quiet", "--listen-host", host, "--listen-port", port, "--scripts", addon,
		"--set", "confdir="+dir, "--set", "ssl_verify_upstream_trusted_ca="+filepath.Join(cfg.dir, "origin.pem"))
	cmd.Env = append(os.Environ(), "AILERON_BENCH_ORIGIN="+cfg.origin, "AILERON_BENCH_URL=http://"+addr,
		"AILERON_BENCH_CA="+filepath.Join(dir, "mitmproxy-ca-cert.pem"))
	cmd.Stderr = os.Stderr
	p, err := start(ctx, cmd)
	if err != nil {
		return nil, err
	}
	if err := untilListening(ctx, addr); err != nil {
		p.stop()
		return nil, fmt.Errorf("mitmdump: %w", err)
	}
	return p, nil
}

// freeAddress returns an address of loopback on which nothing listens.
func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}

// untilListening waits until connections to addr are accepted.
func untilListening(ctx context.Context, addr string) error {
	ctx, cancel := context.WithTimeout(ctx, stuck)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	var d net.Dialer
	for {
		conn, err := d.DialContext(ctx, "tcp", addr)
		if err == nil {
			return conn.Close()
		}
		select {
		case <-ctx.Done():
			return err
		case <-tick.C:
		}
	}
}
