package table

import (
	"cmp"
	"context"
	"runtime"
	"sync"
	"time"

	"github.com/ALRubinger/aileron/audit/internal/chain"
)

// Group counts the selected rows, in the order in which their columns first occur. It reads each row once, and no more
// of it than it counts. Several goroutines read a long log, each a part of it. With by.Ended, it returns the intents
// without an outcome too.
func (d *Database) Group(ctx context.Context, filter Filter, by GroupBy) ([]Group, *chain.OpenIntents, error) {
	filter, err := d.bounded(ctx, filter)
	if err != nil {
		return nil, nil, err
	}
	filter.NoIntents = !by.Intents
	n := min(int64(runtime.GOMAXPROCS(0)), maxParts, (filter.ThroughSeq-filter.AfterSeq)/minPart)
	return d.GroupParts(ctx, Split(filter, n), by)
}

// GroupParts is Group for the parts that the filters select.
func (d *Database) GroupParts(ctx context.Context, filters []Filter, by GroupBy) (
	[]Group, *chain.OpenIntents, error,
) {
	parts := make([]part, len(filters))
	var reading sync.WaitGroup
	for i, filter := range filters { // one may see newer rows than another: but rows do not change, and it has a bound
		parts[i].grouping = newGrouping(by, i)
		reading.Go(func() { parts[i].read(ctx, d, filter) })
	}
	reading.Wait()
	return d.joined(ctx, parts)
}

// part is what was read of a part of the log.
type part struct {
	*grouping
	missing []int64 // see snapshot
	err     error
}

// read counts the selected rows.
func (p *part) read(ctx context.Context, d *Database, filter Filter) {
	s, err := d.TableSnapshot()
	if err != nil {
		p.err = err
		return
	}
	defer s.Close()
	p.err = s.count(ctx, filter, p.grouping)
	p.missing = s.missing
}

// joined returns the groups of all parts, and the intents without an outcome.
func (d *Database) joined(ctx context.Context, parts []part) ([]Group, *chain.OpenIntents, error) {
	var missing []int64
	all := parts[0].grouping
	for i, p := range parts {
		if p.err != nil {
			return nil, nil, p.err
		}
		if missing = append(missing, p.missing...); i > 0 {
			all.join(p.grouping)
		}
	}
	d.indexMissing(ctx, missing)
	return all.result(), all.open, nil
}

// bounded returns the filter with the number of the last row, and with that of the oldest in place of a limit of the
// newest rows.
func (d *Database) bounded(ctx context.Context, filter Filter) (Filter, error) {
	s, err := d.Snapshot(ctx)
	if err != nil {
		return filter, err
	}
	defer s.Close()
	if filter.ThroughSeq = min(cmp.Or(filter.ThroughSeq, s.newest), s.newest); filter.Limit == 0 || !filter.Newest {
		return filter, nil
	}
	oldest := s.newest + 1
	err = s.rows(ctx, filter, "seq", true, func(row Scanner) error { return row.Scan(&oldest) })
	filter.Limit, filter.AfterSeq = 0, oldest-1
	return filter, err
}

const (
	maxParts = 4       // goroutines that read a log
	minPart  = 1 << 15 // rows that are worth one
)

// Split returns filters for n consecutive parts, or fewer, of what the filter, which has a bound, selects.
func Split(filter Filter, n int64) (parts []Filter) {
	rows := filter.ThroughSeq - filter.AfterSeq
	n = max(1, min(n, rows)) // ThroughSeq of an empty part would be no bound
	each := rows / n
	for i := range n {
		one := filter
		one.AfterSeq += each * i
		if i < n-1 {
			one.ThroughSeq = one.AfterSeq + each
		}
		parts = append(parts, one)
	}
	return parts
}

// newGrouping returns what counts a part of the log.
func newGrouping(by GroupBy, part int) *grouping {
	c := &grouping{hosts: by.Hosts, most: cmp.Or(by.Most, maxGroups), groups: map[string]*group{}, ended: by.Ended}
	switch {
	case by.Ended != nil && part == 0:
		c.open = chain.NewOpenIntents(chain.MaxOpen)
	case by.Ended != nil:
		c.open = chain.OpenIntentsBehind(chain.MaxOpen)
	}
	for _, begin := range by.Periods {
		c.periods = append(c.periods, begin.UTC().Format(chain.TimeFormat))
	}
	return c
}

// join adds the groups of the part behind this one.
func (c *grouping) join(next *grouping) {
	for _, from := range next.order {
		known := c.groups[from.key]
		if known == nil && c.full() {
			c.other(from)
			known = c.groups[from.key]
		}
		if known == nil {
			c.groups[from.key] = from
			c.order = append(c.order, from)
			continue
		}
		known.addSums(from.Group)
		known.within(string(from.first), string(from.last))
	}
	if c.open != nil {
		c.open.Join(next.open)
	}
}

// result returns what was counted.
func (c *grouping) result() []Group {
	var all []Group
	for _, g := range c.order {
		g.First, _ = time.Parse(chain.TimeFormat, string(g.first)) // zero for a row whose time was changed
		g.Last, _ = time.Parse(chain.TimeFormat, string(g.last))
		all = append(all, g.Group)
	}
	return all
}
