package audit

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
)

// damage overwrites a part of a database.
type damage struct {
	Name   string
	pages  func(n int) []int // of a database with n pages, from 1
	fill   func(page []byte)
	Spares bool // no row is on these pages
}

func noise(page []byte) {
	r := rand.New(rand.NewPCG(1, 2))
	for i := range page {
		page[i] = byte(r.Uint32())
	}
}

func damages() []damage {
	middle := func(n int) []int { return []int{n / 2, n/2 + 1, n/2 + 7} }
	return []damage{
		{"pages in the middle", middle, noise, false},
		{"pages in the middle of zeros", middle, func(p []byte) { clear(p) }, false},
		{"the last page", func(n int) []int { return []int{n} }, noise, false},
		{"the root of the table", func(int) []int { return []int{2} }, noise, true},
		{"the first page", func(int) []int { return []int{1} }, noise, true},
		{"the header", func(int) []int { return []int{1} }, func(p []byte) { copy(p, bytes.Repeat([]byte{0xa5}, 40)) }, true},
		{"the first two pages and one of rows", func(n int) []int { return []int{1, 2, n - 3} }, noise, false},
	}
}

func (d damage) Apply(t *testing.T, path string) {
	t.Helper()
	raw := must.Get(os.ReadFile(path))(t)
	for _, n := range d.pages(len(raw) / 4096) {
		d.fill(raw[(n-1)*4096 : n*4096])
	}
	must.Do(t, os.WriteFile(path, raw, 0o600))
}

// longHistory writes rows, some of which need more than a page.
func longHistory(t *testing.T, dir string, n int) string {
	t.Helper()
	path := filepath.Join(dir, databaseName)
	l := openSession(t, path, "first")
	for i := range n {
		row := Row{
			Event: EventProxyProxied, SessionID: "first", Host: fmt.Sprintf("h%d.example", i), Port: 443 + i<<(i%20),
			Path: "/" + strings.Repeat("x", i%700), Status: 200, ResponseBytes: int64(i) << (i % 40),
			Fields: map[string]any{"request_id": NewID()},
		}
		if i%37 == 0 {
			row.Fields["hosts"] = strings.Repeat("é", 100*i)
		}
		must.Get(l.Append(t.Context(), row))(t)
	}
	closeLog(t, l)
	return path
}
