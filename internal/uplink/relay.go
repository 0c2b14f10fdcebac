package uplink

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"time"
)

// RelayConfig configures the relay's side.
type RelayConfig struct {
	// Key is the session's.
	Key Key
	// Accept decides about a plane before it is used: at is its address, and ports are those on which it listens
	// otherwise. Files are what the sandbox may read. An error is sent to the plane. nil accepts every plane.
	Accept func(ctx context.Context, at netip.Addr, ports []uint16, files map[string][]byte) error
	// Log receives what was refused and what was lost; nil discards it.
	Log *slog.Logger
}

// Relay is the side of the sandbox. It has one plane at a time, and refuses another for as long as that one lives.
type Relay struct {
	cfg     RelayConfig
	tls     *tls.Config
	refused complaints
	idle    chan waiting // streams of the plane that dials in
	dial    string       // the address of the plane; "" for one that dials in

	mu      sync.Mutex
	plane   string    // its instance; "" for none
	control *tls.Conn // by which it introduced itself last
	changed chan struct{}
}

// waiting is a stream that the plane has opened for a client to come.
type waiting struct {
	conn     *tls.Conn
	instance string
}

// NewRelay returns a relay without a plane.
func NewRelay(cfg RelayConfig) (*Relay, error) {
	if cfg.Key.IsZero() {
		return nil, errors.New("open the uplink: it has no key")
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	c, err := cfg.Key.config(relayRole)
	if err != nil {
		return nil, err
	}
	return &Relay{cfg: cfg, tls: c, refused: complaints{log: cfg.Log}, idle: make(chan waiting, 4*idleStreams),
		changed: make(chan struct{})}, nil
}

// Serve has the plane dial in at l, until ctx ends. Clients that are not this session's plane are refused.
func (r *Relay) Serve(ctx context.Context, l net.Listener) {
	stop := context.AfterFunc(ctx, func() { _ = l.Close() })
	defer stop()
	serveTLS(ctx, l, r.tls, &r.refused, func(conn *tls.Conn, purpose byte) {
		if purpose == purposeHello {
			if err := r.meet(ctx, conn); err != nil && ctx.Err() == nil {
				r.cfg.Log.Warn("the plane was lost, or refused", "address", conn.RemoteAddr().String(), "error", err)
			}
			return
		}
		r.keep(conn)
	})
	r.forget(nil)
}

// Connect connects to the plane that listens at address, and again whenever it is lost, until ctx ends.
func (r *Relay) Connect(ctx context.Context, address string) {
	r.dial = address
	pause := firstPause
	for ctx.Err() == nil {
		began := time.Now()
		conn, err := connect(ctx, address, r.tls, purposeHello)
		if err == nil {
			stop := context.AfterFunc(ctx, func() { _ = conn.NetConn().Close() })
			err = r.meet(ctx, conn)
			stop()
		}
		if ctx.Err() != nil {
			return
		}
		if time.Since(began) > lastPause {
			pause = firstPause
		}
		if pause == firstPause {
			r.cfg.Log.Warn("the plane cannot be reached, or was lost; dialling again", "address", address, "error", err)
		}
		_ = wait(ctx, pause)
		pause = min(2*pause, lastPause)
	}
}

// meet reads a plane's hello, and has it as the plane for as long as the connection lives.
func (r *Relay) meet(ctx context.Context, conn *tls.Conn) error {
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(3 * handshakeTime))
	message, err := readMessage(conn)
	if err != nil {
		return err
	}
	var h hello
	if err := json.Unmarshal(message, &h); err != nil {
		return fmt.Errorf("read the plane's hello: %w", err)
	}
	if err := r.judge(ctx, conn, h); err != nil {
		return errors.Join(err, reply(conn, verdict{Error: err.Error()}))
	}
	r.have(h.Instance, conn) // before the plane learns that it may open streams
	defer r.forget(conn)
	if err := reply(conn, verdict{}); err != nil {
		return err
	}
	_ = conn.SetDeadline(time.Time{})
	r.cfg.Log.Info("the plane is there", "address", conn.RemoteAddr().String(), "instance", h.Instance)
	return beat(conn)
}

func reply(conn *tls.Conn, v verdict) error {
	message, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return writeMessage(conn, message)
}

