package main

import (
	"math"
	"runtime/debug"

	"github.com/ALRubinger/aileron/proxy"
	"github.com/ALRubinger/aileron/proxy/budget"
)

// What a session's process needs beside its budget: the program and its caches,
// the connections that the budget does not count, and room for the collector.
const (
	ownMemory     = 28 << 20
	memoryPerConn = 64 << 10 // of those above usualConns
	usualConns    = 1024
)

// limitGarbage makes the collector run more often as the process nears what its
// limits let it hold: the budget bounds what is alive, and without this as much
// again could be garbage. GOMEMLIMIT, where it is set, stands.
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
