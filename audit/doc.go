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
// A row is in the log when Append returns, and survives a SIGKILL at that moment. Several processes may write to one
// log. If it cannot be written, the error wraps [ErrUnavailable], and the caller must not do what it wanted to record.
//
// Rows are never changed. [Log.Verify] compares the chain with heads that are kept outside the database, and so finds
// rows that were changed or removed, the last ones too. It does not find that a process with the same rights
// recomputed the chain and all heads while no other process wrote: to detect that, keep a head elsewhere.
//
// In the code, begin with writer.go, where a row arrives, and fold.go, which moves rows from a session's journal to the
// database. Package chain has what makes rows evidence, package journal the session's file, and package table the
// database; log.go puts them together.
//
// The package does not interpret rows. Callers are responsible for what must never be in one: a byte of a credential,
// a header's value, a query, a body.
package audit
