package table

import (
	"context"
	"maps"
	"slices"

	"github.com/ALRubinger/aileron/audit/internal/chain"
)

// OpenSeqs returns the numbers of the intents of sessions, nil for all, without an outcome, of those that a filter
// selects, in order.
func (d *Database) OpenSeqs(ctx context.Context, filter Filter, sessions []string) ([]int64, error) {
	// An intent has no decision, and its outcome has another event and a later time.
	intents := Filter{Session: filter.Session, Sessions: sessions, Host: filter.Host, Connector: filter.Connector,
		Operation: filter.Operation, Since: filter.Since, AfterSeq: filter.AfterSeq}
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
	err = snapshot.Each(ctx, intents, requestColumns, func(row *Statement) error {
		addIntent(open, row, until)
		return nil
	})
	return slices.Sorted(maps.Values(open.Seqs)), err
}

// requestColumns are the columns that addIntent reads.
const requestColumns = "seq, ts, event, fields"

// addIntent processes the next row of the log, of requestColumns. Intents from until on are left out. It keeps no text.
func addIntent(o *chain.OpenIntents, row *Statement, until string) {
	seq, _ := row.Number(0)
	event, fields := chain.Event(row.text(2)), row.text(3)
	if event == chain.EventProxyStarted && until != "" && row.text(1) >= until {
		return
	}
	request, plain := chain.PlainRequestID(fields)
	if !plain {
		request = (&chain.RowText{Strange: true, Fields: fields}).RequestID()
	}
	o.Add(seq, event, request)
}
