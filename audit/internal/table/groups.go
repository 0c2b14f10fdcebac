package table

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"sort"
	"strings"
	"time"

	"github.com/ALRubinger/aileron/audit/internal/chain"
)

// Group counts the rows that have these columns in common.
type Group struct {
	Session, Binding, Connector, Tool, Operation, Reason string

	Event    chain.Event
	Decision chain.Decision
	Host     string // of [Log.Groups] with hosts only
	Period   int    // of [Log.Groups] with periods only: its number; -1 is before the first

	Rows       int64
	Requests   int64 // as Rows, but a row that counts requests has their number
	Counted    int64 // those of Requests that have no row of their own
	Redactions int64

	First, Last time.Time
}

// GroupBy is what [Log.Groups] reads besides what every Group has.
type GroupBy struct {
	Hosts   bool        // groups have a host
	Intents bool        // intents are counted too, and not only what came of them
	Periods []time.Time // if any, groups have a period: the beginnings of these, in order

	// Ended, if not nil, are the sessions whose intents have outcomes: those of others without one are counted too.
	Ended map[string]bool

	Most int // in place of maxGroups, if it is not 0
}

// maxGroups bounds the groups by host: the hosts of any others are counted as [OtherHosts].
const maxGroups = 1 << 16

// OtherHosts is the Host of a Group of the hosts that are too many to be counted one by one.
const OtherHosts = "others"

// groupColumns are the columns that grouping.add reads, with the fields in place of %s, and the host at the end if
// groups have one. Only a denial's fields may have a number of requests.
const (
	groupColumns = `seq, ts, redactions, %s, ` +
		`session_id, binding, connector_fqn, tool, operation, reason, event, decision`
	deniedFields = `CASE decision WHEN 'rejected' THEN fields ELSE '' END`
)

// Positions in groupColumns.
const (
	groupSeq = iota
	groupTS
	groupRedactions
	groupFields
	groupNames // the first of those that rows of a group have in common
)

// Positions among groupNames.
const (
	groupSession = iota
	groupBinding
	groupConnector
	groupTool
	groupOperation
	groupReason
	groupEvent
	groupDecision
	groupHost
)

// grouping counts rows for Groups.
type grouping struct {
	hosts   bool
	periods []string          // their beginnings, as rows have times
	period  int               // of the row before
	groups  map[string]*group // by appendKey
	key     []byte            // of a row
	order   []*group
	most    int // groups, if they have hosts

	ended map[string]bool
	open  *chain.OpenIntents // of other sessions than these; nil: they are not counted
}

type group struct {
	Group
	key         string
	first, last []byte // as rows have them
	going       bool   // its rows are passed to grouping.open
}

// columns returns the columns that add reads.
func (c *grouping) columns() string {
	fields := deniedFields
	if c.open != nil {
		fields = "fields"
	}
	columns := fmt.Sprintf(groupColumns, fields)
	if c.hosts {
		columns += ", host"
	}
	return columns
}

// names returns the number of columns that rows of a group have in common.
func (c *grouping) names() int32 {
	if c.hosts {
		return groupHost + 1
	}
	return groupHost
}

// add counts a row of columns.
func (c *grouping) add(row *Statement) {
	ts := row.text(groupTS)
	g := c.group(ts, func(name int32) string { return row.text(groupNames + name) })
	g.Rows++
	g.Requests++
	if n, ok := row.Number(groupRedactions); ok {
		g.Redactions += n
	}
	if g.Decision == chain.DecisionRejected {
		n := countedRequests(row.text(groupFields))
		g.Requests += max(0, n-1)
		g.Counted += n
	}
	g.within(ts, ts)
	if g.going {
		seq, _ := row.Number(groupSeq)
		c.open.Add(seq, g.Event, requestOf(row.text(groupFields)))
	}
}

// group returns the group of rows with a time and these names, which are valid until it returns.
func (c *grouping) group(ts string, name func(int32) string) *group {
	key := c.key[:0]
	for i := range c.names() {
		key = appendName(key, name(i))
	}
	if len(c.periods) > 0 {
		c.period = periodOf(c.periods, c.period, ts)
		key = binary.AppendVarint(key, int64(c.period))
	}
	c.key = key
	if g := c.groups[string(key)]; g != nil {
		return g
	}
	return c.newGroup(func(i int32) string { return strings.Clone(name(i)) })
}

// appendName appends the length of a column, and the column: whatever it has, no two rows of other columns have the
// same key.
func appendName(key []byte, name string) []byte {
	return append(binary.AppendUvarint(key, uint64(len(name))), name...)
}

// within extends the time of a group, which has none before its first row.
func (g *group) within(first, last string) {
	if len(g.first) == 0 || first < string(g.first) {
		g.first = append(g.first[:0], first...)
	}
	if last > string(g.last) {
		g.last = append(g.last[:0], last...)
	}
}

// periodOf returns the period of a time; rows are mostly in the period of the row before.
func periodOf(periods []string, before int, ts string) int {
	if (before < 0 || periods[before] <= ts) && (before+1 == len(periods) || ts < periods[before+1]) {
		return before
	}
	return sort.Search(len(periods), func(i int) bool { return ts < periods[i] }) - 1
}

// newGroup returns the group of c.key, with these names. With too many hosts, it is that of others.
func (c *grouping) newGroup(name func(int32) string) *group {
	g := &group{key: string(c.key), Group: Group{Session: name(groupSession), Binding: name(groupBinding),
		Connector: name(groupConnector), Tool: name(groupTool), Operation: name(groupOperation), Reason: name(groupReason),
		Event: chain.Event(name(groupEvent)), Decision: chain.Decision(name(groupDecision)), Period: c.period}}
	g.going = c.open != nil && !c.ended[g.Session]
	if c.hosts {
		g.Host = name(groupHost)
	}
	if c.full() {
		c.other(g)
		if others := c.groups[g.key]; others != nil {
			return others
		}
	}
	c.groups[g.key] = g
	c.order = append(c.order, g)
	return g
}

// full reports whether the hosts of further groups are counted together.
func (c *grouping) full() bool { return c.hosts && len(c.groups) >= c.most }

// other makes a group the one of the hosts that are too many.
func (c *grouping) other(g *group) {
	g.Host = OtherHosts
	var key []byte
	for _, name := range g.names() {
		key = appendName(key, name)
	}
	if len(c.periods) > 0 {
		key = binary.AppendVarint(key, int64(g.Period))
	}
	g.key = string(key)
}

// names returns what rows of a group have in common, in the order of groupNames.
func (g *Group) names() [groupHost + 1]string {
	return [...]string{g.Session, g.Binding, g.Connector, g.Tool, g.Operation, g.Reason, string(g.Event),
		string(g.Decision), g.Host}
}

// addSums adds the numbers of a part of the group.
func (g *Group) addSums(part Group) {
	g.Rows += part.Rows
	g.Requests += part.Requests
	g.Counted += part.Counted
	g.Redactions += part.Redactions
}

// countedRequests returns how many requests without a row of their own the row with these fields stands for.
func countedRequests(fields string) int64 {
	if !strings.Contains(fields, `"requests":`) {
		return 0
	}
	var counted struct{ Requests int64 }
	_ = json.Unmarshal([]byte(fields), &counted) // an error: it has no such number
	return max(0, counted.Requests)
}
