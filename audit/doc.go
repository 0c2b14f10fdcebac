// Package audit is the log of what happened: one append-only table of events in SQLite, each row chained to the one
// before it by a SHA-256 hash.
//
// [Open] opens a log for writing, [Log.Append] commits a row, and [OpenReader] opens it for reading only:
//
//	log, err := audit.Open(path, audit.Options{Session: id})
//	if err != nil {
//		return err
//	}
//	defer log.Close()
//	_, err = log.Append(ctx, audit.Row{Event: audit.EventSessionStarted, SessionID: id, Source: audit.SourceLauncher})
//
// A row is in the log when Append returns, and survives a SIGKILL at the next moment. Rows are never changed, and
// [Log.Verify] finds rows that were: it compares the chain with heads that are kept outside the database. Several
// processes may write to one log.
//
// The package interprets nothing. What must not be in a row (a byte of a credential, a header's value, a query, a body)
// is the responsibility of its callers.
package audit
