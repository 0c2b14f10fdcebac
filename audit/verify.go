package audit

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
)

// maxFindings bounds the findings that a report lists.
const maxFindings = 100

// Report is the result of Verify.
type Report struct {
	OK        bool      `json:"ok"`
	Rows      int64     `json:"rows"`                 // up to the first finding, without those that were pruned
	Head      string    `json:"head"`                 // the hash of the last of them
	BrokenSeq int64     `json:"broken_seq,omitempty"` // of the first finding
	BrokenID  string    `json:"broken_id,omitempty"`
	Why       string    `json:"why,omitempty"`
	Findings  []Finding `json:"findings,omitempty"`
	More      int       `json:"more_findings,omitempty"` // findings that are not listed
	Missing   bool      `json:"missing,omitempty"`       // there is no database
	Damaged   bool      `json:"damaged,omitempty"`       // the database cannot be read to the end

	Signed   int64  `json:"signed_seq,omitempty"` // the newest row that a valid signed head in the log stands for
	SignedBy string `json:"signed_by,omitempty"`  // the name of its key
	Kept     int    `json:"kept_heads,omitempty"` // signed heads of Evidence that were compared

	Pruned     *PrunedRows `json:"pruned,omitempty"`            // what stands for the rows that were removed
	Left       int64       `json:"pruned_left,omitempty"`       // those of them that are still in the log
	KeptPruned int         `json:"kept_heads_pruned,omitempty"` // signed heads of Evidence of rows that were removed

	Unknown int64 `json:"unknown_outcomes"` // intents whose session was killed: rows of EventProxyUnknown
	Open    int   `json:"without_outcome"`  // intents without any outcome; at most 65536 are counted
	Spilled int   `json:"spilled_rows"`     // rows of journals that the log does not have yet
}

// Finding is one thing that is wrong with the log or with audit.head.
type Finding struct {
	Seq      int64  `json:"seq,omitempty"`
	ID       string `json:"id,omitempty"`
	Expected string `json:"expected,omitempty"` // hash
	Found    string `json:"found,omitempty"`    // hash, or a word
	Why      string `json:"why"`
}

func (r *Report) add(f Finding) {
	if len(r.Findings) == 0 {
		r.OK, r.BrokenSeq, r.BrokenID, r.Why = false, f.Seq, f.ID, f.Why
	}
	if len(r.Findings) == maxFindings {
		r.More++
		return
	}
	r.Findings = append(r.Findings, f)
}

// Verify walks the chain from the first row, and compares the log with every line of audit.head, with the witness, and
// with signed heads.
// The report has what is wrong; an error means that this cannot be determined.
func (l *Log) Verify(ctx context.Context) (Report, error) { return l.VerifyWith(ctx, Evidence{}) }

// VerifyWith is Verify, and compares the log with evidence from elsewhere too.
func (l *Log) VerifyWith(ctx context.Context, e Evidence) (Report, error) {
	if err := checkSchema(l.path); err != nil {
		return Report{}, err // its rows may be chained differently
	}
	l.flush(ctx)
	newest, err := l.newestHead(ctx)
	if err != nil && !isDamage(err) {
		return Report{}, fmt.Errorf("read the audit log: %w", err)
	}
	// Read the heads before the rows: rows that are committed meanwhile come after the heads.
	known, err := readHeads(l.head.path, l.head.witnessPath)
	if err != nil {
		return Report{}, err
	}
	w := newWalk()
	w.index = newIndexCheck(l.path)
	if w.index != nil {
		w.index.found = w.report.add
	}
	if err := w.compare(ctx, l, e, known, newest.seq > 0); err != nil {
		return Report{}, err
	}
	return w.report, w.spills(l.path)
}

func newWalk() *walk {
	return &walk{report: Report{OK: true, Head: zeroHash}, at: map[int64]string{0: zeroHash}, last: head{hash: zeroHash},
		open: newOpenIntents(maxOpen)}
}

// compare walks over the rows, and compares them with heads.
func (w *walk) compare(ctx context.Context, l *Log, e Evidence, known heads, rows bool) error {
	if err := w.newSignedCheck(l.path, e); err != nil {
		return err
	}
	var err error
	if w.pruned, err = l.prunedRows(ctx, w.signed.keys); err != nil && !isDamage(err) {
		return fmt.Errorf("read the audit log: %w", err)
	}
	if w.until != nil && w.pruned != nil {
		w.until.recorded = w.pruned.Last
	}
	for _, line := range append(known.lines, known.witness.line) {
		w.at[line.seq] = ""
	}
	w.at[0] = zeroHash
	if err := w.rows(ctx, l); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("read the audit log: %w", err)
	}
	w.heads(known, rows)
	w.signed.end(w)
	w.report.Open = len(w.open.seqs)
	if w.report.Pruned = w.pruned; w.pruned != nil {
		w.report.Left = w.pruned.Last - w.gone
	}
	return nil
}

