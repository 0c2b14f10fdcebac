package chain

import (
	"cmp"
	"fmt"
	"slices"
)

// MaxFindings bounds the findings that a report lists.
const MaxFindings = 100

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

func (r *Report) Add(f Finding) {
	if len(r.Findings) == 0 {
		r.OK, r.BrokenSeq, r.BrokenID, r.Why = false, f.Seq, f.ID, f.Why
	}
	if len(r.Findings) == MaxFindings {
		r.More++
		return
	}
	r.Findings = append(r.Findings, f)
}

// heads compares the lines of audit.head and the witness with the rows.
func (w *Walk) heads(known Heads, rows bool) {
	reported := map[Head]bool{}
	for _, line := range known.Lines {
		reported[line.Head] = w.line(line, fmt.Sprintf("line %d of audit.head", line.Number)) || reported[line.Head]
	}
	if known.Witness.Readable && !reported[known.Witness.Line.Head] {
		w.line(known.Witness.Line, "the witness of audit.head")
	}
	for _, fault := range known.faults {
		w.Report.Add(Finding{Why: fault})
	}
	switch fault := known.Inconsistency(rows); fault {
	case "":
	case FoundHeadMissing:
		const why = "the head outside the database is missing, so that a cut tail would not show"
		w.Report.Add(Finding{Found: fault, Why: why})
	default:
		w.Report.Add(Finding{Why: fault})
	}
}

// line adds a finding if a line of the given name does not fit the rows, and reports whether it did.
func (w *Walk) line(line HeadLine, name string) (added bool) {
	found, named := w.at[line.Seq]
	f := Finding{Seq: line.Seq, Expected: line.Hash, Found: FoundMissing}
	switch {
	case w.Until != nil && w.Ended && line.Seq > w.Last.Seq:
		return false // it is of a row that stays
	case line.State != LineHead && named && found == line.Hash:
		f.Seq, f.Found = 0, found
		f.Why = fmt.Sprintf("%s: row %d with hash %s is in the log, but the log or its heads did not fit "+
			"when a session looked for it", name, line.Seq, line.Hash)
	case line.State != LineHead:
		f.Why = fmt.Sprintf("%s: row %d with hash %s was not in the log when a session looked for it",
			name, line.Seq, line.Hash)
	case w.Ended && line.Seq > w.Last.Seq, named && found == line.Hash:
		return false
	case found != "":
		f.Found = printableHash(found)
		f.Why = fmt.Sprintf("%s has another hash for row %d: expected %s, found %s", name, line.Seq, line.Hash, f.Found)
	case line.Seq > w.Last.Seq:
		f.Seq = w.Last.Seq + 1
		f.Why = fmt.Sprintf("the log ends at row %d, and once had row %d: %s has its hash %s, found missing",
			w.Last.Seq, line.Seq, name, line.Hash)
	case line.Seq <= w.gone:
		return false // the prune has compared it
	default:
		f.Why = fmt.Sprintf("%s has row %d with hash %s, found missing", name, line.Seq, line.Hash)
	}
	w.Report.Add(f)
	return true
}

func NewWalk() *Walk {
	return &Walk{Report: Report{OK: true, Head: ZeroHash}, at: map[int64]string{0: ZeroHash}, Last: Head{Hash: ZeroHash},
		open: NewOpenIntents(MaxOpen)}
}

// Expect notes the rows that heads name, whose hashes the walk has to keep.
func (w *Walk) Expect(known Heads) {
	for _, line := range append(known.Lines, known.Witness.Line) {
		w.at[line.Seq] = ""
	}
	w.at[0] = ZeroHash
}

// End compares what the walk has found with heads, and completes the report.
func (w *Walk) End(known Heads, rows bool) {
	if f := w.course.End(); f != nil && !w.Ended {
		w.stray(f, "")
	}
	w.heads(known, rows)
	if u := w.Unclaimed; u != nil && w.Until == nil && w.Last.Seq > u.Seq {
		w.Report.Add(Finding{Seq: u.Seq + 1, Why: u.unclaimed(w.Last.Seq)})
	}
	w.Signed.end(w)
	w.Report.Open = len(w.open.Seqs)
	if w.Report.Pruned = w.Pruned; w.Pruned != nil {
		w.Report.Left = w.Pruned.Last - w.gone
	}
}

// VerifyMissing returns the report of a log without a database, and whether anything beside it names a row.
func VerifyMissing(path string, known Heads, e Evidence) (r Report, any bool, err error) {
	w := Walk{Report: Report{OK: true, Head: ZeroHash, Missing: true}, at: map[int64]string{0: ZeroHash}}
	if err := w.NewSignedCheck(path, e); err != nil {
		return r, false, err
	}
	w.at[0] = ZeroHash
	any = known.Expected().Seq > 0 || len(known.faults)+len(w.Signed.file)+len(w.Signed.kept) > 0
	slices.SortStableFunc(known.Lines, func(a, b HeadLine) int { return cmp.Compare(b.Seq, a.Seq) })
	w.heads(known, false)
	w.Signed.end(&w)
	return w.Report, any, nil
}

// Unreadable adds a finding for a damaged database, whose rows cannot be read to the end.
func (w *Walk) Unreadable() {
	w.Ended, w.Report.Damaged = true, true
	const why = "the database is damaged and cannot be read from here on"
	w.Report.Add(Finding{Seq: w.Last.Seq + 1, Found: FoundUnreadable, Why: why})
}
