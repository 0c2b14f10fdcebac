package audit

import (
	"errors"
	"fmt"
	"strings"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// The values of Row.Reason of EventBroken.
const (
	reasonRowMissing     = "row_missing"       // the log has no row with that number
	reasonRowChanged     = "row_changed"       // the row has another hash
	reasonRowUnreadable  = "row_unreadable"    // the database is damaged there
	reasonReplaced       = "database_replaced" // another file is in the place of the database
	reasonHeadMissing    = "head_missing"      // audit.head is not there
	reasonHeadChanged    = "head_changed"      // audit.head is not the one that was left
	reasonWitnessChanged = "witness_changed"   // the witness is not there, or garbled
	reasonSpillChanged   = "spill_changed"     // a spill file is not one that a session left
)

// What a breach found where no other hash is.
const (
	foundMissing     = "missing"
	foundUnreadable  = "unreadable"
	foundHeadMissing = "head missing"
	foundReplaced    = "another audit.db"
)

// maxAlso bounds the breaches that one event describes beside the gravest.
const maxAlso = 8

// breach is a head that the log, or audit.head, does not have any more.
type breach struct {
	reason   string
	expected head
	found    string   // the hash that is there, or what else was found
	newest   int64    // the log's newest row, where that is known
	line     headLine // of audit.head, where one holds expected
}

func (b *breach) Error() string {
	return fmt.Sprintf("expected row %d with hash %s, found %s", b.expected.seq, b.expected.hash, b.found)
}

// compare returns the breach when a row that has to have the hash of expected
// has found, or when reading it failed with err. Other errors, such as that of
// a busy database, are returned as they are.
func compare(expected head, found string, exists bool, err error) error {
	b := &breach{expected: expected}
	switch {
	case err != nil && !isDamage(err):
		return err
	case err != nil:
		b.reason, b.found = reasonRowUnreadable, foundUnreadable
	case !exists:
		b.reason, b.found = reasonRowMissing, foundMissing
	case found != expected.hash:
		b.reason, b.found = reasonRowChanged, printableHash(found)
	default:
		return nil
	}
	return b
}

// printableHash returns hash, or a word for a text that is none.
func printableHash(hash string) string {
	if _, ok := parseHead("0", hash); !ok {
		return foundUnreadable
	}
	return hash
}

// errDamaged is returned for a row whose values are not of the table's types.
var errDamaged = errors.New("the row is not of the table's types")

// isDamage reports whether err is the fault of what the database's files hold,
// and not of a lock, a limit or the caller.
func isDamage(err error) bool {
	var fault *sqlite.Error
	if !errors.As(err, &fault) {
		return errors.Is(err, errDamaged)
	}
	switch fault.Code() {
	case sqlite3.SQLITE_IOERR_READ, sqlite3.SQLITE_IOERR_SHORT_READ, sqlite3.SQLITE_IOERR_DATA, sqlite3.SQLITE_IOERR_CORRUPTFS:
		return true // and not those of a full disk
	}
	switch fault.Code() & 0xff {
	case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_FORMAT, sqlite3.SQLITE_ERROR, sqlite3.SQLITE_MISMATCH:
		return true
	}
	return false
}

// IsDamaged reports whether err is the fault of a database that is damaged, so
// that rows of it cannot be read.
func IsDamaged(err error) bool { return isDamage(err) && !noTable(err) }

// isMismatch reports whether err is that of a value that is not of its column's
// type.
func isMismatch(err error) bool {
	var fault *sqlite.Error
	if !errors.As(err, &fault) {
		return false
	}
	code := fault.Code() & 0xff
	return code == sqlite3.SQLITE_CONSTRAINT || code == sqlite3.SQLITE_MISMATCH
}

// noTable reports whether err is that of a database without the table, which
// a process that creates it is about to make.
func noTable(err error) bool {
	var fault *sqlite.Error
	return errors.As(err, &fault) && fault.Code() == sqlite3.SQLITE_ERROR && strings.Contains(fault.Error(), "no such table")
}

// breachRow returns the event that reports breaches, the gravest first.
func (l *Log) breachRow(found []breach) *Row {
	b := found[0]
	r := &Row{Event: EventBroken, SessionID: l.opts.Session, Source: SourceCLI, Reason: b.reason, Fields: map[string]any{
		"expected_seq": b.expected.seq, "expected_hash": b.expected.hash, "found": b.found, "found_seq": b.newest,
	}}
	if r.SessionID != "" {
		r.Source = SourceLauncher
	}
	var also []string
	for i, b := range found[1:] {
		if i == maxAlso {
			also = append(also, fmt.Sprintf("%d more", len(found)-1-i))
			break
		}
		also = append(also, b.reason+": "+b.Error())
	}
	if len(also) > 0 {
		r.Fields["also"] = also
	}
	return r
}

// reportedBreak is the finding of an audit.broken row.
func reportedBreak(r Row) Finding {
	text := func(name string) string { s, _ := r.Fields[name].(string); return s }
	seq, _ := r.Fields["expected_seq"].(float64)
	f := Finding{Seq: r.Seq, ID: r.ID, Expected: text("expected_hash"), Found: text("found")}
	if r.Reason == reasonSpillChanged {
		f.Why = fmt.Sprintf("audit.broken: %s is not a spill file that a session left (%s) and is kept as %s", text("file"), f.Found, text("kept_as"))
		return f
	}
	f.Why = fmt.Sprintf("audit.broken: expected row %d with hash %s, found %s", int64(seq), f.Expected, f.Found)
	return f
}
