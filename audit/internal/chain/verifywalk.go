package chain

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
)

// Walk is one pass over the rows.
type Walk struct {
	Report Report
	Last   Head             // the row before
	at     map[int64]string // the hashes of the rows that heads name, by number
	Ended  bool             // the rows could not be read to the end
	broken bool             // a row did not fit the chain
	open   *OpenIntents
	Signed *SignedCheck                                    // nil: signed heads are not checked
	Pruned *PrunedRows                                     // what stands for the rows before the first one, if anything
	gone   int64                                           // the rows up to this one are not in the log, and were pruned
	Until  func(seq int64, session string, ts int64) error // ErrBound ends the walk; nil: all rows are read
	hashed []byte                                          // a buffer
	course Course
	// Unclaimed is the newest line of audit.head, if rows are behind it that no process of this program can have added.
	Unclaimed *HeadLine
}

// ErrBound ends a walk at the first row that it is not to check.
var ErrBound = errors.New("the row is behind those that are to be checked")

// FullRow is a row that was read column by column.
type FullRow struct {
	Row
	Stored string
	Err    error // why the row cannot be read
}

// Row checks one row, given as the text that rowText.parse reads. full returns the row as it is read column by column.
func (w *Walk) Row(seq int64, text string, full func() (FullRow, error)) error {
	var r RowText
	plain := r.Parse(seq, text) && (r.Prev == w.Last.Hash || isHash(r.Prev)) && w.hasItsHash(&r)
	if !plain || r.Values[CanonicalEvent] == string(EventBroken) {
		one, err := full()
		if err == nil && one.Err == nil && w.Until != nil {
			err = w.Until(one.Seq, one.SessionID, one.TS.UnixNano())
		}
		if err == nil {
			w.columns(one)
		}
		return err
	}
	if w.Until != nil {
		if err := w.Until(seq, r.Values[CanonicalSession], r.Ts); err != nil {
			return err
		}
	}
	w.link(seq, r.Values[CanonicalID], r.Prev, r.Hash)
	w.note(seq, r.Values[CanonicalID], Event(r.Values[CanonicalEvent]), r.Fields)
	w.follow(seq, r.Values[CanonicalID], Event(r.Values[CanonicalEvent]), r.Values[CanonicalSession], "", r.Fields)
	w.passed(seq, Event(r.Values[CanonicalEvent]), r.RequestID(), r.Hash)
	return nil
}

// hasItsHash reports whether the content of a row has the hash of the row.
func (w *Walk) hasItsHash(r *RowText) bool {
	w.hashed = append(append(w.hashed[:0], r.Prev...), r.row...)
	sum := sha256.Sum256(w.hashed)
	var digits [2 * sha256.Size]byte
	hex.Encode(digits[:], sum[:])
	return string(digits[:]) == r.Hash
}

// columns checks a row that was read column by column.
func (w *Walk) columns(r FullRow) {
	hash := r.Hash
	if r.Err != nil {
		w.breaks(r.Seq, r.ID, "the row cannot be read", "", FoundUnreadable)
		hash = FoundUnreadable
	} else {
		w.link(r.Seq, r.ID, r.PrevHash, r.Hash)
		again := r.Row
		if again.Chain(r.PrevHash, r.Stored); r.Hash != again.Hash {
			w.breaks(r.Seq, r.ID, "its content does not have its hash", printableHash(r.Hash), again.Hash)
		}
	}
	w.note(r.Seq, r.ID, r.Event, r.Stored)
	w.follow(r.Seq, r.ID, r.Event, r.SessionID, r.Reason, r.Stored)
	if r.Event == EventBroken {
		w.Report.Add(reportedBreak(r.Row))
	}
	request, _ := r.Fields["request_id"].(string)
	w.passed(r.Seq, r.Event, request, hash)
	w.Last.Hash = r.Hash
}

// passed notes what later checks need of a row that was checked.
func (w *Walk) passed(seq int64, event Event, request, hash string) {
	if request != "" {
		w.open.Add(seq, event, request)
	}
	if event == EventProxyUnknown {
		w.Report.Unknown++
	}
	if _, named := w.at[seq]; named {
		w.at[seq] = hash
	}
	if w.Last = (Head{Seq: seq, Hash: hash}); !w.broken {
		w.Report.Rows, w.Report.Head = seq-w.gone, hash
	}
}

// note checks a row that has a note.
func (w *Walk) note(seq int64, id string, event Event, fields string) {
	switch event {
	case EventCheckpoint:
		w.checkpoint(seq, id, fields)
	case EventPruned:
		w.prunedNote(seq, id, fields)
	}
}

// follow checks the course of the rows.
func (w *Walk) follow(seq int64, id string, event Event, session, reason, fields string) {
	if w.Signed == nil {
		return
	}
	if f := w.course.Row(seq, event, session, reason, fields); f != nil {
		w.stray(f, id)
	}
}

// stray adds a finding for a fault of the course of the rows.
func (w *Walk) stray(f *Fault, id string) {
	if f.Seq != w.course.before {
		id = "" // it is of another row
	}
	w.Report.Add(Finding{Seq: f.Seq, ID: id, Why: f.Why})
}

// begin begins the walk at a row that is not row 1, in a log that was pruned. A prune that was killed may have left
// rows: the last one of them must have the hash that the row of the prune names.
func (w *Walk) begin(seq int64, prev string) {
	w.gone = min(seq-1, w.Pruned.Last)
	w.Last = Head{Seq: w.gone, Hash: prev}
	if w.gone == w.Pruned.Last {
		w.Last.Hash = w.Pruned.Hash
	}
	if _, named := w.at[w.gone]; named {
		w.at[w.gone] = w.Last.Hash
	}
}

// link compares a row with the one before it. Behind a row that does not fit, the chain is checked from that row on:
// rows that were added to a log with a gap are judged by their own links.
func (w *Walk) link(seq int64, id, prev, hash string) {
	if w.Last.Seq == 0 && seq > 1 && w.Pruned != nil {
		w.begin(seq, prev)
	}
	if w.Pruned != nil && seq == w.Pruned.Last && hash != w.Pruned.Hash {
		w.breaks(seq, id, "it has another hash than the row of audit.pruned names", w.Pruned.Hash, printableHash(hash))
	}
	switch next := w.Last.Seq + 1; {
	case seq > next+1:
		w.breaks(seq, id, fmt.Sprintf("rows %d to %d are missing before it", next, seq-1), "", FoundMissing)
	case seq != next:
		w.breaks(seq, id, fmt.Sprintf("row %d is missing before it", next), "", FoundMissing)
	case prev != w.Last.Hash:
		w.breaks(seq, id, "its prev_hash is not the hash of the row before it", w.Last.Hash, printableHash(prev))
	}
}

// breaks adds a finding for a row that does not fit the chain.
func (w *Walk) breaks(seq int64, id, why, expected, found string) {
	if expected != "" {
		why += fmt.Sprintf(": expected %s, found %s", expected, found)
	}
	w.Report.Add(Finding{Seq: seq, ID: id, Expected: expected, Found: found, Why: why})
	w.broken = true
}
