package session

import (
	"math"
	"runtime/debug"
	"time"

	"github.com/ALRubinger/aileron/internal/config"
	"github.com/ALRubinger/aileron/proxy"
	"github.com/ALRubinger/aileron/proxy/budget"
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

// What a session's process needs beside its budget: the program and its caches,
// the connections that the budget does not count, and room for the collector.
const (
	ownMemory     = 28 << 20
	memoryPerConn = 64 << 10 // of those above usualConns
	usualConns    = 1024
)

// limitGarbage makes the collector run more often as the process nears what its
// limits allow it to hold: the budget bounds what is alive, and without this as
// much again could be garbage. A GOMEMLIMIT that is set is kept.
func limitGarbage(l proxy.Limits) {
	if debug.SetMemoryLimit(-1) == math.MaxInt64 {
		debug.SetMemoryLimit(memoryLimit(l))
	}
}

func memoryLimit(l proxy.Limits) int64 {
	size := l.Memory
	if size == 0 {
		size = budget.Default
	}
	return ownMemory + size + int64(max(l.Connections-usualConns, 0))*memoryPerConn
}
