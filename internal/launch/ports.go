package launch

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/internal/unixsocket"
	"github.com/ALRubinger/aileron/sandbox/gateway"
)

// Port is a port of a sandbox that is published on the loopback address of this host.
type Port struct{ Host, Sandbox uint16 }

// ParsePort returns the port that [HOST:]PORT describes. Without HOST it has the same number on this host.
func ParsePort(text string) (Port, error) {
	host, port, two := strings.Cut(text, ":")
	if !two {
		port = host
	}
	var p Port
	for _, part := range []struct {
		text string
		to   *uint16
	}{{host, &p.Host}, {port, &p.Sandbox}} {
		n, err := strconv.ParseUint(part.text, 10, 16)
		if err != nil || n == 0 || part.text[0] == '0' || part.text[0] == '+' {
			return Port{}, hint.New(fmt.Errorf("publish %q: it is not [HOST:]PORT: %q is not a port", text, part.text),
				"ports are numbers from 1 to 65535, as in 8080:3000; the address is always 127.0.0.1")
		}
		*part.to = uint16(n)
	}
	if gateway.IsReserved(p.Sandbox) {
		return Port{}, hint.New(fmt.Errorf("publish %q: port %d of a sandbox is its gateway's", text, p.Sandbox),
			"let the program in the sandbox listen on another port")
	}
	return p, nil
}

const (
	maxPortClients = 128              // at once; one more is closed
	portTime       = 10 * time.Second // for the gateway to take a connection
	acceptPause    = 20 * time.Millisecond
	// Without a byte in either direction. Debuggers, pools of databases and reloading pages are quiet for long; a
	// program of this host that forgets its connections must not use up all of them.
	portIdle = time.Hour
)

// ports are the published ports of a sandbox: listeners on this host's loopback address, and a socket on which the
// gateway waits for their clients. A sandbox without published ports has none of it.
type ports struct {
	published []Port
	listeners []*net.TCPListener
	record    func(ctx context.Context, hostPort, port uint16, client string) error
	report    func(format string, args ...any)

	slots   chan struct{}
	waiting chan *net.UnixConn // connections of the gateway
	running sync.WaitGroup
	stop    context.CancelFunc
}

// openPorts listens on the loopback address, so that a port that is in use is found before anything is made.
func openPorts(published []Port) (*ports, error) {
	p := &ports{published: published, slots: make(chan struct{}, maxPortClients),
		waiting: make(chan *net.UnixConn), stop: func() {}}
	for _, port := range published {
		// Never another address: other machines must not reach the sandbox.
		l, err := net.ListenTCP("tcp4", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: int(port.Host)})
		if err != nil {
			p.close()
			return nil, portError(port, err)
		}
		p.listeners = append(p.listeners, l)
	}
	return p, nil
}

// portError names why a port of this host cannot be listened on.
func portError(port Port, err error) error {
	why := errors.Unwrap(errors.Unwrap(err))
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		why = errors.New("it is in use")
	case errors.Is(err, syscall.EACCES):
		why = errors.New("this host reserves it for privileged users (net.ipv4.ip_unprivileged_port_start)")
	}
	return hint.New(fmt.Errorf("publish port %d of the sandbox on port %d of 127.0.0.1: %w", port.Sandbox, port.Host, why),
		"choose another port of this host: --port HOST:%d", port.Sandbox)
}

// serve serves the published ports until close is called. The gateway finds its socket in dir.
func (p *ports) serve(ctx context.Context, dir string) error {
	if len(p.listeners) == 0 {
		return nil
	}
	tunnel, err := unixsocket.Listen(filepath.Join(dir, "ports.sock"), 0o666)
	if err != nil {
		return fmt.Errorf("open the socket of the published ports: %w", err)
	}
	ctx, p.stop = context.WithCancel(context.WithoutCancel(ctx))
	context.AfterFunc(ctx, func() { _ = tunnel.Close() })
	p.running.Go(func() { p.acceptGateway(ctx, tunnel) })
	for i, l := range p.listeners {
		p.running.Go(func() { p.acceptClients(ctx, l, p.published[i]) })
	}
	return nil
}

