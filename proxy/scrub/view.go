package scrub

import (
	"slices"
	"sort"
)

// view is one decoding of a region of the stream: its symbols, and where in the
// scanner's buffer each of them came from.
type view struct {
	symbols []byte
	jumps   []jump
	next    int32 // where the last symbol ended
	cursor  int   // the jump of the last lookup: most lookups go forward
	cut     int   // where an incomplete escape begins at the end of the region; its end if none
	final   bool  // nothing follows the region: an incomplete escape is none
	undone  bool  // there was an escape
	work    int   // the bytes that were decoded so far; a test bounds them
}

// jump maps symbol at to data[from:to]. The symbols after it, up to the next jump,
// come from one byte each.
type jump struct{ at, from, to int32 }

// raw makes v a view of data[from:to] itself, without a copy.
func (v *view) raw(data []byte, from, to int) {
	v.symbols, v.cut, v.cursor = data[from:to], to, 0
	//nolint:gosec // what is searched at once is bounded
	v.jumps = append(v.jumps[:0], jump{0, int32(from), int32(from + 1)})
}

// start empties v for a decoding of src.
func (v *view) start(src *view) {
	v.symbols = slices.Grow(v.symbols[:0], len(src.symbols))
	v.jumps, v.cursor, v.next = v.jumps[:0], 0, -1
	v.cut, v.undone, v.work = src.cut, false, v.work+len(src.symbols)
}

func (v *view) put(c byte, from, to int32) {
	if from != v.next || to != from+1 {
		v.jumps = append(v.jumps, jump{int32(len(v.symbols)), from, to}) //nolint:gosec // bounded, as above
	}
	v.next = to
	v.symbols = append(v.symbols, c)
}

// take copies src's symbols from to to as they are.
func (v *view) take(src *view, from, to int) {
	if from >= to {
		return
	}
	begin, end := src.place(from)
	v.put(src.symbols[from], begin, end)
	shift := int32(len(v.symbols) - 1 - from) //nolint:gosec // bounded, as above
	for _, j := range src.jumps[src.cursor+1:] {
		if int(j.at) >= to {
			break
		}
		v.jumps = append(v.jumps, jump{j.at + shift, j.from, j.to})
	}
	v.symbols = append(v.symbols, src.symbols[from+1:to]...)
	_, v.next = src.place(to - 1)
}

// place returns where symbol i came from.
func (v *view) place(i int) (from, to int32) {
	at := int32(i) //nolint:gosec // bounded, as above
	if v.jumps[v.cursor].at > at || v.cursor+8 < len(v.jumps) && v.jumps[v.cursor+8].at <= at {
		v.cursor = sort.Search(len(v.jumps), func(k int) bool { return v.jumps[k].at > at }) - 1
	}
	for v.cursor+1 < len(v.jumps) && v.jumps[v.cursor+1].at <= at {
		v.cursor++
	}
	j := v.jumps[v.cursor]
	if j.at == at {
		return j.from, j.to
	}
	from = j.to + at - j.at - 1
	return from, from + 1
}

func (v *view) begin(i int) int32 {
	from, _ := v.place(i)
	return from
}

func (v *view) end(i int) int32 {
	_, to := v.place(i)
	return to
}
