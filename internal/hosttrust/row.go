package hosttrust

import (
	"context"
	"slices"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/ca"
)

// change is one change of stores, with what its two rows have in common.
type change struct {
	Ledger
	what    audit.Change
	root    Root
	request string
}

// begin commits the intent, with the stores that are about to be changed.
func (c change) begin(ctx context.Context, stores []ca.Store) error {
	return c.append(ctx, c.what.Started(), "", map[string]any{"stores": storeFields(stores)})
}

// end commits the outcome: with the stores that were changed, those that were not, and those that may have the root.
// Trusting has failed if no store has it; not trusting, if one may.
func (c change) end(ctx context.Context, done []Outcome, reason string) error {
	pick := func(keep func(Outcome) bool) (stores []ca.Store) {
		for _, o := range done {
			if keep(o) {
				stores = append(stores, o.Store)
			}
		}
		return stores
	}
	bad := pick(func(o Outcome) bool { return o.State == "failed" })
	fields := map[string]any{"stores": storeFields(pick(func(o Outcome) bool { return o.State != "failed" }))}
	if len(bad) > 0 {
		fields["stores_failed"] = storeFields(bad)
	}
	event := c.what.Done()
	trusted := slices.ContainsFunc(done, func(o Outcome) bool { return o.State == "trusted" })
	if c.what == audit.ChangeCATrust && !trusted || c.what == audit.ChangeCAUntrust && len(bad) > 0 {
		event = c.what.Failed()
		if reason == "" {
			reason = "store_unavailable"
		}
	}
	return c.append(ctx, event, reason, fields)
}

// append commits a row, also for a command that was interrupted.
func (c change) append(ctx context.Context, event audit.Event, reason string, fields map[string]any) error {
	fields["request_id"], fields["sha256"] = c.request, c.root.SHA256()
	fields["until"] = c.root.Cert.NotAfter.UTC().Format("2006-01-02T15:04:05Z")
	if names := c.root.Names; len(names) > maxNames {
		fields["names"], fields["names_total"] = names[:maxNames], len(names)
	} else if len(names) > 0 {
		fields["names"] = names
	}
	row := audit.Row{Event: event, SessionID: c.root.Session, Source: c.Source, Reason: reason, Fields: fields}
	return c.Append(context.WithoutCancel(ctx), row)
}

// maxNames is how many names a row has, as the lists of session.started.
const maxNames = 64

func storeFields(stores []ca.Store) []string {
	all := []string{}
	for _, s := range stores[:min(len(stores), maxNames)] {
		all = append(all, s.String())
	}
	return all
}
