package main

import (
	"context"
	"fmt"
	"math"
	"os"
	"runtime"
	"time"

	"github.com/ALRubinger/aileron/proxy/scrub"
	"github.com/ALRubinger/aileron/spec"
)

// The scenarios of this file have no load: they run aileron's own parts in
// this process, one at a time, and count the CPU time that it takes.

// busy is the CPU time that f takes of this process.
func busy(f func() error) (time.Duration, error) {
	runtime.GC() // of what was built for it
	before, err := cpuTime(os.Getpid())
	if err != nil {
		return 0, err
	}
	if err := f(); err != nil {
		return 0, err
	}
	after, err := cpuTime(os.Getpid())
	return after - before, err
}

// scanning searches JSON for 64 secrets, in pieces of 32 KiB.
func scanning(_ context.Context, s *subject, t turn) (figures, error) {
	if s.name != "aileron" {
		return figures{}, nil
	}
	f := figures{}
	for name, size := range map[string]int{scanLong: 32, scanShort: 8} {
		var credentials []scrub.Credential
		for i := range 64 {
			secret := fmt.Sprintf("s%04d-with-forty-bytes-in-all-0123456789ab", i*7919)[:size]
			credentials = append(credentials, scrub.Credential{Secret: []byte(secret)})
		}
		scanner := scrub.NewSet(credentials).NewScanner()
		const piece = 32 << 10
		var done int
		took, err := busy(func() error {
			for until := time.Now().Add(t.length); done == 0 || time.Now().Before(until); {
				for at := 0; at+piece <= len(uploadBody); at += piece {
					_ = scanner.Write(uploadBody[at : at+piece])
					done += piece
				}
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
		f[name] = float64(done) / took.Seconds() / 1e9
	}
	return f, nil
}

// matching finds a request's operation among few and among many.
func matching(_ context.Context, s *subject, t turn) (figures, error) {
	if s.name != "aileron" {
		return figures{}, nil
	}
	few, err := matchTime(10, t)
	if err != nil {
		return nil, err
	}
	many, err := matchTime(t.many(100_000), t)
	return figures{matchFew: few, matchMany: many, matchGrowth: many / few}, err
}

// matchTime is the nanoseconds of CPU time that a match among n operations takes.
func matchTime(n int, t turn) (float64, error) {
	c := &spec.Connector{FQN: "hub://bench/api", Version: "1.0.0", Tools: []spec.Tool{{Name: "api"}}}
	for i := range n {
		path, err := spec.ParseTemplate(fmt.Sprintf("/v1/kind%d/{id}/things/{thing}", i))
		if err != nil {
			return 0, err
		}
		c.Tools[0].Operations = append(c.Tools[0].Operations,
			&spec.Operation{Connector: c, Tool: "api", Name: fmt.Sprint("op", i), Path: path, Method: "GET",
				Hosts: []spec.HostPattern{{Name: apiHost, Port: 443}}, Injection: &spec.Injection{Kind: "bearer"}})
	}
	index, err := spec.NewIndex([]*spec.Connector{c})
	if err != nil {
		return 0, err
	}
	const batch = 1000
	best := math.Inf(1)
	for range 4 { // the least is what it takes when nothing else is in the way
		var done int
		took, err := busy(func() error {
			for until := time.Now().Add(t.length / 4); done == 0 || time.Now().Before(until); done += batch {
				for i := range batch {
					target := spec.Target{Scheme: "https", Host: apiHost, Port: 443, Method: "GET", Path: paths[i%len(paths)]}
					if _, no := index.Match(target); no != nil {
						return fmt.Errorf("match %s among %d operations: %w", target.Path, n, no)
					}
				}
			}
			return nil
		})
		if err != nil {
			return 0, err
		}
		best = min(best, float64(took.Nanoseconds())/float64(done))
	}
	return best, nil
}

var paths = []string{"/v1/kind1/42/things/7", "/v1/kind7/abc/things/def", "/v1/kind4/1/things/2"}
