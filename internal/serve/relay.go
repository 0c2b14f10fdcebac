package serve

import (
	"cmp"

	"github.com/ALRubinger/aileron/internal/uplink"
)

// Relay is the relay beside a sandbox in another Pod, or on another machine: see package uplink. One of Dial and Listen
// is set.
type Relay struct {
	Dial   string // HOST:PORT of the relay
	Listen string // or HOST:PORT, to which the relay connects
	Key    string // file of the key that both have
}

func (r Relay) isSet() bool { return r.Dial != "" || r.Listen != "" }

// open opens the uplink. c has what is not the relay's.
func (r Relay) open(c uplink.Config) (u *uplink.Uplink, err error) {
	if c.Key, err = uplink.ReadKey(r.Key); err != nil {
		return nil, err
	}
	c.Address = cmp.Or(r.Dial, r.Listen)
	if r.Dial != "" {
		return uplink.Dial(c)
	}
	return uplink.Listen(c)
}
