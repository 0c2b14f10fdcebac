package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"math"
	"os"
	"runtime"
	"time"

	"github.com/ALRubinger/aileron/e2e/corpus"
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

// searchedSecrets is how many secrets a session is searched for, and manySecrets a large session's.
const (
	searchedSecrets = 64
	manySecrets     = 1024
)

// searched returns the metric of a kind of body, and searchMetrics all of them, with the goals of each kind.
func searched(kind string) string { return "GB/s, " + kind }

const (
	searchShort  = "GB/s, plain JSON, 8 bytes a secret"
	searchMany   = "GB/s, plain JSON, 1024 secrets"
	searchGrowth = "growth × at 1024 secrets"
)

func searchMetrics() []metric {
	goals := map[string]float64{"repeated": 3, "code-host": 1, "registry": 1, "pulls": 0.8, "random": 1.5}
	var all []metric
	for _, k := range corpus.Kinds() {
		all = append(all, atLeast(searched(k.Name), cmp.Or(goals[k.Name], 0.4)))
	}
	return append(all, atLeast(searchShort, 0.5), figure(searchMany), atMost(searchGrowth, 1.5))
}

// searching searches each kind of body for secrets that are not in it, in pieces of 32 KiB.
func searching(_ context.Context, _ *subject, t turn) (figures, error) {
	t.length /= 4 // there are many kinds
	f := figures{}
	plain := chunks()["repeated"]
	var err error
	measure := func(name string, body []byte, n, size int) {
		if err == nil {
			f[name], err = searchSpeed(body, n, size, t.length)
		}
	}
	for _, k := range corpus.Kinds() {
		measure(searched(k.Name), chunks()[k.Name], searchedSecrets, 40)
	}
	measure(searchShort, plain, searchedSecrets, 8)
	measure(searchMany, plain, manySecrets, 40)
	f[searchGrowth] = f[searched("repeated")] / f[searchMany]
	return f, err
}

// searchSpeed returns how many GB of body a second of CPU time searches for n secrets of so many bytes.
func searchSpeed(body []byte, n, size int, length time.Duration) (float64, error) {
	var credentials []scrub.Credential
	for i := range n {
		sum := sha256.Sum256([]byte{byte(i), byte(i >> 8)})
		token := "bx_" + base64.RawURLEncoding.EncodeToString(sum[:])
		credentials = append(credentials, scrub.Credential{Secret: []byte(token[len(token)-min(size, len(token)):])})
	}
	scanner := scrub.NewSet(credentials).NewScanner()
	const piece = 32 << 10
	var done int
	took, err := busy(func() error {
		for until := time.Now().Add(length); done == 0 || time.Now().Before(until); {
			for at := 0; at+piece <= len(body) && (at == 0 || time.Now().Before(until)); at += piece {
				_ = scanner.Write(body[at : at+piece])
				done += piece
			}
		}
		return nil
	})
	return float64(done) / took.Seconds() / 1e9, err
}

// matching finds a request's operation among few and among many.
func matching(_ context.Context, _ *subject, t turn) (figures, error) {
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
