package audit

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
)

// walk is one pass over the rows.
type walk struct {
	report Report
	last   head             // the row before
	at     map[int64]string // the hashes of the rows that heads name, by number
	ended  bool             // the rows could not be read to the end
	broken bool             // a row did not fit the chain
	open   *openIntents
	index  *indexCheck
	signed *signedCheck // nil: signed heads are not checked
	pruned *PrunedRows  // what stands for the rows before the first one; nil: nothing does
	gone   int64        // the rows up to this one are not in the log, and were pruned
	until  *pruneBound  // nil: all rows are read
	hashed []byte       // a buffer
}

// rows walks over the rows. A goroutine reads them, in parts of a bounded size, while this one computes hashes.
func (w *walk) rows(ctx context.Context, l *Log) error {
	conn, err := l.database().Conn(ctx)
	if err != nil {
		return w.unreadable(err)
	}
	defer conn.Close()
	defer w.index.close()
	ctx, stop := context.WithCancel(ctx)
	parts, ended := make(chan []textRow, 4), make(chan error, 1)
	go func() {
		ended <- readParts(ctx, conn, parts)
		close(parts)
	}()
	defer func() {
		stop()
		for range parts { // until the goroutine has ended
		}
	}()
	byColumn := columnReader{query: l.database().QueryContext}
	for part := range parts {
		for _, t := range part {
			err := w.row(ctx, t, &byColumn)
			if errors.Is(err, errBound) {
				w.ended = true
				return nil
			}
			if err != nil {
				return fmt.Errorf("read the audit log: %w", err)
			}
		}
	}
	if err := <-ended; err != nil {
		return w.unreadable(err)
	}
	return nil
}

// partSize is about how many bytes of rows are read at once.
const partSize = 256 << 10

// readParts sends all rows, in order.
func readParts(ctx context.Context, conn *sql.Conn, to chan<- []textRow) error {
	var part []textRow
	size := 0
	send := func() error {
		select {
		case to <- part:
		case <-ctx.Done():
			return ctx.Err()
		}
		part, size = make([]textRow, 0, len(part)), 0
		return nil
	}
	err := eachText(ctx, conn, seqSpan{math.MinInt64, math.MaxInt64}, func(seq int64, text string) error {
		part = append(part, textRow{seq, text})
		if size += len(text); size < partSize {
			return nil
		}
		return send()
	})
	if failed := send(); err == nil {
		err = failed
	}
	return err
}

// row checks one row.
func (w *walk) row(ctx context.Context, t textRow, byColumn *columnReader) error {
	var r rowText
	plain := r.parse(t.seq, t.text) && (r.prev == w.last.hash || isHash(r.prev)) && w.hasItsHash(&r)
	if !plain || r.values[canonicalEvent] == string(EventBroken) {
		full, err := byColumn.row(ctx, t.seq)
		if err == nil && full.err == nil {
			err = w.until.reached(full.Seq, full.SessionID, full.TS.UnixNano())
		}
		if err == nil {
			w.columns(full)
		}
		return err
	}
	if err := w.until.reached(t.seq, r.values[canonicalSession], r.ts); err != nil {
		return err
	}
	w.link(t.seq, r.values[canonicalID], r.prev, r.hash)
	w.note(t.seq, r.values[canonicalID], Event(r.values[canonicalEvent]), r.fields)
	w.passed(t.seq, Event(r.values[canonicalEvent]), r.requestID(), r.hash)
	w.index.add(t.seq, r.indexed(), r.ts, r.prev, r.hash)
	return nil
}

// hasItsHash reports whether the content of a row has the hash of the row.
func (w *walk) hasItsHash(r *rowText) bool {
	w.hashed = append(append(w.hashed[:0], r.prev...), r.row...)
	sum := sha256.Sum256(w.hashed)
	var digits [2 * sha256.Size]byte
	hex.Encode(digits[:], sum[:])
	return string(digits[:]) == r.hash
}

// columns checks a row that was read column by column.
func (w *walk) columns(r fullRow) {
	hash := r.Hash
	if r.err != nil {
		w.breaks(r.Seq, r.ID, "the row cannot be read", "", foundUnreadable)
		hash = foundUnreadable
	} else {
		w.link(r.Seq, r.ID, r.PrevHash, r.Hash)
		again := r.Row
		if again.chain(r.PrevHash, r.fields); r.Hash != again.Hash {
			w.breaks(r.Seq, r.ID, "its content does not have its hash", printableHash(r.Hash), again.Hash)
		}
	}
	w.note(r.Seq, r.ID, r.Event, r.fields)
	if r.Event == EventBroken {
		w.report.add(reportedBreak(r.Row))
	}
	request, _ := r.Fields["request_id"].(string)
	w.passed(r.Seq, r.Event, request, hash)
	w.last.hash = r.Hash
	if r.err == nil {
		w.index.addRow(&r.Row)
	}
}

// passed notes what later checks need of a row that was checked.
func (w *walk) passed(seq int64, event Event, request, hash string) {
	if request != "" {
		w.open.add(seq, event, request)
	}
	if event == EventProxyUnknown {
		w.report.Unknown++
	}
	if _, named := w.at[seq]; named {
		w.at[seq] = hash
	}
	if w.last = (head{seq: seq, hash: hash}); !w.broken {
		w.report.Rows, w.report.Head = seq-w.gone, hash
	}
}

// note checks a row that has a note.
func (w *walk) note(seq int64, id string, event Event, fields string) {
	switch event {
	case EventCheckpoint:
		w.checkpoint(seq, id, fields)
	case EventPruned:
		w.prunedNote(seq, id, fields)
	}
}

// begin begins the walk at a row that is not row 1, in a log that was pruned. A prune that was killed may have left
// rows: the last one of them must have the hash that the row of the prune names.
func (w *walk) begin(seq int64, prev string) {
	w.gone = min(seq-1, w.pruned.Last)
	w.last = head{seq: w.gone, hash: prev}
	if w.gone == w.pruned.Last {
		w.last.hash = w.pruned.Hash
	}
	if _, named := w.at[w.gone]; named {
		w.at[w.gone] = w.last.hash
	}
}

// link compares a row with the one before it. Behind a row that does not fit, the chain is checked from that row on:
// rows that were added to a log with a gap are judged by their own links.
func (w *walk) link(seq int64, id, prev, hash string) {
	if w.last.seq == 0 && seq > 1 && w.pruned != nil {
		w.begin(seq, prev)
	}
	if w.pruned != nil && seq == w.pruned.Last && hash != w.pruned.Hash {
		w.breaks(seq, id, "it has another hash than the row of audit.pruned names", w.pruned.Hash, printableHash(hash))
	}
	switch next := w.last.seq + 1; {
	case seq > next+1:
		w.breaks(seq, id, fmt.Sprintf("rows %d to %d are missing before it", next, seq-1), "", foundMissing)
	case seq != next:
		w.breaks(seq, id, fmt.Sprintf("row %d is missing before it", next), "", foundMissing)
	case prev != w.last.hash:
		w.breaks(seq, id, "its prev_hash is not the hash of the row before it", w.last.hash, printableHash(prev))
	}
}

// breaks adds a finding for a row that does not fit the chain.
func (w *walk) breaks(seq int64, id, why, expected, found string) {
	if expected != "" {
		why += fmt.Sprintf(": expected %s, found %s", expected, found)
	}
	w.report.add(Finding{Seq: seq, ID: id, Expected: expected, Found: found, Why: why})
	w.broken = true
}
