package audit

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"time"
)

// A log that was changed must not look intact again because rows were added later. So the log is compared with what
// is known of it from outside before anything is added: when it is opened, with the newest line of audit.head and
// with the witness; later, with the row that this process committed last, with its own line of audit.head and with
// the identity of the files. A mismatch is kept in audit.head for ever and reported by EventBroken, which is
// committed before any other row of this process.

// examine compares the log with audit.head and the witness when it is opened.
func (l *Log) examine(ctx context.Context) error {
	newest, err := l.newestHead(ctx)
	if err != nil && !isDamage(err) {
		return err
	}
	known, err := readHeads(l.head.path, l.head.witnessPath)
	if err != nil {
		return err
	}
	found, err := l.contradictions(ctx, known, false)
	if err != nil {
		return err
	}
	if fault := known.inconsistency(newest.seq > 0); fault != "" {
		found = append(found, breach{reason: known.reason(), expected: known.expected(), found: fault})
	}
	if len(found) == 0 {
		l.known = known.expected()
		return nil
	}
	return l.recordBreaches(found)
}

// contradictions returns the heads that the log does not have. If it has the newest one, the older ones are looked up
// only when every is true: Verify does that in any case.
func (l *Log) contradictions(ctx context.Context, known heads, every bool) ([]breach, error) {
	var found []breach
	check := func(line headLine) error {
		err := l.has(ctx, line.head)
		var b *breach
		if errors.As(err, &b) {
			b.line = line
			found, err = append(found, *b), nil
		}
		return err
	}
	newest, _ := known.newest()
	if newest.number > 0 {
		if err := check(newest); err != nil {
			return nil, err
		}
	}
	every = every || len(found) > 0
	for _, line := range slices.Backward(known.lines) {
		// The process that marked a line as lost may have been killed before it committed the event.
		if line.state == lineLost || line.state == lineHead && every && line != newest {
			if err := check(line); err != nil {
				return nil, err
			}
		}
	}
	w := known.witness
	listed := slices.ContainsFunc(found, func(b breach) bool { return b.expected == w.line.head })
	if w.readable && !listed {
		w.line.number = 0 // the witness is not a line of audit.head
		if err := check(w.line); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// others returns the lines of other writers that the log contradicts too, so that one event reports all of them. If
// they cannot be read now, the next Open finds them.
func (l *Log) others(found []breach) []breach {
	known, err := readHeads(l.head.path, l.head.witnessPath)
	if err != nil {
		return nil
	}
	own := func(line headLine) bool { return line.writer == l.head.writer }
	known.lines = slices.DeleteFunc(known.lines, own)
	more, err := l.contradictions(context.Background(), known, true)
	if err != nil {
		return nil
	}
	return slices.DeleteFunc(more, func(b breach) bool {
		return slices.ContainsFunc(found, func(f breach) bool { return f.expected == b.expected })
	})
}

// has returns a *breach if the log does not have the row of h.
func (l *Log) has(ctx context.Context, h head) error {
	if h.seq == 0 {
		return nil
	}
	var hash string
	err := l.database().QueryRowContext(ctx, selectHash, h.seq).Scan(&hash)
	if errors.Is(err, sql.ErrNoRows) {
		if l.wasPruned(ctx, h) {
			return nil
		}
		return compare(h, "", false, nil)
	}
	return compare(h, hash, true, err)
}

func (l *Log) newestHead(ctx context.Context) (head, error) {
	h := head{hash: zeroHash}
	var ts string
	err := l.database().QueryRowContext(ctx, selectHead).Scan(&h.seq, &ts, &h.hash)
	if errors.Is(err, sql.ErrNoRows) {
		return h, nil
	}
	return h, err
}

// attest compares the log and audit.head with what this process wrote to them last, unless it did so within
// groupDelay. It is cheap: two lookups by key and four system calls on files.
func (l *Log) attest() error {
	if time.Since(l.attested) <= groupDelay {
		return nil
	}
	var found []breach
	err := l.tx.attest()
	var b *breach
	if err != nil && !errors.As(err, &b) {
		return err
	}
	if b != nil && l.excuses(b) {
		b = nil
	}
	switch {
	case b != nil:
		found = append(found, *b)
	case l.replaced && l.known.seq > 0: // the new file has that row, but perhaps not the rows before it
		found = append(found, breach{reason: reasonReplaced, expected: l.known, found: foundReplaced})
	}
	if b := l.head.check(); b != nil {
		found = append(found, *b)
	}
	if len(found) > 0 {
		return l.recordBreaches(append(found, l.others(found)...))
	}
	l.attested = time.Now()
	return nil
}

// recordBreaches keeps breaches in audit.head and queues the event that reports them.
func (l *Log) recordBreaches(found []breach) error {
	newest, _ := l.newestHead(context.Background()) // 0 if it cannot be read
	found[0].newest = newest.seq
	if err := l.head.keep(found); err != nil {
		return err
	}
	l.known, l.replaced = head{}, false
	if found[0].reason == reasonRowUnreadable {
		l.file = nil // reopen: new connections may be able to read the row
	}
	if l.tx != nil {
		l.tx.forget()
	}
	if l.broken == nil {
		l.broken = l.breachRow(found)
	}
	return nil
}

// reported is called when the event that recordBreaches queued is committed.
func (l *Log) reported() {
	r := *l.broken
	l.broken = nil
	l.head.markReported()
	if l.opts.OnBroken != nil {
		l.opts.OnBroken(r)
	}
}
