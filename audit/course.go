package audit

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ALRubinger/aileron/audit/internal/chain"
	"github.com/ALRubinger/aileron/audit/internal/journal"
)

// Rows that another program chains to the last one, with hashes that fit, contradict nothing that is known of the log.
// They show all the same: no line of audit.head names them, they lack signed heads, or their session had ended.

// ErrRowsAdded is returned for a log that has rows which no process of this program can have added.
var ErrRowsAdded = errors.New("the log has rows that no session or command wrote")

// claimTimeout is how long rows may be in the database before their line is in audit.head. Tests change it.
var claimTimeout = 2 * time.Second

// unclaimed returns the newest line of audit.head if rows up to newest are behind it which no process can have added:
// none runs that has yet to write its line, and none was killed before it could.
func (l *Log) unclaimed(newest chain.Head, known chain.Heads) (*chain.HeadLine, error) {
	for end := time.Now().Add(claimTimeout); known.Unclaimed(newest.Seq) != nil; time.Sleep(settleEvery) {
		journals, err := journal.Beside(l.path) // a session of an earlier version has no other file
		if err != nil || len(journals) > 0 || len(l.head.Writing()) > 0 {
			return nil, err
		}
		last := time.Now().After(end) // a command may be about to write its line
		if known, err = chain.ReadHeads(l.head.Path, l.head.WitnessPath); err != nil {
			return nil, err
		}
		if last {
			return known.Unclaimed(newest.Seq), nil
		}
	}
	return nil, nil
}

// added returns breaches for rows behind the last signed head that no process of this program can have added. It sets
// l.unsigned if such rows are there, or were reported behind the last signed head.
func (l *Log) added(ctx context.Context, newest chain.Head, known chain.Heads) (found []chain.Breach, err error) {
	c := chain.Course{Signs: chain.HasSigned(l.path)}
	fault, at, err := l.db.Course(ctx, newest.Seq, &c)
	if err != nil {
		return nil, err
	}
	if l.unsigned = c.Added || fault != nil; c.Added {
		return nil, nil
	}
	if fault != nil {
		found = append(found, chain.Breach{Reason: fault.Reason, Expected: at, Found: fault.Found})
	}
	if l.opts.Wrote {
		return found, nil
	}
	u, err := l.unclaimed(newest, known)
	if err != nil || u == nil {
		return found, err
	}
	l.unsigned = true
	b := chain.Breach{Reason: chain.ReasonRowAdded, Expected: u.Head, Line: *u,
		Found: fmt.Sprintf("rows %d to %d behind it", u.Seq+1, newest.Seq)}
	return append([]chain.Breach{b}, found...), nil
}
