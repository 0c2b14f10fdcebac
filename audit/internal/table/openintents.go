package table

import (
	"context"

	"github.com/ALRubinger/aileron/audit/internal/chain"
)

// CountOpen counts the intents of sessions without an outcome, of those that a filter selects.
func (d *Database) CountOpen(ctx context.Context, filter Filter, sessions []string) (int, error) {
	// An intent has no decision, and its outcome has another event and a later time.
	intents := Filter{Sessions: sessions, Host: filter.Host, Connector: filter.Connector,
		Operation: filter.Operation, Since: filter.Since}
	snapshot, err := d.TableSnapshot()
	if err != nil {
		return 0, err
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
	return len(open.Seqs), err
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
