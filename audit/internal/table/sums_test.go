package table

import (
	"slices"
	"testing"

	"github.com/ALRubinger/aileron/audit/internal/chain"
)

// FuzzSumsThatAreRead reads any column: what it has is read as it was written, or not at all.
func FuzzSumsThatAreRead(f *testing.F) {
	at := func(s string) []byte { return []byte("2026-01-02T03:04:05." + s + "Z") }
	one := &group{Group: Group{Session: "s", Host: "h.example", Rows: 3, Requests: 1 << 40, Counted: 2, Redactions: -1},
		first: at("000000001"), last: at("900000000")}
	two := &group{Group: Group{Host: "s", Event: chain.EventProxyStarted, Rows: 1}, first: at("000000000"),
		last: at("000000000")}
	column := make([]byte, 128)
	encodeSums(column, []*group{one, two})
	got, ok := decodeSums(nil, column, &nameFilter{})
	if !ok || len(got) != 2 || got[0].names != one.names() || got[1].names != two.names() ||
		got[0].numbers.Requests != 1<<40 || got[0].numbers.Redactions != -1 ||
		stamp(got[0].last) != string(one.last) || stamp(got[1].first) != string(two.first) {
		f.Errorf("the groups are read as %+v", got)
	}
	small := make([]byte, 40)
	encodeSums(small, []*group{one, two})
	if got, ok := decodeSums(nil, small, &nameFilter{}); slices.Max(small) != 0 || ok || len(got) != 0 {
		f.Errorf("a column that is too small has %x", small)
	}
	f.Add(column)
	f.Add(column[:70])
	f.Add([]byte("\x01\x05a"))
	f.Add([]byte("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"))
	f.Fuzz(func(t *testing.T, column []byte) {
		all, ok := decodeSums(nil, column, &nameFilter{})
		if len(all) > sumsSize || ok != (len(all) > 0) {
			t.Errorf("%d groups of %d bytes, %v", len(all), len(column), ok)
		}
	})
}
