package gateway

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"time"
)

const (
	maxDNSConnections = 128
	maxQuery          = 4096 // bytes; no client sends a longer query
	dnsIdle           = 10 * time.Second
)

// resolver serves the DNS stub over UDP and TCP.
type resolver struct {
	cfg   Config
	names *names
}

// serveUDP answers datagrams one after the other until conn closes: no answer
// waits for anything.
func (r *resolver) serveUDP(conn *net.UDPConn) error {
	buf := make([]byte, maxQuery)
	for {
		n, from, err := conn.ReadFromUDPAddrPort(buf)
		if err != nil {
			return err
		}
		if reply := r.names.answer(buf[:n]); reply != nil {
			// A client that is gone needs no answer.
			_, _ = conn.WriteToUDPAddrPort(reply, from)
		}
	}
}

func (r *resolver) serveTCP(_ context.Context, conn *net.TCPConn) { r.serveStream(conn) }

// serveStream answers the queries of one connection in order (RFC 7766), until
// the first message that is no query.
func (r *resolver) serveStream(conn net.Conn) {
	buf := make([]byte, 2, maxQuery)
	for {
		_ = conn.SetDeadline(time.Now().Add(dnsIdle))
		if _, err := io.ReadFull(conn, buf[:2]); err != nil {
			return
		}
		size := int(binary.BigEndian.Uint16(buf[:2]))
		if size > maxQuery {
			return
		}
		query := buf[:size]
		if _, err := io.ReadFull(conn, query); err != nil {
			return
		}
		reply := r.names.answer(query)
		if reply == nil {
			return
		}
		//nolint:gosec // one question and at most one address
		framed := binary.BigEndian.AppendUint16(make([]byte, 0, len(reply)+2), uint16(len(reply)))
		if _, err := conn.Write(append(framed, reply...)); err != nil {
			return
		}
	}
}
