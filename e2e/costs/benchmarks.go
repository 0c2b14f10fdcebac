package main

// benchmark is a Go benchmark whose costs are compared.
type benchmark struct {
	name string // in the baseline
	dir  string // of its package
	path string // as -bench takes it: expressions with slashes between
	n    int    // iterations, always as many
}

// benchmarks are what a request costs, and its parts.
var benchmarks = []benchmark{
	{"exchange over HTTP/1.1", "proxy", "^BenchmarkExchange$", 500},
	{"exchange over HTTP/2", "proxy", "^BenchmarkExchangeH2$", 500},
	{"tunnel, with one exchange", "proxy", "^BenchmarkTunnel$", 60},
	{"audit row, in the journal", "audit", "^BenchmarkAppend$/^journal$/^1$", 1000},
	{"audit row, committed", "audit", "^BenchmarkAppend$/^commit$/^1$", 1000},
	{"leaf", "ca", "^BenchmarkMint$", 100},
	{"search of an event", "proxy/scrub", "^BenchmarkEvent$", 5000},
	{"search of 32 KiB, code-host", "proxy/scrub", "^BenchmarkScrub$/^code-host$", 64},
	{"search of 32 KiB, registry", "proxy/scrub", "^BenchmarkScrub$/^registry$", 64},
	{"search of 32 KiB, markdown", "proxy/scrub", "^BenchmarkScrub$/^markdown$", 64},
	{"search of 32 KiB, random", "proxy/scrub", "^BenchmarkScrub$/^random$", 64},
	{"search of 32 KiB, repeated", "proxy/scrub", "^BenchmarkScrub$/^repeated$", 256},
	{"search of 32 KiB, escapes", "proxy/scrub", "^BenchmarkScrub$/^escapes$", 64},
}
