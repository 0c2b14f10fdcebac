// Package uplink carries the connections of a sandbox over TCP to the plane that serves it, where the two share no
// directory for sockets: in two Pods, or on two machines.
//
// The plane calls [Dial], which connects to the relay beside the sandbox, or [Listen], to which the relay connects. It
// serves what [Uplink.Proxy] and [Uplink.Redirect] accept as it serves the two sockets:
//
//	key, err := uplink.ReadKey("/etc/aileron/uplink/key")
//	u, err := uplink.Dial(uplink.Config{Key: key, Address: "agent:8443", Log: log})
//	session.Listen(ctx, u.Proxy, front.Listener{Sealed: true})
//
// The relay makes a [Relay] and calls its Open for each client.
//
// Both sides are authenticated by TLS 1.3 with keys that are derived from the one secret of the session ([Key]); a
// client without a certificate, or with that of anything else, is refused and logged with the reason. A connection
// carries one client, so that TCP's own flow control and half-close apply. The plane keeps some idle ones ready, where
// it is the one that dials: the relay cannot, because nothing may leave its network.
package uplink

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// Config configures the plane's side.
type Config struct {
	// Key is the session's.
	Key Key
	// Address is where to dial, or to listen, as host:port.
	Address string
	// Files are what the sandbox may read of the session, by base name; together less than 4 MiB. The relay gets them
	// whenever it connects: see [Uplink.Publish].
	Files map[string][]byte
	// Ports are TCP ports on which this plane listens otherwise. The relay refuses a plane of which it reaches one:
	// what the relay reaches, the sandbox reaches.
	Ports []uint16
	// Log receives what was refused and what was lost; nil discards it.
	Log *slog.Logger
}

// Uplink is the plane's side of a session's connections.
type Uplink struct {
	// Proxy and Redirect accept the connections of clients, which are *tls.Conn.
	Proxy, Redirect net.Listener

	listeners map[Kind]*listener
	cfg       Config
	tls       *tls.Config
	instance  string          // of this plane: what waits at a relay for another one is void
	ctx       context.Context //nolint:containedctx // the uplink's own life, which Close ends
	stop      context.CancelFunc
	running   sync.WaitGroup
	connected atomic.Int32
	refused   complaints

	mu       sync.Mutex
	files    map[string][]byte
	controls map[*tls.Conn]bool // by which relays have got files
}

// Dial returns an uplink that connects to the relay at the configured address, and again whenever the relay is lost,
// until Close.
func Dial(cfg Config) (*Uplink, error) {
	u, err := newUplink(cfg)
	if err != nil {
		return nil, err
	}
	if _, _, err := net.SplitHostPort(cfg.Address); err != nil {
		return nil, fmt.Errorf("the address of the relay: %w", err)
	}
	u.running.Go(u.keepDialling)
	return u, nil
}

// Listen returns an uplink to which the relay connects.
func Listen(cfg Config) (*Uplink, error) {
	u, err := newUplink(cfg)
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", cfg.Address)
	if err != nil {
		u.stop()
		return nil, fmt.Errorf("listen for the relay: %w", err)
	}
	context.AfterFunc(u.ctx, func() { _ = l.Close() })
	for _, accepting := range u.listeners {
		accepting.addr = l.Addr()
	}
	u.running.Go(func() { serveTLS(u.ctx, l, u.tls, &u.refused, u.arrived) })
	return u, nil
}

