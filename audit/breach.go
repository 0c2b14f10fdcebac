package audit

import (
	"errors"
	"fmt"
	"strings"

	sqlite3 "modernc.org/sqlite/lib"
)

// The values of Row.Reason of EventBroken. docs/audit.md lists them.
const (
	reasonRowMissing     = "row_missing"       // the log has no row with the expected number
	reasonRowChanged     = "row_changed"       // the row has another hash
	reasonRowUnreadable  = "row_unreadable"    // the database is damaged there
	reasonReplaced       = "database_replaced" // audit.db is another file
	reasonHeadMissing    = "head_missing"      // audit.head does not exist
	reasonHeadChanged    = "head_changed"      // audit.head differs from what was written to it
	reasonWitnessChanged = "witness_changed"   // the witness does not exist, or is garbled
	reasonJournalChanged = "journal_changed"   // a journal differs from what its session wrote, or does not exist
)

// What a breach found instead of a hash.
const (
	foundMissing     = "missing"
	foundUnreadable  = "unreadable"
	foundHeadMissing = "head missing"
	foundReplaced    = "another audit.db"
	foundPruned      = "pruned"
)

// maxAlso bounds the further breaches that one event lists.
const maxAlso = 8

// breach is a head that the log or audit.head no longer has.
type breach struct {
	reason   string
	expected head
	found    string   // another hash, or what was found instead of one
	newest   int64    // the number of the log's newest row; 0: not known
	line     headLine // of audit.head, if one has expected
}

func (b *breach) Error() string {
	return fmt.Sprintf("expected row %d with hash %s, found %s", b.expected.seq, b.expected.hash, b.found)
}

// compare compares the expected head with the hash found, or with the error of reading it, and returns a *breach if
// they do not match. An error that is no damage, such as that of a busy database, is returned as it is.
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

// printableHash returns hash, or foundUnreadable if it is not a hash.
func printableHash(hash string) string {
	if _, ok := parseHead("0", hash); !ok {
		return foundUnreadable
	}
	return hash
}

// errDamaged is returned for a row whose values do not have the types of their columns.
var errDamaged = errors.New("the values of the row do not have the types of the table")

// isDamage reports whether err is caused by the content of the database's files, and not by a lock, a limit or the
// caller.
func isDamage(err error) bool {
	code, ok := codeOf(err)
	if !ok {
		return errors.Is(err, errDamaged)
	}
	switch code {
	case sqlite3.SQLITE_IOERR_READ, sqlite3.SQLITE_IOERR_SHORT_READ,
		sqlite3.SQLITE_IOERR_DATA, sqlite3.SQLITE_IOERR_CORRUPTFS:
		return true // unlike the I/O errors of a full disk
	}
	switch code & 0xff {
	case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_FORMAT,
		sqlite3.SQLITE_ERROR, sqlite3.SQLITE_MISMATCH:
		return true
	}
	return false
}

// IsDamaged reports whether err means that the database is damaged, so that some of its rows cannot be read.
func IsDamaged(err error) bool { return isDamage(err) && !noTable(err) }

// isMismatch reports whether err means that a value does not have the type of its column.
func isMismatch(err error) bool {
	code, ok := codeOf(err)
	return ok && (code&0xff == sqlite3.SQLITE_CONSTRAINT || code&0xff == sqlite3.SQLITE_MISMATCH)
}

// noTable reports whether err means that the database has no table yet: another process is creating it.
func noTable(err error) bool {
	code, ok := codeOf(err)
	return ok && code == sqlite3.SQLITE_ERROR && strings.Contains(err.Error(), "no such table")
}

// breachRow returns the event that reports breaches, which are ordered by severity.
func (l *Log) breachRow(found []breach) *Row {
	b := found[0]
	r := &Row{
		Event: EventBroken, SessionID: l.opts.Session, Source: l.source(), Reason: b.reason,
		Fields: map[string]any{
			"expected_seq": b.expected.seq, "expected_hash": b.expected.hash, "found": b.found, "found_seq": b.newest,
		},
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

// reportedBreak returns the finding of an EventBroken row.
func reportedBreak(r Row) Finding {
	text := func(name string) string { s, _ := r.Fields[name].(string); return s }
	seq, _ := r.Fields["expected_seq"].(float64)
	f := Finding{Seq: r.Seq, ID: r.ID, Expected: text("expected_hash"), Found: text("found")}
	if r.Reason == reasonJournalChanged {
		at, _ := r.Fields["offset"].(float64)
		f.Why = fmt.Sprintf("audit.broken: %s is not what its session wrote, from byte %d on: %s", text("file"), int64(at),
			f.Found)
		if kept := text("kept_as"); kept != "" {
			f.Why += "; it is kept as " + kept
		}
		return f
	}
	f.Why = fmt.Sprintf("audit.broken: expected row %d with hash %s, found %s", int64(seq), f.Expected, f.Found)
	return f
}
