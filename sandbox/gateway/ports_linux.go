package gateway

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"strconv"
	"sync"
)

// idlePorts is how many connections wait for the host to use them.
const idlePorts = 4

// Answers to the host's request for a port.
const (
	portReached byte = iota
	portRefused
)

// servePorts carries connections from the host to ports of the sandbox until ctx
// ends. The host cannot connect to anything in this namespace. So the gateway
// keeps some connections to the host's socket, and for each of them the host
// sends the number of a port when it has a client for it. Nothing in the sandbox
// reaches the socket or asks for a connection.
func (r *relay) servePorts(ctx context.Context) {
	if _, err := os.Stat(r.cfg.Ports); err != nil {
		return // no port is published
	}
	var running sync.WaitGroup
	defer running.Wait()
	idle := make(chan struct{}, idlePorts)
	for {
		select {
		case idle <- struct{}{}:
		case <-ctx.Done():
			return
		}
		host, err := r.dial(ctx, r.cfg.Ports)
		if err != nil {
			return // the session is over
		}
		running.Go(func() {
			stop := context.AfterFunc(ctx, func() { _ = host.Close() })
			defer stop()
			defer host.Close()
			var port [2]byte
			_, err := io.ReadFull(host, port[:])
			<-idle
			if err == nil {
				r.servePort(ctx, host, binary.BigEndian.Uint16(port[:]))
			}
		})
	}
}

// servePort connects the host with a port of the sandbox.
func (r *relay) servePort(ctx context.Context, host *net.UnixConn, port uint16) {
	conn, err := dialPort(ctx, port)
	if err != nil {
		_, _ = host.Write([]byte{portRefused})
		return
	}
	server := conn.(*net.TCPConn)
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if _, err := host.Write([]byte{portReached}); err != nil {
		_ = server.Close()
		return
	}
	Join(host, server)
}

// dialPort connects to a port of the sandbox. The gateway's own are refused.
func dialPort(ctx context.Context, port uint16) (net.Conn, error) {
	if IsReserved(port) {
		return nil, errors.New("it is the gateway's own port")
	}
	d := net.Dialer{Timeout: connectTimeout}
	return d.DialContext(ctx, "tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(int(port))))
}
