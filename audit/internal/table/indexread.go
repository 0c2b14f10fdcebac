package table

import (
	"cmp"
	"context"
	"encoding/hex"
	"iter"
	"math"
	"slices"
	"time"
)

// probe is what the index knows of a filter.
type probe struct {
	values      map[int][]string // by column: any of them
	from, until int64            // the interval of times, in ns
}

// probe returns what the index knows of the filter, and false if it selects by nothing but seq.
func (f Filter) probe() (p probe, ok bool) {
	p = probe{values: map[int][]string{}, from: math.MinInt64, until: math.MaxInt64}
	if f.Sessions != nil {
		p.values[MarkSession] = f.Sessions
	}
	for column, value := range map[int]string{
		MarkSession: f.Session, markEvent: string(f.Event), markDecision: string(f.Decision), markHost: f.Host,
		markConnector: f.Connector, markReason: f.Reason, markOperation: f.Operation, markBinding: f.Binding,
	} {
		if value != "" {
			p.values[column] = []string{value}
		}
	}
	if !f.Since.IsZero() {
		p.from = Nanos(f.Since)
	}
	if !f.Until.IsZero() {
		p.until = Nanos(f.Until)
	}
	return p, len(p.values) > 0 || !f.Since.IsZero() || !f.Until.IsZero()
}

// SeqSpan is an interval of numbers, with both ends.
type SeqSpan struct{ From, To int64 }

// spans returns the numbers among which all selected rows are, in the given order.
func (s *snapshot) spans(ctx context.Context, filter Filter, descending bool) iter.Seq[SeqSpan] {
	all := SeqSpan{max(1, s.first, filter.AfterSeq+1), s.newest}
	if filter.ThroughSeq > 0 {
		all.To = min(all.To, filter.ThroughSeq)
	}
	p, selective := filter.probe()
	return func(yield func(SeqSpan) bool) {
		first := (all.From - 1) / BlockRows
		last := min(s.complete(), (all.To+BlockRows-1)/BlockRows) // exclusive
		if !selective || first >= last {
			_ = all.From <= all.To && yield(all)
			return
		}
		tail := SeqSpan{last*BlockRows + 1, all.To}
		if descending && tail.From <= tail.To && !yield(tail) {
			return
		}
		for i := range last - first {
			n := first + i
			if descending {
				n = last - 1 - i
			}
			if !s.spansOfBlock(ctx, n, p, all, descending, yield) {
				return
			}
		}
		if !descending && tail.From <= tail.To {
			yield(tail)
		}
	}
}

// maxGap is the number of rows between two selected ones that are read with them.
const maxGap = 16

// spansOfBlock calls yield for the spans of one block that are in all, and reports whether to continue.
func (s *snapshot) spansOfBlock(
	ctx context.Context, n int64, p probe, all SeqSpan, descending bool, yield func(SeqSpan) bool,
) bool {
	if s.err = ctx.Err(); s.err != nil {
		return false
	}
	selected, ok := s.consult(n, p)
	if !ok {
		s.missing = append(s.missing, n)
		selected.all()
	}
	var found []SeqSpan
	for slot := selected.next(0); slot >= 0; slot = selected.next(slot + 1) {
		seq := n*BlockRows + int64(slot) + 1
		if seq < all.From || seq > all.To {
			continue
		}
		if len(found) > 0 && seq-found[len(found)-1].To <= maxGap {
			found[len(found)-1].To = seq
			continue
		}
		found = append(found, SeqSpan{seq, seq})
	}
	if descending {
		slices.Reverse(found)
	}
	for _, span := range found {
		if !yield(span) {
			return false
		}
	}
	return true
}

// consult returns the rows of a block that may fit p, and false if the block has no record that can be used.
func (s *snapshot) consult(n int64, p probe) (found slots, ok bool) {
	b := s.block
	if b.number = n; s.index == nil || !s.index.Load(b) {
		return found, false
	}
	if !b.void && (p.until <= b.first || p.from > b.last) {
		return found, s.bound(b)
	}
	found.all()
	if b.void {
		return found, s.bound(b)
	}
	for column, values := range p.values {
		if !s.index.LoadColumn(b, column) {
			return found, false
		}
		marks := make([]uint32, len(values))
		for i, value := range values {
			marks[i] = mark(s.index.salt, value)
		}
		found.keep(b.Column(column), marks)
	}
	if p.from > b.first || p.until <= b.last {
		if !s.index.LoadColumn(b, timeColumn) {
			return found, false
		}
		found.within(b.Column(timeColumn), p.from, p.until)
	}
	return found, s.bound(b)
}

// bound reports whether the block of the record is the one of this log: its last row has the hash, and so all rows
// before it are those that the record was made of.
func (s *snapshot) bound(b *indexBlock) bool {
	hash, err := s.hash((b.number + 1) * BlockRows)
	return err == nil && hash == hex.EncodeToString(b.Hash[:])
}

// spansOfID returns the numbers among which the row with the id is: first those that are likely by its time.
func (s *snapshot) spansOfID(ctx context.Context, id string, made time.Time) iter.Seq[SeqSpan] {
	p := probe{values: map[int][]string{MarkID: {id}}, from: math.MinInt64, until: math.MaxInt64}
	return func(yield func(SeqSpan) bool) {
		all := SeqSpan{1, s.newest}
		tail := SeqSpan{s.complete()*BlockRows + 1, s.newest}
		var far, unknown []int64
		for n := s.complete() - 1; n >= s.firstBlock(); n-- {
			switch b := s.block; {
			case s.index == nil || !s.loads(n):
				unknown = append(unknown, n)
			case !b.mayHave(made):
				far = append(far, n)
			case !s.spansOfBlock(ctx, n, p, all, false, yield):
				return
			}
		}
		if tail.From <= tail.To && !yield(tail) {
			return
		}
		if len(unknown) > 0 {
			likely, err := s.seqAt(ctx, made)
			if err != nil {
				s.err = err
				return
			}
			distance := func(n int64) int64 { return max(n*BlockRows-likely, likely-(n+1)*BlockRows) }
			slices.SortFunc(unknown, func(a, b int64) int { return cmp.Compare(distance(a), distance(b)) })
		}
		for _, n := range slices.Concat(far, unknown) {
			if !s.spansOfBlock(ctx, n, p, all, false, yield) {
				return
			}
		}
	}
}

// mayHave reports whether a row of the block may have an id that was made then.
func (b *indexBlock) mayHave(made time.Time) bool {
	first, last := time.Unix(0, b.first).Add(-idSlack), time.Unix(0, b.last).Add(idSlack)
	return b.void || !made.Before(first) && !made.After(last)
}

// loads reads the head of a block's record, and reports whether there is one.
func (s *snapshot) loads(n int64) bool {
	s.block.number = n
	return s.index.Load(s.block)
}
