package gateway

import (
	"context"
	"net"
)

// listeners are what the gateway serves.
type listeners struct {
	explicit, redirected, dnsTCP net.Listener
	dnsUDP                       *net.UDPConn
}

// listen opens all listeners, or none.
func listen(ctx context.Context) (l *listeners, err error) {
	l = &listeners{}
	defer func() {
		if err != nil {
			l.close()
		}
	}()
	var lc net.ListenConfig
	// A client that speaks MPTCP falls back to TCP: the kernel has no original
	// destination for an MPTCP connection.
	lc.SetMultipathTCP(false)
	if l.explicit, err = lc.Listen(ctx, "tcp4", explicitAddr.String()); err != nil {
		return l, err
	}
	if l.redirected, err = lc.Listen(ctx, "tcp4", redirectAddr.String()); err != nil {
		return l, err
	}
	if l.dnsTCP, err = lc.Listen(ctx, "tcp4", dnsAddr.String()); err != nil {
		return l, err
	}
	// Not 0.0.0.0: an answer would leave from the route's source address, and
	// conntrack would not recognise it as the answer.
	l.dnsUDP, err = net.ListenUDP("udp4", net.UDPAddrFromAddrPort(dnsAddr))
	return l, err
}

func (l *listeners) close() {
	for _, tcp := range []net.Listener{l.explicit, l.redirected, l.dnsTCP} {
		if tcp != nil {
			_ = tcp.Close()
		}
	}
	if l.dnsUDP != nil {
		_ = l.dnsUDP.Close()
	}
}
