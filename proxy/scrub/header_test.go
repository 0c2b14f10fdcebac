package scrub

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
)

// A header is searched at once, as one text. That finds whatever a search of each name and of each value finds,
// wherever in them a secret is and in whatever form.
func TestAHeaderIsSearchedAsItsValuesAre(t *testing.T) {
	fixtures, hits := newFixtures(), 0
	for seed := range uint64(6000) {
		c := newSample(fixtures, seed)
		h, want := http.Header{}, http.Header{}
		for _, v := range valuesOf(c) {
			name := fmt.Sprintf("X-Field-%d-With-A-Name-That-Is-Long", c.r.IntN(4))
			if c.r.IntN(4) == 0 {
				name, v = v, "the name alone has it"
			}
			h[name] = append(h[name], v)
		}
		n := 0
		for name, values := range h {
			if _, found := c.set.Text(name); found > 0 {
				n += found
				continue
			}
			for _, v := range values {
				clean, found := c.set.Text(v)
				want[name] = append(want[name], clean)
				n += found
			}
		}
		if got := c.set.Header(h); got != n || !maps.EqualFunc(h, want, func(a, b []string) bool {
			return strings.Join(a, "\x00") == strings.Join(b, "\x00")
		}) {
			t.Fatalf("seed %d: %d hits, want %d\n%q\nwant\n%q", seed, got, n, h, want)
		}
		hits += n
	}
	if hits < 1000 {
		t.Errorf("only %d hits in all: the samples contain too few secrets", hits)
	}
}

// valuesOf returns the text of a sample in values, cut where nothing was placed.
func valuesOf(c *sample) (values []string) {
	at := 0
	for _, p := range c.placed {
		cut := at + c.r.IntN(p.from-at+1)
		values = append(values, string(c.text[at:cut]))
		at = cut
		if c.r.IntN(2) == 0 { // the value ends with the secret
			values = append(values, string(c.text[at:p.to]))
			at = p.to
		}
	}
	return append(values, string(c.text[at:]))
}

// What one value ends with is not continued by the next one, which need not arrive next to it either.
func TestNeighboursInAHeaderAreNoHit(t *testing.T) {
	for _, f := range newFixtures() {
		for _, secret := range f.secrets {
			if len(secret) < 2*Window-2 {
				continue
			}
			h := http.Header{"X-Beginning-Of-It": {secret[:Window-1], secret[Window-1 : 2*Window-2]}}
			want := strings.Join(h["X-Beginning-Of-It"], "|")
			if !f.set.isClean(h) || f.set.Header(h) != 0 || strings.Join(h["X-Beginning-Of-It"], "|") != want {
				t.Errorf("%q is a hit: %q", want, h)
			}
		}
	}
}

// A header of any length is searched, and none of it stays in the scanners that are used again.
func TestALargeHeaderIsSearched(t *testing.T) {
	set := NewSet([]Credential{{Secret: []byte(longSecret)}})
	for _, fields := range []int{1, 10, 500} {
		for _, size := range []int{20, smallPiece - 1, smallPiece, 3 * smallPiece} {
			h := http.Header{}
			for i := range fields {
				h[fmt.Sprint("X-", i)] = []string{strings.Repeat("a ", size/2)}
			}
			if n := set.Header(h); n != 0 {
				t.Errorf("%d fields of %d: %d hits", fields, size, n)
			}
			h["X-0"] = append(h["X-0"], strings.Repeat("b", rand.IntN(size))+" "+longSecret)
			if n := set.Header(h); n != 1 || strings.Contains(h["X-0"][1], longSecret) {
				t.Errorf("%d fields of %d: %d hits", fields, size, n)
			}
		}
	}
	sc := set.borrow()
	if text := string(sc.data[:cap(sc.data)]); strings.Trim(text, "\x00") != "" {
		t.Errorf("a scanner keeps %.100q", text)
	}
}

// A set whose secrets use every byte leaves none to put between values.
func TestAHeaderIsSearchedForAnySecret(t *testing.T) {
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	set := NewSet([]Credential{{Secret: all}})
	h := http.Header{"X-Echo": {"a plain value of some length", string(all[33:90])}}
	if n := set.Header(h); set.between != -1 || n != 1 || h["X-Echo"][1] != strings.Repeat("*", 57) {
		t.Errorf("%d hits, %q", n, h)
	}
}

// BenchmarkHeader measures the head of a response of a code host's API.
func BenchmarkHeader(b *testing.B) {
	set := NewSet(tokens(1, 40))
	h := apiHead()
	b.ReportAllocs()
	before := cpuTime(b)
	for b.Loop() {
		set.Header(h)
	}
	reportCPU(b, before)
}

func apiHead() http.Header {
	return http.Header{
		"Access-Control-Allow-Origin": {"*"},
		"Access-Control-Expose-Headers": {"ETag, Link, Location, Retry-After, X-RateLimit-Limit, X-RateLimit-Remaining, " +
			"X-RateLimit-Used"},
		"Cache-Control":             {"private, max-age=60, s-maxage=60"},
		"Content-Length":            {"1201"},
		"Content-Security-Policy":   {"default-src 'none'"},
		"Content-Type":              {"application/json; charset=utf-8"},
		"Date":                      {"Mon, 17 Feb 2025 16:20:44 GMT"},
		"Etag":                      {`W/"0f6a5b7a7b0f6dd9f2f9b2c4d8d1d6d5ce1b2f0a9c1f53ab1f2e6a37ef1c9d41"`},
		"Last-Modified":             {"Mon, 17 Feb 2025 16:20:44 GMT"},
		"Referrer-Policy":           {"origin-when-cross-origin, strict-origin-when-cross-origin"},
		"Server":                    {"bench"},
		"Strict-Transport-Security": {"max-age=31536000; includeSubdomains; preload"},
		"Vary":                      {"Accept, Authorization, Cookie, Accept-Encoding"},
		"X-Content-Type-Options":    {"nosniff"},
		"X-Frame-Options":           {"deny"},
		"X-Ratelimit-Limit":         {"5000"},
		"X-Ratelimit-Remaining":     {"4987"},
		"X-Ratelimit-Reset":         {"1739812844"},
		"X-Ratelimit-Used":          {"13"},
		"X-Request-Id":              {"E4C2:1F3A7B:2B9C1D5:2D0F8A1:67B36AEC"},
	}
}
