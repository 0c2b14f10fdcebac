package audit

import (
	"context"
	"database/sql/driver"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sort"
	"strconv"
	"strings"
	"time"
)

// Group counts the rows that have these columns in common.
type Group struct {
	Session, Binding, Connector, Tool, Operation, Reason string

	Event    Event
	Decision Decision
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
}

// maxGroups bounds the groups by host: the hosts of any others are counted as [OtherHosts].
const maxGroups = 1 << 16

// OtherHosts is the Host of a Group of the hosts that are too many to be counted one by one.
const OtherHosts = otherNames

// groupText is the SQL expression of the columns that grouping.add counts, between separators. Only a denial's fields
// may have a number of requests.
const groupText = `concat(seq, char(31), ts, char(31), session_id, char(31), binding, char(31), connector_fqn, ` +
	`char(31), tool, char(31), operation, char(31), reason, char(31), event, char(31), decision, char(31), host, ` +
	`char(31), redactions, char(31), CASE decision WHEN 'rejected' THEN fields ELSE '' END)`

// Positions in groupText.
const (
	groupSeq = iota
	groupTS
	groupSession
	groupBinding
	groupConnector
	groupTool
	groupOperation
	groupReason
	groupEvent
	groupDecision
	groupHost
	groupRedactions
	groupFields
	groupParts
)

// groupSeparator is between the columns of groupText.
const groupSeparator = '\x1f'

// grouping counts rows for Groups.
type grouping struct {
	snapshot *snapshot
	hosts    bool
	periods  []string          // their beginnings, as rows have times
	period   int               // of the row before
	groups   map[string]*group // by the columns from groupSession on, and the period
	key      []byte            // of a row
	order    []*group
}

type group struct {
	Group
	key         string
	first, last string // as rows have them
}

// add counts the row of a text.
func (c *grouping) add(ctx context.Context, text string) error {
	var parts [groupParts]string
	keyFrom, keyTo, rest := 0, 0, text
	for i := range parts {
		end := strings.IndexByte(rest, groupSeparator)
		if i == groupParts-1 {
			parts[i] = rest
			break
		}
		if end < 0 {
			return errDamaged
		}
		at := len(text) - len(rest)
		switch i {
		case groupSession:
			keyFrom = at
		case groupHost:
			keyTo = at
		}
		parts[i], rest = rest[:end], rest[end+1:]
	}
	if strings.IndexByte(parts[groupFields], groupSeparator) >= 0 { // JSON has none: a column has
		return c.addColumns(ctx, parts[groupSeq])
	}
	if c.hosts {
		keyTo += len(parts[groupHost])
	}
	c.count(append(c.key[:0], text[keyFrom:keyTo]...), &parts)
	return nil
}

// groupColumns is the query for the columns of groupText, one by one.
const groupColumns = `SELECT ts, session_id, binding, connector_fqn, tool, operation, reason, event, decision, host, ` +
	`redactions, CASE decision WHEN 'rejected' THEN fields ELSE '' END FROM events WHERE seq = ?`

// addColumns counts a row one of whose columns has the separator. It calls the driver, too: the rows before are being
// read, and database/sql would wait for their end.
func (c *grouping) addColumns(ctx context.Context, number string) error {
	seq, err := strconv.ParseInt(number, 10, 64)
	if err != nil {
		return errDamaged
	}
	queryer, ok := c.snapshot.raw.(driver.QueryerContext)
	if !ok {
		return errNoQuery
	}
	rows, err := queryer.QueryContext(ctx, groupColumns, []driver.NamedValue{{Ordinal: 1, Value: seq}})
	if err != nil {
		return err
	}
	defer rows.Close()
	var values [groupParts - 1]driver.Value
	if err := rows.Next(values[:]); err != nil {
		return err
	}
	parts := [groupParts]string{number}
	for i, v := range values {
		parts[i+1] = fmt.Sprint(v)
	}
	most := groupHost
	if c.hosts {
		most = groupRedactions
	}
	c.count(fmt.Appendf(c.key[:0], "%q", parts[groupSession:most]), &parts)
	return nil
}

// errNoQuery is returned for a driver that is not the one of SQLite.
var errNoQuery = errors.New("the driver cannot query")

