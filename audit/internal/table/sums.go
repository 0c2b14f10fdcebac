package table

import (
	"context"
	"encoding/binary"
	"math"
	"slices"
	"time"

	"github.com/ALRubinger/aileron/audit/internal/chain"
)

// The sums of a record of the index are the groups of its rows, with hosts and intents, in the order in which their
// columns first occur: a count of ten million rows reads 40 MiB of sums in place of 5 GB of rows. They are of fixed
// size, like all of a record. Those of a block with too many groups for it are left out, and its rows are read.
//
// A column of sums has the number of its names, and each name with its length; then the number of its groups, and for
// each the positions of its names, the numbers of Group, and its times, as differences to the time before. All numbers
// are varints.

// sumsSize has room for 400 groups, more or less.
const sumsSize = 16 << 10

// sum is a group of a block.
type sum struct {
	names       [groupHost + 1]string
	numbers     Group // its Rows, Requests, Counted and Redactions
	first, last int64 // in ns since 1970
}

// encodeSums writes groups to an empty column, unless it is too small.
func encodeSums(column []byte, groups []*group) {
	positions := map[string]uint64{}
	var names, all []byte
	var before int64
	for _, g := range groups {
		for _, name := range g.names() {
			at, known := positions[name]
			if !known {
				at = uint64(len(positions))
				positions[name] = at
				names = appendName(names, name)
			}
			all = binary.AppendUvarint(all, at)
		}
		for _, n := range []int64{g.Rows, g.Requests, g.Counted, g.Redactions} {
			all = binary.AppendVarint(all, n)
		}
		for _, stamp := range [][]byte{g.first, g.last} {
			ns, _ := chain.ParseStamp(string(stamp)) // build accepts no other time
			all, before = binary.AppendVarint(all, ns-before), ns
		}
	}
	out := binary.AppendUvarint(nil, uint64(len(positions)))
	out = append(out, names...)
	out = binary.AppendUvarint(out, uint64(len(groups)))
	if out = append(out, all...); len(out) <= len(column) {
		copy(column, out)
	}
}

// decodeSums appends the groups of a column to all: none if no names of these can be selected. ok is false if the
// column has no groups, or is none that encodeSums has written.
func decodeSums(all []sum, column []byte, selects *nameFilter) (sums []sum, ok bool) {
	r := sumReader{left: string(column)}
	names := make([]string, r.count())
	for i := range names {
		names[i] = r.name()
	}
	if !r.bad && len(names) > 0 && !selects.any(names) {
		return all, true
	}
	var before int64
	for range r.count() {
		var g sum
		for i := range g.names {
			if at := r.uvarint(); at < uint64(len(names)) {
				g.names[i] = names[at]
			} else {
				r.bad = true
			}
		}
		for _, n := range []*int64{&g.numbers.Rows, &g.numbers.Requests, &g.numbers.Counted, &g.numbers.Redactions} {
			*n = r.varint()
		}
		g.first = before + r.varint()
		g.last = g.first + r.varint()
		if before = g.last; r.bad {
			return all[:0], false
		}
		all = append(all, g)
	}
	return all, len(all) > 0
}

// sumReader reads a column of sums. Once something in it is not what it has to be, all that follows is zero.
type sumReader struct {
	left string
	bad  bool
}

func (r *sumReader) uvarint() (v uint64) {
	for shift := 0; ; shift += 7 {
		if r.bad = r.bad || r.left == "" || shift > 63; r.bad {
			return 0
		}
		c := r.left[0]
		r.left = r.left[1:]
		if v |= uint64(c&0x7f) << shift; c < 0x80 {
			return v
		}
	}
}

func (r *sumReader) varint() int64 {
	v := r.uvarint()
	return int64(v>>1) ^ -int64(v&1) // the zigzag encoding of binary.AppendVarint
}

// count returns how many names or groups follow.
func (r *sumReader) count() int {
	v := r.uvarint()
	if r.bad = r.bad || v > sumsSize; r.bad {
		return 0
	}
	return int(v) //nolint:gosec // it is small
}

func (r *sumReader) name() string {
	n := r.uvarint()
	if r.bad = r.bad || n > uint64(len(r.left)); r.bad {
		return ""
	}
	name := r.left[:n]
	r.left = r.left[n:]
	return name
}

