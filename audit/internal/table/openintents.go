package table

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/ALRubinger/aileron/audit/internal/chain"
)

// OpenSeqs returns the numbers of the intents of sessions, nil for all, without an outcome before end, zero for none,
// of those that a filter selects, in order.
func (d *Database) OpenSeqs(ctx context.Context, filter Filter, sessions []string, end time.Time) ([]int64, error) {
	// An intent has no decision, and its outcome has another event and a later time.
	rows := Filter{Session: filter.Session, Sessions: sessions, Host: filter.Host, Connector: filter.Connector,
		Operation: filter.Operation, Since: filter.Since, Until: end, AfterSeq: filter.AfterSeq,
		ThroughSeq: filter.ThroughSeq}
	snapshot, err := d.TableSnapshot()
	if err != nil {
		return nil, err
	}
	defer snapshot.Close()
	until := ""
	if !filter.Until.IsZero() {
		until = filter.Until.UTC().Format(chain.TimeFormat)
	}
	open := chain.NewOpenIntents(chain.MaxOpen)
	err = snapshot.Each(ctx, rows, requestColumns, func(row *Statement) error {
		addIntent(open, row, until, filter.Binding)
		return nil
	})
	return slices.Sorted(maps.Values(open.Seqs)), err
}

// requestColumns are the columns that addIntent reads.
const requestColumns = "seq, ts, event, fields, binding"

// addIntent processes the next row of the log, of requestColumns. Intents from until on, and those without the binding,
// are left out. It keeps no text.
func addIntent(o *chain.OpenIntents, row *Statement, until, binding string) {
	seq, _ := row.Number(0)
	event, fields := chain.Event(row.text(2)), row.text(3)
	if event == chain.EventProxyStarted &&
		(until != "" && row.text(1) >= until || binding != "" && row.text(4) != binding) {
		return
	}
	o.Add(seq, event, requestOf(fields))
}

// requestOf returns the request_id of a row's fields, "" if there is none.
func requestOf(fields string) string {
	if request, plain := chain.PlainRequestID(fields); plain {
		return request
	}
	return (&chain.RowText{Strange: true, Fields: fields}).RequestID()
}

// Going returns the sessions that had not ended at the end of what a filter selects, with the numbers of their first
// rows.
func (d *Database) Going(ctx context.Context, filter Filter) (map[string]int64, error) {
	going := map[string]int64{}
	for _, event := range []chain.Event{chain.EventSessionStarted, chain.EventSessionEnded} {
		rows := Filter{Event: event, Session: filter.Session, Sessions: filter.Sessions, Until: filter.Until,
			ThroughSeq: filter.ThroughSeq}
		err := d.each(ctx, rows, "seq, session_id", func(row Scanner) error {
			var seq int64
			var session string
			if err := row.Scan(&seq, &session); err != nil {
				return fmt.Errorf("read the audit log: %w", err)
			}
			if delete(going, session); event == chain.EventSessionStarted {
				going[session] = seq
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return going, nil
}