// count counts a row. The key is that of its columns.
func (c *grouping) count(key []byte, parts *[groupParts]string) {
	if len(c.periods) > 0 {
		c.period = periodOf(c.periods, c.period, parts[groupTS])
		key = strconv.AppendInt(append(key, groupSeparator), int64(c.period), 10)
	}
	c.key = key
	g := c.groups[string(key)]
	if g == nil {
		g = c.newGroup(string(key), parts)
	}
	g.Rows++
	g.Requests++
	if n, err := strconv.ParseInt(parts[groupRedactions], 10, 64); err == nil {
		g.Redactions += n
	}
	if n := countedRequests(parts); n > 0 {
		g.Requests += n - 1
		g.Counted += n
	}
	if ts := parts[groupTS]; g.first == "" || ts < g.first || ts > g.last {
		ts = strings.Clone(ts)
		if g.first == "" || ts < g.first {
			g.first = ts
		}
		g.last = max(g.last, ts)
	}
}

// periodOf returns the period of a time; rows are mostly in the period of the row before.
func periodOf(periods []string, before int, ts string) int {
	if (before < 0 || periods[before] <= ts) && (before+1 == len(periods) || ts < periods[before+1]) {
		return before
	}
	return sort.Search(len(periods), func(i int) bool { return ts < periods[i] }) - 1
}

// newGroup returns the group of a row, which keeps nothing of its text. With too many hosts, it is that of others.
func (c *grouping) newGroup(key string, parts *[groupParts]string) *group {
	text := func(i int) string { return strings.Clone(parts[i]) }
	g := &group{key: key, Group: Group{Session: text(groupSession), Binding: text(groupBinding),
		Connector: text(groupConnector), Tool: text(groupTool), Operation: text(groupOperation), Reason: text(groupReason),
		Event: Event(text(groupEvent)), Decision: Decision(text(groupDecision)), Period: c.period}}
	if c.hosts {
		g.Host = text(groupHost)
	}
	if c.full() {
		g.Host = OtherHosts
		g.key = g.otherKey()
		if others := c.groups[g.key]; others != nil {
			return others
		}
	}
	c.groups[g.key] = g
	c.order = append(c.order, g)
	return g
}

// countedRequests returns how many requests without a row of their own a row stands for.
func countedRequests(parts *[groupParts]string) int64 {
	if Decision(parts[groupDecision]) != DecisionRejected || !strings.Contains(parts[groupFields], `"requests":`) {
		return 0
	}
	var fields struct{ Requests int64 }
	_ = json.Unmarshal([]byte(parts[groupFields]), &fields) // an error: it has no such number
	return max(0, fields.Requests)
}

// texts calls f for a text of every selected row, oldest first. It calls the driver directly: scanning would copy each
// text once more.
func (s *snapshot) texts(ctx context.Context, filter Filter, what string, f func(text string) error) error {
	terms, args := filter.terms()
	query := "SELECT " + what + " FROM events WHERE seq BETWEEN ? AND ? AND " + terms + " ORDER BY seq"
	for span := range s.spans(ctx, filter, false) {
		values := []driver.NamedValue{{Ordinal: 1, Value: span.from}, {Ordinal: 2, Value: span.to}}
		for i, arg := range args {
			values = append(values, driver.NamedValue{Ordinal: i + 3, Value: arg})
		}
		err := s.conn.Raw(func(c any) error {
			s.raw = c
			return eachValue(ctx, c, query, values, f)
		})
		if err != nil {
			return fmt.Errorf("read the audit log: %w", err)
		}
	}
	return s.err
}

// eachValue calls f for the text in every row of a query's result.
func eachValue(ctx context.Context, conn any, query string, args []driver.NamedValue, f func(string) error) error {
	queryer, ok := conn.(driver.QueryerContext)
	if !ok {
		return errNoQuery
	}
	rows, err := queryer.QueryContext(ctx, query, args)
	if err != nil {
		return err
	}
	defer rows.Close()
	var values [1]driver.Value
	for {
		if err := rows.Next(values[:]); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		text, ok := values[0].(string)
		if !ok {
			return errDamaged
		}
		if err := f(text); err != nil {
			return err
		}
	}
}
