package main

import (
	"context"
	"fmt"
	"net"
	"path/filepath"
	"strconv"

	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/internal/session"
	"github.com/ALRubinger/aileron/internal/unixsocket"
	"github.com/ALRubinger/aileron/proxy"
	"github.com/ALRubinger/aileron/sandbox"
)

// mediation is how what a box sends comes to the plane.
type mediation int

const (
	sealed     mediation = iota // by its only line
	byAlias                     // by the proxy variables: by convention
	unmediated                  // not at all: the user said so
)

// door is a box's way to the plane, as the box sees it.
type door struct {
	kind     mediation
	proxyURL string
	apiURL   string
	apiHost  string
}

// openDoor decides how a box is mediated, and says it wherever it is not
// sealed: a reviewer must not learn it from a row alone.
func (b *boxRun) openDoor(ctx context.Context) (door, error) {
	if b.opts.proxy == "off" {
		b.app.infof("aileron: NOT MEDIATED: --sandbox-proxy=off gives the box the network of %s; it gets no credential, and nothing that it sends is judged or written down", b.sandbox.Engine.Kind())
		return door{kind: unmediated}, nil
	}
	why := b.sandbox.Unsealable
	if b.sandbox.Sealed {
		return door{kind: sealed, proxyURL: "http://127.0.0.1:3128", apiHost: proxy.APIHost, apiURL: "http://" + proxy.APIHost + "/v1"}, nil
	}
	if b.opts.proxy == "on" {
		b.session.RecordDisabled(ctx, reasonUnsealed, why)
		return door{}, hint.New(fmt.Errorf("seal the box: %s", why), "use an engine that runs on this host, or --sandbox-proxy=auto for mediation by convention")
	}
	b.app.infof("aileron: NOT SEALED: %s", why)
	b.app.infof("aileron: the box has the engine's own network. What uses the proxy variables is mediated; what ignores them reaches the network past aileron, without a credential and without an audit row. --sandbox-proxy=on refuses such a box.")
	return door{kind: byAlias}, nil
}

// listen serves the plane at the door.
func (d *door) listen(ctx context.Context, s *session.Session, engine *sandbox.Engine, sockets string) error {
	switch d.kind {
	case sealed:
		// What a client in the box calls the gateway's proxy (sandbox/gateway).
		names := []string{"127.0.0.1:3128", "localhost:3128"}
		for name, door := range map[string]proxy.Listener{"proxy.sock": {Sealed: true, Names: names}, "redirect.sock": {Sealed: true, Redirected: true}} {
			// The gateway's user is not ours: the socket is open, its directory
			// is inside one that nobody else may enter.
			l, err := unixsocket.Listen(filepath.Join(sockets, name), 0o666)
			if err != nil {
				return fmt.Errorf("open the box's socket: %w", err)
			}
			s.Listen(ctx, l, door)
		}
	case byAlias:
		l, err := engine.ListenForAlias(ctx)
		if err != nil {
			return err
		}
		at, _ := l.Addr().(*net.TCPAddr)
		d.apiHost = engine.HostAlias()
		host := net.JoinHostPort(d.apiHost, strconv.Itoa(at.Port))
		d.proxyURL, d.apiURL = "http://aileron:"+s.Token()+"@"+host, "http://"+host+"/v1"
		s.Listen(ctx, l, proxy.Listener{Names: []string{host}})
	case unmediated:
		s.RecordDisabled(ctx, reasonOptOut, "--sandbox-proxy=off")
	}
	return nil
}
