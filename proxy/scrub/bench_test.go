package scrub

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/ALRubinger/aileron/e2e/corpus"
	"github.com/ALRubinger/aileron/e2e/must"
)

const (
	benchPiece = 32 << 10
	benchBody  = 1 << 20 // long enough that no branch predictor learns it
)

// tokens returns k credentials of size bytes, as services issue them: a public prefix, where there is room for one,
// and random letters and digits.
func tokens(k, size int) []Credential {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
	r := rand.New(rand.NewPCG(uint64(k), uint64(size)))
	credentials := make([]Credential, k)
	for i := range credentials {
		secret := make([]byte, size)
		for j := range secret {
			secret[j] = alphabet[r.IntN(len(alphabet))]
		}
		if size >= Window {
			copy(secret, []string{"ghp_", "sk-", "xoxb-"}[i%3])
		}
		credentials[i] = Credential{Secret: secret}
	}
	return credentials
}

// BenchmarkScrub measures bodies as servers send them, and bodies as attackers would, in pieces of 32 KiB. With
// AILERON_SCRUB_GRID=1 it tries each number and length of secrets.
func BenchmarkScrub(b *testing.B) {
	sizes, numbers := []int{40}, []int{64}
	if os.Getenv("AILERON_SCRUB_GRID") != "" {
		sizes, numbers = []int{8, 20, 40}, []int{1, 8, 64, 1024}
	}
	for _, size := range sizes {
		for _, k := range numbers {
			credentials := tokens(k, size)
			set := NewSet(credentials)
			kinds := corpus.Kinds()
			near := string(credentials[0].Secret[:min(size-1, Window-1)])
			kinds = append(kinds, repeating("near", near+"."), repeating("near-escaped", escapeAll(near)+"."))
			for _, kind := range kinds {
				b.Run(fmt.Sprintf("%s/size=%d/secrets=%d", kind.Name, size, k), func(b *testing.B) {
					benchmarkBody(b, set, kind.Make(1, benchBody))
				})
			}
		}
	}
}

// repeating returns the kind of body that repeats text.
func repeating(name, text string) corpus.Kind {
	return corpus.Kind{Name: name, Make: func(_ uint64, size int) []byte {
		return bytes.Repeat([]byte(text), size/len(text)+1)[:size]
	}}
}

// benchmarkBody measures one piece of body after the other in one stream.
func benchmarkBody(b *testing.B, set *Set, body []byte) {
	b.SetBytes(benchPiece)
	b.ReportAllocs()
	sc := set.NewScanner()
	for i := 0; i+benchPiece <= len(body); i += benchPiece { // buffers grow
		_ = sc.Write(body[i : i+benchPiece])
	}
	at, before := 0, cpuTime(b)
	for b.Loop() {
		_ = sc.Write(body[at : at+benchPiece])
		if at += benchPiece; at+benchPiece > len(body) {
			at = 0
		}
	}
	b.ReportMetric(float64(b.N)*benchPiece/float64(cpuTime(b)-before), "GB/cpu-s")
}

// cpuTime returns the nanoseconds of processor time that the process has used: what others do on the machine
// meanwhile does not count.
func cpuTime(b *testing.B) int64 {
	b.Helper()
	var used unix.Timespec
	must.Do(b, unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &used))
	return used.Nano()
}

// BenchmarkEvent measures one event of 120 bytes.
func BenchmarkEvent(b *testing.B) {
	event := []byte(fmt.Sprintf("data: {\"delta\":%q}\n\n", strings.Repeat("word ", 20)))
	sc := NewSet(tokens(8, 40)).NewScanner()
	b.SetBytes(int64(len(event)))
	b.ReportAllocs()
	before := cpuTime(b)
	for b.Loop() {
		_ = sc.Write(event)
	}
	reportCPU(b, before)
}

// reportCPU reports the processor time of each iteration since before.
func reportCPU(b *testing.B, before int64) {
	b.Helper()
	b.ReportMetric(float64(cpuTime(b)-before)/float64(b.N), "cpu-ns/op")
}

// BenchmarkText measures the values of header fields.
func BenchmarkText(b *testing.B) {
	set := NewSet(tokens(64, 40))
	for name, value := range map[string]string{
		"type": "application/json; charset=utf-8", "date": "Sun, 06 Nov 1994 08:49:37 GMT",
		"etag": `W/"6afd3c62325317df2d37d5c2d658fa9ff1a832a4"`,
		"link": `<https://api.code.example/repositories/1/issues?page=2&q=a%20b>; rel="next", ` +
			`<https://api.code.example/repositories/1/issues?page=9&q=a%20b>; rel="last"`,
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(value)))
			b.ReportAllocs()
			before := cpuTime(b)
			for b.Loop() {
				_, _ = set.Text(value)
			}
			reportCPU(b, before)
		})
	}
}

// BenchmarkNewSet measures the preparation of a search.
func BenchmarkNewSet(b *testing.B) {
	for _, k := range []int{1, 8, 64, 1024} {
		b.Run(fmt.Sprintf("secrets=%d", k), func(b *testing.B) {
			credentials := tokens(k, 40)
			b.ReportAllocs()
			before := cpuTime(b)
			for b.Loop() {
				NewSet(credentials)
			}
			reportCPU(b, before)
		})
	}
}

func escapeAll(secret string) string {
	var s strings.Builder
	for _, c := range []byte(secret) {
		fmt.Fprintf(&s, "%%%02x", c)
	}
	return s.String()
}
