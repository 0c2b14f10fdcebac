package main

import (
	"context"
	"time"
)

// scenario is one kind of load, with the figures that are measured under it.
type scenario struct {
	id, what string
	metrics  []metric
	alone    bool // aileron is the only subject: there is nothing to compare it with
	fresh    bool // each turn has a process of its own
	turns    int  // at most; 0: as many as were asked for
	// needs returns why this machine cannot measure it; nil: all can.
	needs func(ctx context.Context) error
	// run measures one turn of a subject.
	run func(ctx context.Context, s *subject, t turn) (figures, error)
	// check does once what run does often, and returns what is wrong; nil: there is nothing to check.
	check func(ctx context.Context, s *subject) error
}

// turn is how long, and how much, a subject is measured at a time.
type turn struct {
	length time.Duration
	share  int          // of what is counted, not timed: 1 all, 3 a third, 10 a tenth
	rest   func() error // nil, or called while a subject is at rest
	last   bool         // of its scenario: what need not be repeated is measured now
}

// many returns the turn's share of n.
func (t turn) many(n int) int { return max(1, n/max(t.share, 1)) }

// figures are what a turn measured, by the name of the metric.
type figures map[string]float64

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
	matchFew     = "ns, 10 operations"
	matchMany    = "ns, 100000"
	matchGrowth  = "growth ×"
)

// scenarios are all loads. Their goals are those of docs/performance.md.
var scenarios = []scenario{
	{id: "A1", what: "small GETs, 1 connection", run: small(1), check: checkSmall,
		metrics: requestMetrics(times(cpuPer1000, 1.3), figure(rate))},
	{id: "A64", what: "small GETs, 64 connections", run: small(64), check: checkSmall,
		metrics: requestMetrics(times(cpuPer1000, 1.3), timesAtLeast(rate, 0.8))},
	{id: "B", what: "a tunnel per request, same host", run: sameHost, check: checkSmall,
		metrics: requestMetrics(times(cpuPer1000, 1.15), figure(rate))},
	{id: "C", what: "a tunnel per request, new host", run: newHost, check: checkNewHost,
		metrics: requestMetrics(times(cpuPer1000, 1.15), figure(rate))},
	{id: "D", what: "10 MiB of random bytes down", run: bodies(downloads("random"), 10),
		check: checkBodies(downloads("random")), metrics: bodyMetrics(1.5)},
	{id: "J", what: "2 MiB of JSON of one of three APIs down", run: bodies(downloads(apiShapes...), 2),
		check: checkDownloads(apiShapes...), metrics: bodyMetrics(2)},
	{id: "E", what: "10 MiB of random bytes up", run: bodies(uploads("random"), 10),
		check: checkBodies(uploads("random")), metrics: bodyMetrics(1.05)},
	{id: "F", what: "events of a model, one in 2 ms", run: streams, check: checkStreams,
		metrics: []metric{times(firstEvent, 1.3), times(perEvent, 1.3), figure(cpuPerEvents)}},
	{id: "G", what: "an idle tunnel", run: idle, check: checkSmall, fresh: true, turns: 2,
		metrics: []metric{atMost(perTunnel, 32)}},
	{id: "H", what: "HTTP/2 client, 64 streams", run: overH2, check: checkH2,
		metrics: requestMetrics(times(cpuPer1000, 1.3), figure(rate))},
	{id: "R", what: "TLS resumption by clients", run: resumption, check: checkSmall, turns: 2,
		metrics: []metric{atLeast(resumed, 99)}},
	{id: "X", what: "wait for 100-continue", run: expectation, check: checkExpectation, turns: 3,
		metrics: []metric{atMost(wait, 5)}},
	{id: "Q", what: "small beside bodies that are slow to search", run: besideHostile, alone: true, turns: 3,
		metrics: []metric{atMost(besideFew, 10), atMost(besideMany, 10), atMost(latestEvent, 20)}},
	{id: "O", what: "A64 with a login beside a bearer", run: besideBearer, alone: true,
		metrics: []metric{figure(loginCPU), atMost(loginTimes, 1.02)}},
	{id: "P", what: "20 sessions on one home", run: sideBySide, alone: true, fresh: true, turns: 1,
		metrics: []metric{figure(tailOfOne), figure(medianOfMany), figure(tailOfMany), atMost(tailGrowth, 2),
			atLeast(leastShare, 0.5)}},
	{id: "T", what: "10000 tunnels, 1000 active", run: wide, alone: true, fresh: true, turns: 1,
		metrics: []metric{figure(wideTunnels), atMost(wideTunnel, 32), figure(wideCPU), figure(wideTail),
			atMost(wideGrowth, 1.5)}},
	{id: "K", what: "connectors, installed and bound", run: installation, alone: true, turns: 1,
		metrics: []metric{atMost(installSeconds, 3), figure(installOne)}},
	{id: "LP", what: "a sandbox of Podman", run: starting("podman"), needs: responds("podman"), alone: true,
		metrics: startMetrics(atMost(startsAdded, 150), startsPlain)},
	{id: "LD", what: "a sandbox of Docker", run: starting("docker"), needs: responds("docker"), alone: true,
		metrics: startMetrics(atMost(startsAdded, 150), startsPlain)},
	{id: "LN", what: "a native sandbox", run: starting(native), needs: makesNamespaces, alone: true,
		metrics: startMetrics(atMost(startsAlone, 150), startsHost)},
	{id: "UC", what: "the prompt of Claude Code", run: screens("claude"), needs: hasImage("claude"), alone: true,
		fresh: true, turns: 1, metrics: screenMetrics()},
	{id: "UX", what: "the prompt of Codex", run: screens("codex"), needs: hasImage("codex"), alone: true,
		fresh: true, turns: 1, metrics: screenMetrics()},
	{id: "UO", what: "the prompt of opencode", run: screens("opencode"), needs: hasImage("opencode"), alone: true,
		fresh: true, turns: 1, metrics: screenMetrics()},
	{id: "I", what: "a session at rest, on Podman", run: atRest, needs: responds("podman"), alone: true, fresh: true,
		turns: 1, metrics: restMetrics()},
	{id: "S", what: "the search for 64 secrets", run: searching, alone: true, turns: 3, metrics: searchMetrics()},
	{id: "M", what: "the match of an operation", run: matching, alone: true, turns: 3,
		metrics: []metric{figure(matchFew), figure(matchMany), atMost(matchGrowth, 1.5)}},
}

// requestMetrics are those of small requests.
func requestMetrics(cpu, speed metric) []metric {
	return []metric{cpu, speed, figure(median), figure(tail)}
}

// bodyMetrics are those of large bodies, whose CPU may be so many times the reference's.
func bodyMetrics(bound float64) []metric {
	return []metric{times(cpuPerGiB, bound), figure(speed), figure(peak), atMost(growth, 16)}
}
