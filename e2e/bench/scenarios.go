package main

import (
	"context"
	"time"
)

// scenario is one kind of load, and what is asked of a proxy under it.
type scenario struct {
	id, what string
	metrics  []metric
	fresh    bool // each turn has a process of its own
	turns    int  // at most; 0: as many as were asked for
	// run measures one turn of a subject.
	run func(ctx context.Context, s *subject, t turn) (figures, error)
	// check does once what run does often, and returns what is wrong; nil:
	// there is nothing to ask.
	check func(ctx context.Context, s *subject) error
}

// turn is how long, and how much, a subject is measured at a time.
type turn struct {
	length time.Duration
	share  int          // of what is counted, not timed: 1 all, 3 a third, 10 a tenth
	rest   func() error // nil, or what a subject at rest is asked for
	last   bool         // of its scenario: what need not be repeated is measured now
}

// many is the turn's share of n.
func (t turn) many(n int) int { return n / max(t.share, 1) }

// figures are what a turn measured, by the name of the metric.
type figures map[string]float64

// metric is one figure of a scenario. A goal is a bound on the figure's ratio
// to another subject's, or on the figure itself.
type metric struct {
	name    string
	bound   float64 // 0: there is no goal
	of      string  // the subject that the ratio is to; "": the figure itself
	atLeast bool    // bound is a lower one
}

const (
	cpuPer1000   = "CPU ms/1000"
	rate         = "requests/s"
	median       = "p50 µs"
	tail         = "p99 µs"
	cpuPerGiB    = "CPU s/GiB"
	speed        = "MiB/s"
	peak         = "peak RSS MiB"
	growth       = "growth at 128 MiB"
	firstEvent   = "first event µs"
	perEvent     = "p50 per event µs"
	cpuPerEvents = "CPU ms/1000 events"
	perTunnel    = "KiB per tunnel"
	resumed      = "resumed %"
	wait         = "wait ms"
	scanLong     = "GB/s, 32 bytes"
	scanShort    = "GB/s, 8 bytes"
	matchFew     = "ns, 10 operations"
	matchMany    = "ns, 100000"
	matchGrowth  = "growth ×"
)

// scenarios are the table of goals, in its order.
var scenarios = []scenario{
	{id: "A1", what: "small GETs, 1 connection", run: small(1), check: checkSmall,
		metrics: []metric{{cpuPer1000, 1.25, "light", false}, {name: rate}, {name: median}, {name: tail}}},
	{id: "A64", what: "small GETs, 64 connections", run: small(64), check: checkSmall,
		metrics: []metric{{cpuPer1000, 1.3, "light", false}, {rate, 0.8, "light", true}, {name: median}, {name: tail}}},
	{id: "B", what: "a tunnel per request, same host", run: sameHost, check: checkSmall,
		metrics: []metric{{cpuPer1000, 1.15, "light", false}, {name: rate}, {name: median}, {name: tail}}},
	{id: "C", what: "a tunnel per request, new host", run: newHost, check: checkNewHost,
		metrics: []metric{{cpuPer1000, 1.15, "light", false}, {name: rate}, {name: median}, {name: tail}}},
	{id: "D", what: "10 MiB down", run: bodies(downloads), check: checkBodies(downloads), metrics: bodyMetrics},
	{id: "E", what: "10 MiB up", run: bodies(uploads), check: checkBodies(uploads), metrics: bodyMetrics},
	{id: "F", what: "server-sent events, one in 2 ms", run: streams, check: checkStreams,
		metrics: []metric{{firstEvent, 1.5, "light", false}, {perEvent, 1.3, "light", false}, {name: cpuPerEvents}}},
	{id: "G", what: "an idle tunnel", run: idle, check: checkSmall, fresh: true, turns: 2,
		metrics: []metric{{perTunnel, 45, "", false}}},
	{id: "H", what: "HTTP/2 client, 64 streams", run: overH2, check: checkH2,
		metrics: []metric{{cpuPer1000, 1.3, "light", false}, {name: rate}, {name: median}, {name: tail}}},
	{id: "R", what: "TLS resumption by clients", run: resumption, check: checkSmall, turns: 2,
		metrics: []metric{{resumed, 99, "", true}}},
	{id: "X", what: "wait for 100-continue", run: expectation, check: checkExpectation, turns: 3,
		metrics: []metric{{wait, 5, "", false}}},
	{id: "S", what: "the search for 64 secrets, alone", run: scanning, turns: 3,
		metrics: []metric{{scanLong, 5, "", true}, {scanShort, 0.5, "", true}}},
	{id: "M", what: "the match of an operation, alone", run: matching, turns: 3,
		metrics: []metric{{name: matchFew}, {name: matchMany}, {matchGrowth, 1.5, "", false}}},
}

var bodyMetrics = []metric{{cpuPerGiB, 1.25, "lighth1", false}, {name: speed, of: "lighth1"},
	{name: peak, of: "lighth1"}, {growth, 16, "", false}}