// judge returns why the relay does not use a plane.
func (r *Relay) judge(ctx context.Context, conn *tls.Conn, h hello) error {
	if len(h.Instance) != 2*instanceSize {
		return errors.New("its hello has no instance")
	}
	// Two planes with one key would take each other's place for ever. One that has lost its network is found silent.
	if plane, _ := r.current(); plane != "" && plane != h.Instance {
		return errors.New("another plane serves this sandbox")
	}
	for name := range h.Files {
		if !isFileName(name) {
			return fmt.Errorf("%q is no name of a file", name)
		}
	}
	if r.cfg.Accept == nil {
		return nil
	}
	at, _ := netip.ParseAddrPort(conn.RemoteAddr().String())
	return r.cfg.Accept(ctx, at.Addr().Unmap(), h.Ports, h.Files)
}

// have makes an instance the relay's plane. It may be so already: it has lost a connection whose end is not seen here
// yet.
func (r *Relay) have(instance string, control *tls.Conn) {
	r.mu.Lock()
	before := r.control
	r.plane, r.control = instance, control
	close(r.changed)
	r.changed = make(chan struct{})
	r.mu.Unlock()
	if before != nil {
		_ = before.NetConn().Close()
	}
	r.sweep()
}

// forget ends the use of the plane that introduced itself last by a connection, or of any.
func (r *Relay) forget(control *tls.Conn) {
	r.mu.Lock()
	if control == nil || r.control == control {
		r.plane, r.control = "", nil
	}
	r.mu.Unlock()
	r.sweep()
}

// current returns the relay's plane, and a channel that is closed when there is another.
func (r *Relay) current() (string, <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.plane, r.changed
}

// sweep closes the streams of planes that are gone.
func (r *Relay) sweep() {
	for range len(r.idle) {
		select {
		case w := <-r.idle:
			r.put(w)
		default:
			return
		}
	}
}

// keep reads which plane a stream is of, and has it wait for a client.
func (r *Relay) keep(conn *tls.Conn) {
	plane, _ := r.current()
	if plane == "" || !isInstance(conn, plane) {
		_ = conn.Close()
		return
	}
	r.put(waiting{conn, plane})
}

// put has a stream wait for a client, if it is of the relay's plane and there is room.
func (r *Relay) put(w waiting) {
	if plane, _ := r.current(); plane == w.instance {
		select {
		case r.idle <- w:
			return
		default:
		}
	}
	_ = w.conn.NetConn().Close()
}

// errNoPlane is the cause of the end of a wait for a plane.
var errNoPlane = errors.New("no plane is there")

// Open returns a connection to the plane for one client. It waits for one until ctx ends.
func (r *Relay) Open(ctx context.Context, kind Kind) (*tls.Conn, error) {
	for {
		conn, err := r.next(ctx)
		if err != nil {
			return nil, err
		}
		if conn == nil { // its plane is gone
			continue
		}
		if activate(conn, kind) == nil {
			return conn, nil
		}
		_ = conn.NetConn().Close()
		if ctx.Err() != nil {
			return nil, fmt.Errorf("open a connection to the plane: %w", ctx.Err())
		}
	}
}

// next returns a stream, or nil if the one that it found was of a plane that is gone.
func (r *Relay) next(ctx context.Context) (*tls.Conn, error) {
	plane, changed := r.current()
	switch {
	case plane == "":
		select {
		case <-changed:
			return nil, nil
		case <-ctx.Done():
			return nil, fmt.Errorf("open a connection to the plane: %w", errNoPlane)
		}
	case r.dial != "":
		conn, err := connect(ctx, r.dial, r.tls, purposeStream)
		if err == nil {
			_, err = conn.Write([]byte(plane))
		}
		if err != nil {
			return nil, err
		}
		return conn, nil
	}
	select {
	case w := <-r.idle:
		if w.instance != plane {
			_ = w.conn.NetConn().Close()
			return nil, nil
		}
		return w.conn, nil
	case <-changed:
		return nil, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("open a connection to the plane: %w", ctx.Err())
	}
}

// activate sends the plane what a stream is for, and waits until it has taken it.
func activate(conn *tls.Conn, kind Kind) error {
	_ = conn.SetDeadline(time.Now().Add(handshakeTime))
	if _, err := conn.Write([]byte{byte(kind)}); err != nil {
		return err
	}
	var reply [1]byte
	if _, err := conn.Read(reply[:]); err != nil {
		return err
	}
	if reply[0] != taken {
		return fmt.Errorf("the plane's response is %q", reply[0])
	}
	return conn.SetDeadline(time.Time{})
}
