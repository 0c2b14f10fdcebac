// Package audit is the log of what happened: one append-only table of events in SQLite, each row chained to the one
// before it by a SHA-256 hash.
//
// [Open] opens a log for writing, [Log.Append] commits a row, and [OpenReader] opens a log for reading only:
//
//	log, err := audit.Open(path, audit.Options{Session: id})
//	if err != nil {
//		return err
//	}
//	defer log.Close()
//	_, err = log.Append(ctx, audit.Row{Event: audit.EventSessionStarted, SessionID: id, Source: audit.SourceLauncher})
//
// A row is in the log when Append returns, and survives a SIGKILL at that moment. Rows are never changed.
// [Log.Verify] detects rows that were changed, removed or added from outside: it compares the chain with heads that
// are kept outside the database. Several processes may write to one log.
//
// The package does not interpret rows. Callers are responsible for what must never be in one: a byte of a credential,
// a header's value, a query, a body.
package audit