// close closes the ports and their connections.
func (p *ports) close() {
	p.stop()
	for _, l := range p.listeners {
		_ = l.Close()
	}
	p.running.Wait()
}

// acceptGateway hands on the connections with which the gateway waits for clients.
func (p *ports) acceptGateway(ctx context.Context, tunnel net.Listener) {
	for {
		conn, ok := accept(ctx, tunnel.Accept)
		if !ok {
			return
		}
		select {
		case p.waiting <- conn.(*net.UnixConn): // the gateway has four at most
		case <-ctx.Done():
			_ = conn.Close()
			return
		}
	}
}

// accept returns the next connection of a listener, and false when there will be none. Any other error is that of one
// client, or want of descriptors, which others give back: the port stays published.
func accept[C net.Conn](ctx context.Context, next func() (C, error)) (conn C, ok bool) {
	for {
		conn, err := next()
		switch {
		case err == nil:
			return conn, true
		case ctx.Err() != nil, errors.Is(err, net.ErrClosed):
			return conn, false
		}
		select {
		case <-time.After(acceptPause):
		case <-ctx.Done():
		}
	}
}

// acceptClients connects each client of a published port with the sandbox.
func (p *ports) acceptClients(ctx context.Context, l *net.TCPListener, port Port) {
	for {
		client, ok := accept(ctx, l.AcceptTCP)
		if !ok {
			return
		}
		select {
		case p.slots <- struct{}{}:
		default:
			_ = client.Close()
			continue
		}
		p.running.Go(func() {
			defer func() { <-p.slots }()
			stop := context.AfterFunc(ctx, func() { _ = client.Close() })
			defer stop()
			defer client.Close()
			p.connect(ctx, client, port)
		})
	}
}

// connect records a client and connects it with a port of the sandbox. One that cannot be recorded is not connected.
func (p *ports) connect(ctx context.Context, client *net.TCPConn, port Port) {
	if err := p.record(ctx, port.Host, port.Sandbox, client.RemoteAddr().String()); err != nil {
		p.report("aileron: a connection to port %d was refused: it could not be recorded: %v", port.Host, err)
		return
	}
	box := p.reach(ctx, port.Sandbox)
	if box == nil {
		_ = client.SetLinger(0) // as a port on which nothing listens
		return
	}
	stop := context.AfterFunc(ctx, func() { _ = box.Close() })
	defer stop()
	joinUntilIdle(client, box, portIdle)
}

// reach returns a connection to a port of the sandbox, or nil.
func (p *ports) reach(ctx context.Context, port uint16) *net.UnixConn {
	timer := time.NewTimer(portTime)
	defer timer.Stop()
	for {
		var conn *net.UnixConn
		select {
		case conn = <-p.waiting:
		case <-timer.C:
			return nil
		case <-ctx.Done():
			return nil
		}
		_ = conn.SetDeadline(time.Now().Add(portTime))
		var answer [1]byte
		_, err := conn.Write(binary.BigEndian.AppendUint16(nil, port))
		if err == nil {
			_, err = io.ReadFull(conn, answer[:])
		}
		switch {
		case err == nil && answer[0] == 0:
			_ = conn.SetDeadline(time.Time{})
			return conn
		case err == nil: // nothing listens there
			_ = conn.Close()
			return nil
		}
		_ = conn.Close() // a gateway that went away, or has ended this one
	}
}

// half is a connection of which one direction can be closed.
type half interface {
	net.Conn
	CloseWrite() error
}

// joinUntilIdle copies bytes between two connections until both directions have ended, one has failed, or nothing was
// read from either for as long as idle. It closes both.
func joinUntilIdle(a, b half, idle time.Duration) {
	timer := time.AfterFunc(idle, func() {
		_ = a.Close()
		_ = b.Close()
	})
	defer timer.Stop()
	gateway.Join(active{a, timer, idle}, active{b, timer, idle})
}

// active is a connection that puts a timer off when something arrives.
type active struct {
	half
	timer *time.Timer
	idle  time.Duration
}

// Read reads from the connection.
func (c active) Read(p []byte) (int, error) {
	n, err := c.half.Read(p)
	if n > 0 {
		c.timer.Reset(c.idle)
	}
	return n, err
}
