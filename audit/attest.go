package audit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ALRubinger/aileron/audit/internal/chain"
	"github.com/ALRubinger/aileron/audit/internal/table"
)

// A log that was changed must not look intact again because rows were added later. So the log is compared with what
// is known of it from outside before anything is added: when it is opened, with the newest line of audit.head and
// with the witness; later, with the row that this process committed last, with its own line of audit.head and with
// the identity of the files. A mismatch is kept in audit.head for ever and reported by EventBroken, which is
// committed before any other row of this process.

// examine compares the log with audit.head and the witness when it is opened.
func (l *Log) examine(ctx context.Context) error {
	newest, err := l.db.Newest(ctx)
	if err != nil && !table.IsDamage(err) {
		return err
	}
	known, err := chain.ReadHeads(l.head.Path, l.head.WitnessPath)
	if err != nil {
		return err
	}
	found, err := l.contradictions(ctx, known, false)
	if err != nil {
		return err
	}
	if fault := known.Inconsistency(newest.Seq > 0); fault != "" {
		found = append(found, chain.Breach{Reason: known.Reason(), Expected: known.Expected(), Found: fault})
	}
	if len(found) == 0 {
		if found, err = l.added(ctx, newest, known); err != nil && !table.IsDamage(err) {
			return err
		}
	}
	if len(found) > 0 {
		return l.recordBreaches(found)
	}
	if l.known = known.Expected(); l.opts.Wrote {
		return l.head.Begin(newest)
	}
	return nil
}

// contradictions returns the heads that the log does not have. If it has the newest one, the older ones are looked up
// only when every is true: Verify does that in any case.
func (l *Log) contradictions(ctx context.Context, known chain.Heads, every bool) ([]chain.Breach, error) {
	var found []chain.Breach
	check := func(line chain.HeadLine) error {
		err := l.has(ctx, line.Head)
		var b *chain.Breach
		if errors.As(err, &b) {
			b.Line = line
			found, err = append(found, *b), nil
		}
		return err
	}
	newest, _ := known.Newest()
	if newest.Number > 0 {
		if err := check(newest); err != nil {
			return nil, err
		}
	}
	every = every || len(found) > 0
	for _, line := range slices.Backward(known.Lines) {
		// The process that marked a line as lost may have been killed before it committed the event.
		if line.State == chain.LineLost || line.State == chain.LineHead && every && line != newest {
			if err := check(line); err != nil {
				return nil, err
			}
		}
	}
	w := known.Witness
	listed := slices.ContainsFunc(found, func(b chain.Breach) bool { return b.Expected == w.Line.Head })
	if w.Readable && !listed {
		w.Line.Number = 0 // the witness is not a line of audit.head
		if err := check(w.Line); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// others returns the lines of other writers that the log contradicts too, so that one event reports all of them. If
// they cannot be read now, the next Open finds them.
func (l *Log) others(found []chain.Breach) []chain.Breach {
	known, err := chain.ReadHeads(l.head.Path, l.head.WitnessPath)
	if err != nil {
		return nil
	}
	own := func(line chain.HeadLine) bool { return line.Writer == l.head.Writer }
	known.Lines = slices.DeleteFunc(known.Lines, own)
	more, err := l.contradictions(context.Background(), known, true)
	if err != nil {
		return nil
	}
	return slices.DeleteFunc(more, func(b chain.Breach) bool {
		return slices.ContainsFunc(found, func(f chain.Breach) bool { return f.Expected == b.Expected })
	})
}

// has returns a *breach if the log does not have the row of h.
func (l *Log) has(ctx context.Context, h chain.Head) error {
	if h.Seq == 0 {
		return nil
	}
	err := l.db.HasRow(ctx, h)
	var b *chain.Breach
	if errors.As(err, &b) && b.Reason == chain.ReasonRowMissing && l.wasPruned(ctx, h) {
		return nil
	}
	return err
}

// attest compares the log and audit.head with what this process wrote to them last, unless it did so within
// groupDelay. It is cheap: two lookups by key and four system calls on files.
func (l *Log) attest() error {
	if time.Since(l.attested) <= groupDelay {
		return nil
	}
	var found []chain.Breach
	err := l.tx.Attest()
	var b *chain.Breach
	if err != nil && !errors.As(err, &b) {
		return err
	}
	if b != nil && l.excuses(b) {
		b = nil
	}
	switch {
	case b != nil:
		found = append(found, *b)
	case l.db.Replaced && l.known.Seq > 0: // the new file has that row, but perhaps not the rows before it
		found = append(found, chain.Breach{Reason: chain.ReasonReplaced, Expected: l.known, Found: chain.FoundReplaced})
	}
	if b := l.head.Check(); b != nil {
		found = append(found, *b)
	}
	if len(found) > 0 {
		return l.recordBreaches(append(found, l.others(found)...))
	}
	l.attested = time.Now()
	return nil
}

// recordBreaches keeps breaches in audit.head and queues the event that reports them.
func (l *Log) recordBreaches(found []chain.Breach) error {
	newest, _ := l.db.Newest(context.Background()) // 0 if it cannot be read
	found[0].Newest = newest.Seq
	if err := l.head.Keep(found); err != nil {
		return err
	}
	l.known, l.db.Replaced = chain.Head{}, false
	if found[0].Reason == chain.ReasonRowUnreadable {
		l.db.Forget() // reopen: new connections may be able to read the row
	}
	if l.tx != nil {
		l.tx.Forget()
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
	l.head.MarkReported()
	if l.opts.OnBroken != nil {
		l.opts.OnBroken(r)
	}
}

// maxReports is how many of the newest reports are looked at for one that has the same break.
const maxReports = 256

// reportBreak records a row that does not fit the chain, unless an event of the log reports the same.
func (l *Log) reportBreak(ctx context.Context, b chain.Breach) error {
	known := false
	same := func(r Row) error {
		seq, _ := r.Fields["expected_seq"].(float64)
		hash, _ := r.Fields["expected_hash"].(string)
		known = known || int64(seq) == b.Expected.Seq && hash == b.Expected.Hash && r.Reason == b.Reason
		return nil
	}
	err := l.db.EachRow(ctx, Filter{Event: EventBroken, Newest: true, Limit: maxReports}, same)
	if err != nil || known {
		return err
	}
	newest, _ := l.db.Newest(ctx) // 0 if it cannot be read
	b.Newest = newest.Seq
	r := l.breachRow([]chain.Breach{b})
	if err := l.appendAll(ctx, []*Row{r}); err != nil {
		return err
	}
	if l.opts.OnBroken != nil {
		l.opts.OnBroken(*r)
	}
	return nil
}

// maxAlso bounds the further breaches that one event lists.
const maxAlso = 8

// breachRow returns the event that reports breaches, which are ordered by severity.
func (l *Log) breachRow(found []chain.Breach) *Row {
	b := found[0]
	r := &Row{
		Event: EventBroken, SessionID: l.opts.Session, Source: l.source(), Reason: b.Reason,
		Fields: map[string]any{
			"expected_seq": b.Expected.Seq, "found": b.Found, "found_seq": b.Newest,
		},
	}
	if b.Expected.Hash != "" {
		r.Fields["expected_hash"] = b.Expected.Hash
	}
	if b.Next > 0 {
		r.Fields["next_seq"] = b.Next
	}
	var also []string
	for i, b := range found[1:] {
		if i == maxAlso {
			also = append(also, fmt.Sprintf("%d more", len(found)-1-i))
			break
		}
		also = append(also, b.Reason+": "+b.Error())
	}
	if len(also) > 0 {
		r.Fields["also"] = also
	}
	return r
}