func newUplink(cfg Config) (*Uplink, error) {
	if cfg.Key.IsZero() {
		return nil, errors.New("open the uplink: it has no key")
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	c, err := cfg.Key.config(planeRole)
	if err != nil {
		return nil, err
	}
	id := make([]byte, instanceSize)
	_, _ = rand.Read(id) // it never fails
	u := &Uplink{cfg: cfg, tls: c, instance: hex.EncodeToString(id), refused: complaints{log: cfg.Log}}
	u.files, u.controls = cfg.Files, map[*tls.Conn]bool{}
	if _, err := u.hello(cfg.Files); err != nil {
		return nil, err
	}
	u.ctx, u.stop = context.WithCancel(context.Background())
	u.listeners = map[Kind]*listener{Proxy: newListener(), Redirect: newListener()}
	u.Proxy, u.Redirect = u.listeners[Proxy], u.listeners[Redirect]
	return u, nil
}

// Publish replaces the files of the sandbox. The relay gets them as it gets the first ones, by a connection that takes
// the place of the old one; those of clients stay.
func (u *Uplink) Publish(files map[string][]byte) error {
	if _, err := u.hello(files); err != nil {
		return err
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if maps.EqualFunc(u.files, files, bytes.Equal) {
		return nil
	}
	u.files = files
	for control := range u.controls {
		_ = control.NetConn().Close()
	}
	return nil
}

// Connected reports whether a relay is there.
func (u *Uplink) Connected() bool { return u.connected.Load() > 0 }

// Close ends the uplink and what waits in it. Connections that were accepted are their owners'.
func (u *Uplink) Close() {
	u.stop()
	for _, l := range u.listeners {
		_ = l.Close()
	}
	u.running.Wait()
}

// idleStreams is how many connections wait at a relay for a client.
const idleStreams = 16

// Waits of the side that dials.
const (
	firstPause = 100 * time.Millisecond
	lastPause  = 5 * time.Second
)

// keepDialling attaches to the relay until the uplink is closed.
func (u *Uplink) keepDialling() {
	pause, last := firstPause, ""
	for u.ctx.Err() == nil {
		began := time.Now()
		err := u.attach()
		if u.ctx.Err() != nil {
			return
		}
		if errors.Is(err, net.ErrClosed) { // by Publish
			_ = wait(u.ctx, firstPause)
			continue
		}
		if text := fmt.Sprint(err); text != last { // not once a second for as long as a Pod is away
			last = text
			u.cfg.Log.Warn("the relay cannot be reached, or was lost; dialling again",
				"address", u.cfg.Address, "error", text)
		}
		if time.Since(began) > lastPause {
			pause, last = firstPause, ""
		}
		_ = wait(u.ctx, pause)
		pause = min(2*pause, lastPause)
	}
}

// attach connects to the relay once, and keeps connections ready there until it is lost.
func (u *Uplink) attach() error {
	control, err := u.connect(u.cfg.Address, purposeHello)
	if err != nil {
		return err
	}
	defer control.Close()
	ctx, cancel := context.WithCancel(u.ctx)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { _ = control.Close() })
	defer stop()
	left, err := u.introduce(control)
	if err != nil {
		return err
	}
	defer left()
	u.connected.Add(1)
	defer u.connected.Add(-1)
	at := control.RemoteAddr().String() // a name may stand for several relays
	var offers sync.WaitGroup
	for range idleStreams {
		offers.Go(func() { u.keepOffering(ctx, at) })
	}
	err = beat(control)
	cancel()
	offers.Wait()
	return err
}

// keepOffering has one connection ready at the relay, and another as soon as a client has taken it.
func (u *Uplink) keepOffering(ctx context.Context, at string) {
	for ctx.Err() == nil {
		conn, err := u.connect(at, purposeStream)
		if err == nil {
			_, err = conn.Write([]byte(u.instance))
		}
		if err != nil {
			if conn != nil {
				_ = conn.Close()
			}
			_ = wait(ctx, firstPause)
			continue
		}
		if !u.await(ctx, conn) {
			_ = wait(ctx, firstPause)
		}
	}
}

// await waits until a client takes the connection, and has it accepted. It reports whether one has.
func (u *Uplink) await(ctx context.Context, conn *tls.Conn) bool {
	stop := context.AfterFunc(ctx, func() { _ = conn.NetConn().Close() })
	var kind [1]byte
	_, err := conn.Read(kind[:])
	l := u.listeners[Kind(kind[0])]
	if !stop() || err != nil || l == nil {
		_ = conn.NetConn().Close()
		return false
	}
	_ = conn.SetWriteDeadline(time.Now().Add(handshakeTime))
	if _, err := conn.Write([]byte{taken}); err != nil {
		_ = conn.Close()
		return false
	}
	_ = conn.SetWriteDeadline(time.Time{})
	l.deliver(conn)
	return true
}

// connect dials, and says what the connection is for.
func (u *Uplink) connect(address string, purpose byte) (*tls.Conn, error) {
	return connect(u.ctx, address, u.tls, purpose)
}

// arrived serves a connection that the relay has opened.
func (u *Uplink) arrived(conn *tls.Conn, purpose byte) {
	if purpose == purposeHello {
		defer conn.Close()
		if left, err := u.introduce(conn); err == nil {
			defer left()
			u.connected.Add(1)
			defer u.connected.Add(-1)
			_ = beat(conn)
		}
		return
	}
	if !isInstance(conn, u.instance) {
		_ = conn.Close()
		return
	}
	_ = u.await(u.ctx, conn)
}
