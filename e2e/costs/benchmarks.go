package main

// benchmark is a Go benchmark whose costs are compared.
type benchmark struct {
	name string // in the baseline
	dir  string // of its package
	path string // as -bench takes it: expressions with slashes between
	n    int    // iterations, always as many

	// paced: a clock starts some of its work, which a busy machine counts more of.
	paced bool
}

// benchmarks are what a request costs, and its parts.
var benchmarks = []benchmark{
	{"exchange over HTTP/1.1", "proxy", "^BenchmarkExchange$", 500, true},
	{"exchange over HTTP/2", "proxy", "^BenchmarkExchangeH2$", 500, true},
	{"tunnel, with one exchange", "proxy", "^BenchmarkTunnel$", 60, true},
	{"heads of a code host, by the proxy", "proxy", "^BenchmarkDoor$/^proxy$", 500, true},
	{"heads of a code host, by a call", "proxy", "^BenchmarkDoor$/^call$", 500, true},
	{"heads of a code host, by a command", "proxy", "^BenchmarkDoor$/^shim$", 500, true},
	{"audit row, in the journal", "audit", "^BenchmarkAppend$/^journal$/^1$", 1000, true},
	{"audit row, committed", "audit", "^BenchmarkAppend$/^commit$/^1$", 1000, true},
	{"leaf", "ca", "^BenchmarkMint$", 100, false},
	{"search of an event", "proxy/scrub", "^BenchmarkEvent$", 5000, false},
	{"search of 32 KiB, code-host", "proxy/scrub", "^BenchmarkScrub$/^code-host$", 64, false},
	{"search of 32 KiB, registry", "proxy/scrub", "^BenchmarkScrub$/^registry$", 64, false},
	{"search of 32 KiB, markdown", "proxy/scrub", "^BenchmarkScrub$/^markdown$", 64, false},
	{"search of 32 KiB, random", "proxy/scrub", "^BenchmarkScrub$/^random$", 64, false},
	{"search of 32 KiB, repeated", "proxy/scrub", "^BenchmarkScrub$/^repeated$", 256, false},
	{"search of 32 KiB, escapes", "proxy/scrub", "^BenchmarkScrub$/^escapes$", 64, false},
}
