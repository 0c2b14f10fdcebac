package session

import (
	"time"

	"github.com/ALRubinger/aileron/internal/config"
	"github.com/ALRubinger/aileron/proxy"
	"github.com/ALRubinger/aileron/proxy/wire"
)

// planeLimits returns the plane's limits for those of config.toml.
func planeLimits(l config.Limits) proxy.Limits {
	return proxy.Limits{
		Wire: wire.Limits{
			Head: l.HeadBytes, Fields: l.HeadFields, Body: l.BodyBytes,
			Header: time.Duration(l.HeadTimeout), Idle: time.Duration(l.IdleTimeout),
			Stalled: time.Duration(l.WriteTimeout), Progress: time.Duration(l.BodyTimeout),
		},
		Connections: l.Connections, Requests: l.Requests, Rate: l.Rate, Memory: l.MemoryBytes,
		Handshake: time.Duration(l.HandshakeTimeout),
		Drain:     time.Duration(l.DrainTimeout),
	}
}