// VerifyMissing returns the report of Verify if there is no database at path. The error wraps fs.ErrNotExist if there
// never was one.
func VerifyMissing(path string, e Evidence) (Report, error) {
	h := newHeadFile(path)
	known, err := readHeads(h.path, h.witnessPath)
	if err != nil {
		return Report{}, err
	}
	w := walk{report: Report{OK: true, Head: zeroHash, Missing: true}, at: map[int64]string{0: zeroHash}}
	if err := w.newSignedCheck(path, e); err != nil {
		return Report{}, err
	}
	w.at[0] = zeroHash
	if last := known.expected(); last.seq == 0 && len(known.faults)+len(w.signed.file)+len(w.signed.kept) == 0 {
		return Report{}, fmt.Errorf("verify the audit log: %w", fs.ErrNotExist)
	}
	slices.SortStableFunc(known.lines, func(a, b headLine) int { return cmp.Compare(b.seq, a.seq) })
	w.heads(known, false)
	w.signed.end(&w)
	return w.report, w.spills(path)
}

// unreadable adds a finding for a damaged database, and returns other errors.
func (w *walk) unreadable(err error) error {
	if !isDamage(err) {
		return fmt.Errorf("read the audit log: %w", err)
	}
	w.ended, w.report.Damaged = true, true
	const why = "the database is damaged and cannot be read from here on"
	w.report.add(Finding{Seq: w.last.seq + 1, Found: foundUnreadable, Why: why})
	return nil
}

// heads compares the lines of audit.head and the witness with the rows.
func (w *walk) heads(known heads, rows bool) {
	reported := map[head]bool{}
	for _, line := range known.lines {
		reported[line.head] = w.line(line, fmt.Sprintf("line %d of audit.head", line.number)) || reported[line.head]
	}
	if known.witness.readable && !reported[known.witness.line.head] {
		w.line(known.witness.line, "the witness of audit.head")
	}
	for _, fault := range known.faults {
		w.report.add(Finding{Why: fault})
	}
	switch fault := known.inconsistency(rows); fault {
	case "":
	case foundHeadMissing:
		const why = "the head outside the database is missing, so that a cut tail would not show"
		w.report.add(Finding{Found: fault, Why: why})
	default:
		w.report.add(Finding{Why: fault})
	}
}

// line adds a finding if a line of the given name does not fit the rows, and reports whether it did.
func (w *walk) line(line headLine, name string) (added bool) {
	found, named := w.at[line.seq]
	f := Finding{Seq: line.seq, Expected: line.hash, Found: foundMissing}
	switch {
	case w.until != nil && w.ended && line.seq > w.last.seq:
		return false // it is of a row that stays
	case line.state != lineHead && named && found == line.hash:
		f.Seq, f.Found = 0, found
		f.Why = fmt.Sprintf("%s: row %d with hash %s is in the log, but the log or its heads did not fit "+
			"when a session looked for it", name, line.seq, line.hash)
	case line.state != lineHead:
		f.Why = fmt.Sprintf("%s: row %d with hash %s was not in the log when a session looked for it",
			name, line.seq, line.hash)
	case w.ended && line.seq > w.last.seq, named && found == line.hash:
		return false
	case found != "":
		f.Found = printableHash(found)
		f.Why = fmt.Sprintf("%s has another hash for row %d: expected %s, found %s", name, line.seq, line.hash, f.Found)
	case line.seq > w.last.seq:
		f.Seq = w.last.seq + 1
		f.Why = fmt.Sprintf("the log ends at row %d, and once had row %d: %s has its hash %s, found missing",
			w.last.seq, line.seq, name, line.hash)
	case line.seq <= w.gone:
		return false // the prune has compared it
	default:
		f.Why = fmt.Sprintf("%s has row %d with hash %s, found missing", name, line.seq, line.hash)
	}
	w.report.add(f)
	return true
}

// spills counts the rows of journals, and adds a finding for each that cannot be read.
func (w *walk) spills(path string) error {
	all, err := Spills(path)
	for _, s := range all {
		w.report.Spilled += len(s.Rows)
		if s.Err != nil {
			why := fmt.Sprintf("%s is not a journal that a session left: %v", filepath.Base(s.Path), s.Err)
			w.report.add(Finding{Found: foundUnreadable, Why: why})
		}
	}
	return err
}
