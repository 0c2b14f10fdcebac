package attacks

import (
	"net/netip"

	"github.com/ALRubinger/aileron/e2e/harness"
)

// dialWatch sees every connection that anyone in the namespace attempts, and
// every datagram, whether anything listens there or not.
type dialWatch struct{ packets *harness.Packets }

// dial is one attempt.
type dial struct {
	network string // tcp or udp
	to      netip.AddrPort
	from    netip.AddrPort
}

func (d dial) String() string { return d.network + " " + d.to.String() }

func watchDials() (*dialWatch, error) {
	packets, err := harness.WatchPackets()
	return &dialWatch{packets}, err
}

// take returns the attempts since the last time.
func (w *dialWatch) take() []dial {
	packets, err := w.packets.Take()
	if err != nil {
		panic(err) // what was not seen cannot be judged
	}
	var all []dial
	for _, p := range packets {
		if p.Dial() {
			all = append(all, dial{network: p.Network, to: p.To, from: p.From})
		}
	}
	return all
}
