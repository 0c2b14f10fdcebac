package h2

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/net/http2/hpack"
)

// An independent decoder, which allows no dynamic table after the first section,
// reads the fields that were written, whatever their lengths.
func TestFieldSectionsAreRead(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	text := func(most int) string {
		b := make([]byte, r.IntN(most))
		for i := range b {
			b[i] = byte(' ' + r.IntN(95))
		}
		return string(b)
	}
	known := slices.Sorted(maps.Keys(codes))
	decoder := hpack.NewDecoder(4096, nil)
	var out []byte
	for i := range 500 {
		head := &responseHead{status: 100 + r.IntN(500), header: http.Header{}, length: int64(r.IntN(1<<20)) - 1<<19}
		want := []string{":status: " + strconv.Itoa(head.status)}
		if i%5 == 0 { // trailers
			head.status, head.length, want = 0, -1, nil
		}
		if head.length >= 0 {
			want = append(want, "content-length: "+strconv.FormatInt(head.length, 10))
		}
		for j := range r.IntN(20) {
			name := known[r.IntN(len(known))]
			if j%2 == 0 {
				name = fmt.Sprintf("X-%d-%s", j, strings.Repeat("Aa", r.IntN(150)))
			}
			if head.header[name] != nil {
				continue
			}
			for range 1 + r.IntN(2) {
				value := text(300)
				head.header[name] = append(head.header[name], value)
				if codes[name] != hopField {
					want = append(want, strings.ToLower(name)+": "+value)
				}
			}
		}
		out = out[:0]
		if i == 0 {
			out = append(out, noTable)
			decoder.SetAllowedMaxDynamicTableSize(0) // as if the client's SETTINGS said so
		}
		fields, err := decoder.DecodeFull(appendFields(out, head))
		if err != nil {
			t.Fatalf("section %d cannot be decoded: %v", i, err)
		}
		var got []string
		for _, f := range fields {
			got = append(got, f.Name+": "+f.Value)
		}
		if i%5 != 0 && got[0] != want[0] {
			t.Fatalf("section %d begins with %q, want %q", i, got[0], want[0])
		}
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Fatalf("section %d: got\n%q, want\n%q", i, got, want)
		}
	}
}

// The indices are those of RFC 7541, appendix A.
func TestStaticNamesHaveTheirIndices(t *testing.T) {
	for name, code := range codes {
		if code == hopField {
			continue
		}
		fields, err := hpack.NewDecoder(4096, nil).DecodeFull(append(appendInt(nil, 0, 4, int(code)), 0))
		if err != nil || len(fields) != 1 || fields[0].Name != strings.ToLower(name) {
			t.Errorf("index %d of %s is read as %v, %v", code, name, fields, err)
		}
	}
}

func TestAFieldSectionTakesNoAllocations(t *testing.T) {
	head := &responseHead{status: 200, length: 1234, header: http.Header{"Content-Type": {"application/json"},
		"X-Ratelimit-Remaining": {"4999"}, "Connection": {"close"}}}
	block := make([]byte, 0, 4<<10)
	if n := testing.AllocsPerRun(100, func() { block = appendFields(block[:0], head) }); n > 0 {
		t.Errorf("a field section takes %v allocations", n)
	}
}
