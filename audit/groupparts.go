package audit

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"strconv"
	"sync"
	"time"
)

// Groups counts the selected rows, in the order in which their columns first occur. It reads each row once, and no more
// of it than it counts. Several goroutines read a long log, each a part of it.
func (l *Log) Groups(ctx context.Context, filter Filter, by GroupBy) ([]Group, error) {
	l.flush(ctx)
	s, err := l.snapshot(ctx)
	if err != nil {
		return nil, err
	}
	if filter, err = s.bounded(ctx, filter); err != nil {
		s.close()
		return nil, err
	}
	filter.noIntents = !by.Intents
	n := min(int64(runtime.GOMAXPROCS(0)), maxParts, (filter.ThroughSeq-filter.AfterSeq)/minPart)
	return l.groupParts(ctx, s, split(filter, max(1, n)), by)
}

// groupParts counts what each filter selects. It closes s, the snapshot for the first one.
func (l *Log) groupParts(ctx context.Context, s *snapshot, filters []Filter, by GroupBy) ([]Group, error) {
	parts := make([]part, len(filters))
	var reading sync.WaitGroup
	for i, filter := range filters {
		if parts[i].grouping = newGrouping(by); i == 0 {
			continue
		}
		reading.Go(func() {
			own, err := l.snapshot(ctx) // newer than s, perhaps: but rows do not change, and the filter has a bound
			if parts[i].err = err; err == nil {
				parts[i].read(ctx, own, filter)
			}
		})
	}
	parts[0].read(ctx, s, filters[0]) // and close s: the others may have to wait for its connection
	reading.Wait()
	return l.joined(ctx, parts)
}

// part is what was read of a part of the log.
type part struct {
	*grouping
	missing []int64 // see snapshot
	err     error
}

// read counts the selected rows, and closes the snapshot.
func (p *part) read(ctx context.Context, s *snapshot, filter Filter) {
	defer s.close()
	p.snapshot = s
	p.err = s.texts(ctx, filter, groupText, func(text string) error { return p.add(ctx, text) })
	p.missing = s.missing
}

// joined returns the groups of all parts.
func (l *Log) joined(ctx context.Context, parts []part) ([]Group, error) {
	var missing []int64
	all := parts[0].grouping
	for i, p := range parts {
		if p.err != nil {
			return nil, p.err
		}
		if missing = append(missing, p.missing...); i > 0 {
			all.join(p.grouping)
		}
	}
	l.indexMissing(ctx, missing)
	return all.result(), nil
}

// bounded returns the filter with the number of the last row, and with that of the oldest in place of a limit of the
// newest rows.
func (s *snapshot) bounded(ctx context.Context, filter Filter) (Filter, error) {
	if filter.ThroughSeq = min(cmp.Or(filter.ThroughSeq, s.newest), s.newest); filter.Limit == 0 || !filter.Newest {
		return filter, nil
	}
	oldest := s.newest + 1
	err := s.rows(ctx, filter, "seq", true, func(row scanner) error { return row.Scan(&oldest) })
	filter.Limit, filter.AfterSeq = 0, oldest-1
	s.missing = nil // they are read again
	return filter, err
}

const (
	maxParts = 4       // goroutines that read a log
	minPart  = 1 << 15 // rows that are worth one
)

// split returns filters for n consecutive parts of what the filter, which has a bound, selects.
func split(filter Filter, n int64) (parts []Filter) {
	rows := filter.ThroughSeq - filter.AfterSeq
	for i := range n {
		one := filter
		one.AfterSeq += rows * i / n
		one.ThroughSeq = filter.AfterSeq + rows*(i+1)/n
		parts = append(parts, one)
	}
	return parts
}

func newGrouping(by GroupBy) *grouping {
	c := &grouping{hosts: by.Hosts, groups: map[string]*group{}}
	for _, begin := range by.Periods {
		c.periods = append(c.periods, begin.UTC().Format(timeFormat))
	}
	return c
}

// join adds the groups of the part behind this one.
func (c *grouping) join(next *grouping) {
	for _, from := range next.order {
		key, known := from.key, c.groups[from.key]
		if known == nil && c.full() {
			from.Host = OtherHosts
			key = from.otherKey()
			known = c.groups[key]
		}
		if known == nil {
			from.key = key
			c.groups[key] = from
			c.order = append(c.order, from)
			continue
		}
		known.Rows += from.Rows
		known.Requests += from.Requests
		known.Counted += from.Counted
		known.Redactions += from.Redactions
		known.first, known.last = min(known.first, from.first), max(known.last, from.last)
	}
}

// full reports whether the hosts of further groups are counted together.
func (c *grouping) full() bool { return c.hosts && len(c.groups) >= maxGroups }

// otherKey returns the key of the group in which this one is counted if there are too many hosts.
func (g *group) otherKey() string {
	return fmt.Sprintf("%q", []string{g.Session, g.Binding, g.Connector, g.Tool, g.Operation, g.Reason, string(g.Event),
		string(g.Decision), g.Host, strconv.Itoa(g.Period)})
}

// result returns what was counted.
func (c *grouping) result() []Group {
	var all []Group
	for _, g := range c.order {
		g.First, _ = time.Parse(timeFormat, g.first) // zero for a row whose time was changed
		g.Last, _ = time.Parse(timeFormat, g.last)
		all = append(all, g.Group)
	}
	return all
}
