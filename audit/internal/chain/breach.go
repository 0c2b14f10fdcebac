package chain

import (
	"fmt"
)

// The values of Row.Reason of EventBroken. docs/audit.md lists them.
const (
	ReasonRowMissing     = "row_missing"       // the log has no row with the expected number
	ReasonRowChanged     = "row_changed"       // the row has another hash
	ReasonRowUnreadable  = "row_unreadable"    // the database is damaged there
	ReasonReplaced       = "database_replaced" // audit.db is another file
	ReasonHeadMissing    = "head_missing"      // audit.head does not exist
	ReasonHeadChanged    = "head_changed"      // audit.head differs from what was written to it
	ReasonWitnessChanged = "witness_changed"   // the witness does not exist, or is garbled
	ReasonRowAdded       = "row_added"         // the log has a row that no process of this program added
	ReasonUnsigned       = "head_unsigned"     // no signed head follows a row that must have one
	ReasonJournalChanged = "journal_changed"   // a journal differs from what its session wrote, or does not exist
)

// What a breach found instead of a hash.
const (
	FoundMissing     = "missing"
	FoundUnreadable  = "unreadable"
	FoundHeadMissing = "head missing"
	FoundReplaced    = "another audit.db"
	foundPruned      = "pruned"
)

// Breach is a head that the log or audit.head no longer has.
type Breach struct {
	Reason   string
	Expected Head
	Found    string   // another hash, or what was found instead of one
	Newest   int64    // the number of the log's newest row; 0: not known
	Line     HeadLine // of audit.head, if one has expected
	Next     int64    // the number of the row that should be chained to Expected; 0: no row shows the breach
}

func (b *Breach) Error() string { return expectation(b.Expected.Seq, b.Expected.Hash, b.Found) }

// expectation describes a breach. The hash of several missing rows is not known.
func expectation(seq int64, hash, found string) string {
	if hash == "" {
		return fmt.Sprintf("expected row %d, found %s", seq, found)
	}
	return fmt.Sprintf("expected row %d with hash %s, found %s", seq, hash, found)
}

// Link is what chains a row to the one before it.
type Link struct {
	Seq        int64
	Prev, Hash string
}

// Break returns the *breach of next, the next row of the log, if it is not chained to the row of l.
func (l Link) Break(next Link) *Breach {
	b := &Breach{Reason: ReasonRowMissing, Expected: Head{Seq: l.Seq + 1}, Found: FoundMissing, Next: next.Seq}
	switch missing := next.Seq - l.Seq - 1; {
	case missing > 1:
		b.Found = fmt.Sprintf("rows %d to %d missing", l.Seq+1, next.Seq-1)
		return b
	case missing == 0 && next.Prev == l.Hash:
		return nil
	case missing == 0:
		b.Reason, b.Expected.Seq, b.Found = ReasonRowChanged, l.Seq, printableHash(l.Hash)
	}
	b.Expected.Hash = printableHash(next.Prev)
	return b
}

// printableHash returns hash, or FoundUnreadable if it is not a hash.
func printableHash(hash string) string {
	if _, ok := ParseHead("0", hash); !ok {
		return FoundUnreadable
	}
	return hash
}

// Differs returns a *breach if the hash of the row with the number of expected is not that of expected.
func (expected Head) Differs(found string, exists bool) error {
	switch {
	case !exists:
		return &Breach{Expected: expected, Reason: ReasonRowMissing, Found: FoundMissing}
	case found != expected.Hash:
		return &Breach{Expected: expected, Reason: ReasonRowChanged, Found: printableHash(found)}
	}
	return nil
}

// Unreadable returns the *breach of a row that cannot be read because the database is damaged.
func (expected Head) Unreadable() error {
	return &Breach{Expected: expected, Reason: ReasonRowUnreadable, Found: FoundUnreadable}
}

// reportedBreak returns the finding of an EventBroken row.
func reportedBreak(r Row) Finding {
	text := func(name string) string { s, _ := r.Fields[name].(string); return s }
	seq, _ := r.Fields["expected_seq"].(float64)
	f := Finding{Seq: r.Seq, ID: r.ID, Expected: text("expected_hash"), Found: text("found")}
	if r.Reason == ReasonJournalChanged {
		at, _ := r.Fields["offset"].(float64)
		f.Why = fmt.Sprintf("audit.broken: %s is not what its session wrote, from byte %d on: %s", text("file"), int64(at),
			f.Found)
		if kept := text("kept_as"); kept != "" {
			f.Why += "; it is kept as " + kept
		}
		return f
	}
	f.Why = "audit.broken: " + expectation(int64(seq), f.Expected, f.Found)
	return f
}