// count counts the selected rows: those of whole blocks by their sums if the index has them, and all others one by one.
func (s *Counting) count(ctx context.Context, filter Filter, c *grouping) error {
	selects := newNameFilter(filter)
	n := (max(filter.AfterSeq, s.first-1) + BlockRows - 1) / BlockRows
	for end := min(s.complete(), filter.ThroughSeq/BlockRows); n < end && s.first > 0 && s.index != nil; n++ {
		if ctx.Err() != nil || !s.loadSums(n, filter, selects) || !c.accepts(s.sums, selects) {
			continue
		}
		if before := filter; before.AfterSeq < n*BlockRows {
			before.ThroughSeq = n * BlockRows
			if err := s.eachCounted(ctx, before, c); err != nil {
				return err
			}
		}
		for i := range s.sums {
			if selects.group(&s.sums[i].names) {
				c.addSum(&s.sums[i])
			}
		}
		filter.AfterSeq = (n + 1) * BlockRows
	}
	return s.eachCounted(ctx, filter, c)
}

// eachCounted counts the selected rows one by one.
func (s *Counting) eachCounted(ctx context.Context, filter Filter, c *grouping) error {
	return s.Each(ctx, filter, c.columns(), func(row *Statement) error { c.add(row); return nil })
}

// loadSums reads the sums of a block of which all rows are in the interval of the filter, and reports whether there
// are any. The sums of a block of which rows were pruned are those of all that it had.
func (s *Counting) loadSums(n int64, filter Filter, selects *nameFilter) (ok bool) {
	b := s.block
	if !s.loads(n) || b.void || !filter.Since.IsZero() && b.first < Nanos(filter.Since) ||
		!filter.Until.IsZero() && b.last >= Nanos(filter.Until) || !s.index.LoadColumn(b, SumsColumn) || !s.bound(b) {
		return false
	}
	s.sums, ok = decodeSums(s.sums[:0], b.Column(SumsColumn), selects)
	return ok
}

// accepts reports whether sums are enough to count the selected groups: they are of one period, and no intent among
// them may be without an outcome.
func (c *grouping) accepts(all []sum, selects *nameFilter) bool {
	first, last := int64(math.MaxInt64), int64(math.MinInt64)
	for i := range all {
		first, last = min(first, all[i].first), max(last, all[i].last)
		if c.open != nil && !c.ended[all[i].names[groupSession]] && selects.group(&all[i].names) {
			return false
		}
	}
	return len(c.periods) == 0 || len(all) == 0 ||
		periodOf(c.periods, c.period, stamp(first)) == periodOf(c.periods, c.period, stamp(last))
}

// addSum counts the rows of a group.
func (c *grouping) addSum(of *sum) {
	var times [2][len(chain.TimeFormat)]byte
	first := string(chain.AppendTime(times[0][:0], time.Unix(0, of.first)))
	last := string(chain.AppendTime(times[1][:0], time.Unix(0, of.last)))
	g := c.group(first, func(name int32) string { return of.names[name] })
	g.addSums(of.numbers)
	g.within(first, last)
}

// stamp returns a time as rows have it.
func stamp(ns int64) string { return time.Unix(0, ns).UTC().Format(chain.TimeFormat) }

// nameFilter selects groups as the terms of a filter select rows whose time and number it selects.
type nameFilter struct {
	wanted    [groupHost + 1]string // "": any
	sessions  map[string]bool       // nil: all
	noIntents bool
}

func newNameFilter(f Filter) *nameFilter {
	s := &nameFilter{noIntents: f.NoIntents, wanted: [...]string{groupSession: f.Session, groupBinding: f.Binding,
		groupConnector: f.Connector, groupOperation: f.Operation, groupReason: f.Reason, groupEvent: string(f.Event),
		groupDecision: string(f.Decision), groupHost: f.Host}}
	if f.Sessions != nil {
		s.sessions = make(map[string]bool, len(f.Sessions))
		for _, session := range f.Sessions {
			s.sessions[session] = true
		}
	}
	return s
}

// group reports whether a group with these names is selected.
func (s *nameFilter) group(names *[groupHost + 1]string) bool {
	for i, want := range s.wanted {
		if want != "" && names[i] != want {
			return false
		}
	}
	return (s.sessions == nil || s.sessions[names[groupSession]]) &&
		!(s.noIntents && names[groupEvent] == string(chain.EventProxyStarted))
}

// any reports whether a group whose names are among these may be selected.
func (s *nameFilter) any(names []string) bool {
	for _, want := range s.wanted {
		if want != "" && !slices.Contains(names, want) {
			return false
		}
	}
	return s.sessions == nil || slices.ContainsFunc(names, func(name string) bool { return s.sessions[name] })
}
