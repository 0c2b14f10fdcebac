package audit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/ALRubinger/aileron/audit/internal/chain"
	"github.com/ALRubinger/aileron/audit/internal/table"
)

// Verify walks the chain from the first row, and compares the log with every line of audit.head, with the witness, and
// with signed heads.
// The report has what is wrong; an error means that this cannot be determined.
func (l *Log) Verify(ctx context.Context) (Report, error) { return l.VerifyWith(ctx, Evidence{}) }

// VerifyWith is Verify, and compares the log with evidence from elsewhere too.
func (l *Log) VerifyWith(ctx context.Context, e Evidence) (Report, error) {
	if err := table.CheckSchema(l.path); err != nil {
		return Report{}, err // its rows may be chained differently
	}
	l.flush(ctx)
	newest, err := l.db.Newest(ctx)
	if err != nil && !table.IsDamage(err) {
		return Report{}, fmt.Errorf("read the audit log: %w", err)
	}
	// Read the heads before the rows: rows that are committed meanwhile come after the heads.
	known, err := chain.ReadHeads(l.head.Path, l.head.WitnessPath)
	if err != nil {
		return Report{}, err
	}
	w := chain.NewWalk()
	if w.Unclaimed, err = l.unclaimed(newest, known); err != nil {
		return Report{}, err
	}
	if err := l.walk(ctx, w, e, known, newest.Seq > 0); err != nil {
		return Report{}, err
	}
	l.db.CheckIndex(ctx, w.Report.Add)
	err = addSpills(&w.Report, l.path)
	return w.Report, err
}

// walk walks over the rows, and compares them with heads.
func (l *Log) walk(ctx context.Context, w *chain.Walk, e Evidence, known chain.Heads, rows bool) error {
	if err := w.NewSignedCheck(l.path, e); err != nil {
		return err
	}
	var err error
	if w.Pruned, err = l.prunedRows(ctx, w.Signed.Keys); err != nil && !table.IsDamage(err) {
		return fmt.Errorf("read the audit log: %w", err)
	}
	w.Expect(known)
	failed, err := l.db.Texts(ctx, w.Row)
	switch {
	case errors.Is(failed, chain.ErrBound):
		w.Ended = true
	case failed != nil:
		return fmt.Errorf("read the audit log: %w", failed)
	case table.IsDamage(err):
		w.Unreadable()
	case err != nil:
		return fmt.Errorf("read the audit log: %w", err)
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("read the audit log: %w", err)
	}
	w.End(known, rows)
	return nil
}

// VerifyMissing returns the report of Verify if there is no database at path. The error wraps fs.ErrNotExist if there
// never was one.
func VerifyMissing(path string, e Evidence) (Report, error) {
	h := chain.NewHeadFile(path)
	known, err := chain.ReadHeads(h.Path, h.WitnessPath)
	if err != nil {
		return Report{}, err
	}
	report, any, err := chain.VerifyMissing(path, known, e)
	if err != nil {
		return Report{}, err
	}
	if !any {
		return Report{}, fmt.Errorf("verify the audit log: %w", fs.ErrNotExist)
	}
	err = addSpills(&report, path)
	return report, err
}

// addSpills counts the rows of journals, and adds a finding for each that cannot be read.
func addSpills(r *Report, path string) error {
	all, err := Spills(path)
	for _, s := range all {
		r.Spilled += len(s.Rows)
		if s.Err != nil {
			why := fmt.Sprintf("%s is not a journal that a session left: %v", filepath.Base(s.Path), s.Err)
			r.Add(Finding{Found: chain.FoundUnreadable, Why: why})
		}
	}
	return err
}

// SignedHead returns the newest row of the log as a signed head, a note of five lines. It makes the key of this
// installation if there is none.
func (l *Log) SignedHead(ctx context.Context) (string, error) {
	if err := table.CheckSchema(l.path); err != nil {
		return "", err
	}
	l.flush(ctx)
	newest, err := l.db.Newest(ctx)
	if err != nil {
		return "", fmt.Errorf("read the audit log: %w", err)
	}
	known, err := chain.ReadHeads(l.head.Path, l.head.WitnessPath)
	if err != nil {
		return "", err
	}
	if found, err := l.added(ctx, newest, known); err != nil || len(found) > 0 || l.unsigned {
		return "", fmt.Errorf("sign the head of the audit log: %w", cmp.Or(err, ErrRowsAdded))
	}
	k, err := chain.MakeKey(l.path)
	if err != nil {
		return "", err
	}
	return k.Sign(newest)
}

// PublicKey returns the public key of the installation of the log at path, which it makes if there is none.
func PublicKey(path string) (string, error) {
	k, err := chain.MakeKey(path)
	if err != nil {
		return "", err
	}
	return k.Public, nil
}
