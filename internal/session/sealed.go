package session

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"

	"github.com/ALRubinger/aileron/internal/unixsocket"
	"github.com/ALRubinger/aileron/proxy"
	"github.com/ALRubinger/aileron/proxy/front"
)

// The sockets of a sealed sandbox, in a directory that its gateway sees.
const (
	ProxySocket    = "proxy.sock"
	RedirectSocket = "redirect.sock"
)

// SealedProxy is the URL of the proxy in a sealed sandbox, and SealedAPI that of the session's API.
const (
	SealedProxy = "http://127.0.0.1:3128"
	SealedAPI   = "http://" + proxy.APIHost + "/v1"
)

// Uplink is how the gateway of a sealed sandbox reaches its session. Nothing else may reach it.
type Uplink struct {
	Proxy    net.Listener // of clients that are configured for a proxy
	Redirect net.Listener // of redirected connections, each of which the gateway opens with a CONNECT
}

// Close closes both listeners.
func (u Uplink) Close() error { return errors.Join(u.Proxy.Close(), u.Redirect.Close()) }

// OpenUplink opens the sockets of a sealed sandbox in dir. The gateway's user is another one, so the sockets are open
// to all: the directory, or one above it, must keep others out.
func OpenUplink(dir string) (u Uplink, err error) {
	if u.Proxy, err = unixsocket.Listen(filepath.Join(dir, ProxySocket), 0o666); err != nil {
		return u, fmt.Errorf("open the sandbox's socket: %w", err)
	}
	if u.Redirect, err = unixsocket.Listen(filepath.Join(dir, RedirectSocket), 0o666); err != nil {
		_ = u.Proxy.Close()
		return u, fmt.Errorf("open the sandbox's socket: %w", err)
	}
	return u, nil
}

// ListenSealed serves an uplink until the session closes, as [Session.Listen] does.
func (s *Session) ListenSealed(ctx context.Context, u Uplink) {
	// What a client in the sandbox calls the gateway's proxy (sandbox/gateway).
	names := []string{"127.0.0.1:3128", "localhost:3128"}
	s.Listen(ctx, u.Proxy, front.Listener{Sealed: true, Names: names})
	s.Listen(ctx, u.Redirect, front.Listener{Sealed: true, Redirected: true})
}
