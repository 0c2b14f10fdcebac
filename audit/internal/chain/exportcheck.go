package chain

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
)

// ExportReport is the result of VerifyExport.
type ExportReport struct {
	Report

	Lines   int      `json:"lines"`                  // rows of the export
	First   int64    `json:"first_seq"`              // the number of its first row
	Last    int64    `json:"last_seq"`               // and of its last one
	Gaps    int      `json:"gaps"`                   // how often rows before one of these are not in the export
	Absent  int64    `json:"absent"`                 // how many those are
	Pruned  int64    `json:"pruned_rows,omitempty"`  // those of them that a prune had removed from the log
	Signers []string `json:"not_verified,omitempty"` // keys whose signatures were not verified: at most MaxFindings
}

// MaxExportLine bounds a line of an export.
const MaxExportLine = 64 << 20

// VerifyExport verifies rows that were exported as JSON Lines, without the log that they are of. Each row must have its
// hash, and a row with the next number must be chained to it: rows that a filter left out are counted as gaps, and what
// they were cannot be known. Without e.Keys, signatures are not verified, and the report has the names of their keys.
// Kept heads must be of rows that the export has.
func VerifyExport(from io.Reader, e Evidence) (ExportReport, error) {
	c := &exportCheck{Walk: Walk{Report: Report{OK: true}, at: map[int64]string{}, Last: Head{Hash: ZeroHash},
		open: NewOpenIntents(MaxOpen)}}
	signed := &SignedCheck{anyKey: len(e.Keys) == 0}
	var err error
	if signed.Keys, err = NewKeyring(e.Keys); err != nil {
		return ExportReport{}, err
	}
	if signed.kept, err = parseKept(e.Heads); err != nil {
		return ExportReport{}, err
	}
	for _, s := range signed.kept {
		c.at[s.Seq] = ""
	}
	c.Signed = signed
	lines, number := bufio.NewScanner(from), 0
	lines.Buffer(nil, MaxExportLine)
	for ; lines.Scan(); number++ {
		if line := bytes.TrimSuffix(lines.Bytes(), []byte("\r")); len(line) > 0 {
			c.line(line)
		}
	}
	switch err := lines.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return ExportReport{}, fmt.Errorf("read the export: line %d is longer than %d MiB", number+1, MaxExportLine>>20)
	case err != nil:
		return ExportReport{}, fmt.Errorf("read the export: %w", err)
	}
	if c.done.Lines == 0 {
		return ExportReport{}, ErrNoExport
	}
	if e.Complete {
		c.complete()
	}
	c.keptHeads()
	if !signed.anyKey && signed.rows == 0 {
		// Who chains all rows again leaves the signed heads out: without one, the keys would prove nothing.
		c.Report.Add(Finding{Why: "no row of the export has a signed head, so that no key can verify it"})
	}
	signed.result(&c.Walk)
	c.done.Report, c.done.Signers = c.Report, signed.names
	c.done.Open = len(c.open.Seqs)
	return c.done, nil
}

// ErrNoExport is returned for an export without a row.
var ErrNoExport = errors.New("it has no row of an audit log")

// exportCheck is one pass over an export.
type exportCheck struct {
	Walk
	done   ExportReport
	absent int64 // the number of the first row that is not in the export; 0: none
	before Head  // the row before the first one of the export; seq 0: that is row 1
}

// exportedRow is a row with its fields as they are in the export.
type exportedRow struct {
	Row
	Fields json.RawMessage `json:"fields"`
}

// line checks one line.
func (c *exportCheck) line(line []byte) {
	c.done.Lines++
	r, fields, err := parseExported(line)
	if err != nil {
		c.breaks(0, "", fmt.Sprintf("line %d is not a row as audit export writes it: %v", c.done.Lines, err), "", "")
		return
	}
	switch absent := r.Seq - 1 - c.Last.Seq; {
	case r.Seq <= c.Last.Seq:
		c.breaks(r.Seq, r.ID, fmt.Sprintf("it comes behind row %d", c.Last.Seq), "", "")
	case absent > 0:
		c.done.Gaps++
		c.done.Absent += absent
		if c.absent == 0 {
			c.absent = c.Last.Seq + 1
		}
		if c.done.First == 0 {
			c.before = Head{Seq: r.Seq - 1, Hash: r.PrevHash}
		}
	case r.PrevHash != c.Last.Hash:
		c.breaks(r.Seq, r.ID, "its prev_hash is not the hash of the row before it", c.Last.Hash, printableHash(r.PrevHash))
	}
	again := r
	if again.Chain(r.PrevHash, fields); again.Hash != r.Hash {
		c.breaks(r.Seq, r.ID, "its content does not have its hash", printableHash(r.Hash), again.Hash)
	}
	if c.done.First == 0 {
		c.done.First = r.Seq
	}
	c.done.Last = max(c.done.Last, r.Seq)
	if r.Event == EventCheckpoint {
		// The row before it may not be in the export; its hash is in this row.
		before := c.Last
		c.Last = Head{Seq: r.Seq - 1, Hash: r.PrevHash}
		c.checkpoint(r.Seq, r.ID, fields)
		c.Last = before
	}
	if r.Event == EventPruned {
		c.pruned(r, fields)
	}
	request, _ := r.Fields[RequestIDName].(string)
	c.passed(r.Seq, r.Event, request, r.Hash)
}

// complete adds a finding if the export lacks rows of its log.
func (c *exportCheck) complete() {
	if absent := c.done.Absent - c.done.Pruned; absent > 0 {
		why := fmt.Sprintf("the export is not complete: %d rows up to row %d are not in it, the first of them row %d", absent,
			c.done.Last, c.absent)
		c.Report.Add(Finding{Found: FoundMissing, Why: why})
	}
}

// pruned checks a row of EventPruned, and accounts for the rows that it stands for.
func (c *exportCheck) pruned(r Row, fields string) {
	c.prunedNote(r.Seq, r.ID, fields)
	p, _, err := ParsePruned(r.Seq, fields)
	if err != nil {
		return
	}
	if c.before.Seq == p.Last && c.before.Hash != p.Hash {
		c.breaks(p.Last+1, "", "its prev_hash is not the hash of the last row that was pruned", p.Hash,
			printableHash(c.before.Hash))
	}
	c.done.Pruned = max(c.done.Pruned, min(p.Last, c.before.Seq))
}

// parseExported parses one line, and returns the row and its fields as the log has them. It rejects whatever the hash
// does not cover: other columns, a column twice, and text behind the row.
func parseExported(line []byte) (r Row, fields string, err error) {
	var x exportedRow
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	if err := d.Decode(&x); err != nil {
		return r, "", err
	}
	if d.More() {
		return r, "", errors.New("there is text behind it")
	}
	r = x.Row
	d = json.NewDecoder(bytes.NewReader(x.Fields))
	d.UseNumber() // as the log has them
	if err := d.Decode(&r.Fields); err != nil {
		return r, "", fmt.Errorf("its fields: %w", err)
	}
	stored, err := AppendObject(nil, r.Fields, "")
	if err != nil {
		return r, "", err
	}
	var again bytes.Buffer
	if err := json.NewEncoder(&again).Encode(r); err != nil {
		return r, "", err
	}
	if !sameTokens(line, again.Bytes()) && !sameTokens(line, withShortTime(again.Bytes(), r.TS)) {
		return r, "", errors.New("a name is missing, twice or in another order")
	}
	return r, string(stored), nil
}

// withShortTime returns a row as an earlier version exported it, whose ts ended with its last digit that is not 0.
func withShortTime(row []byte, ts time.Time) []byte {
	quoted := func(t []byte) []byte { return append(append([]byte(`"ts":"`), t...), '"') }
	return bytes.Replace(row, quoted(AppendTime(nil, ts)), quoted(ts.AppendFormat(nil, time.RFC3339Nano)), 1)
}

// sameTokens reports whether two texts are the same JSON, but for white space and escapes.
func sameTokens(a, b []byte) bool {
	d, e := json.NewDecoder(bytes.NewReader(a)), json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	e.UseNumber()
	for {
		x, failed := d.Token()
		y, err := e.Token()
		if failed != nil || err != nil {
			return errors.Is(failed, io.EOF) && errors.Is(err, io.EOF)
		}
		if x != y {
			return false
		}
	}
}

// keptHeads compares the kept heads with the rows of the export.
func (c *exportCheck) keptHeads() {
	for _, s := range c.Signed.kept {
		if !c.Signed.IsSigned(s, Finding{Seq: s.Seq}, fmt.Sprintf("the kept head of row %d", s.Seq)) {
			continue
		}
		f := Finding{Seq: s.Seq, Expected: s.Hash, Found: FoundMissing}
		switch found := c.at[s.Seq]; found {
		case s.Hash:
			continue
		case "":
			f.Why = fmt.Sprintf("the export does not have row %d of the kept head", s.Seq)
		default:
			f.Found = printableHash(found)
			f.Why = fmt.Sprintf("the kept head has another hash for row %d: expected %s, found %s", s.Seq, s.Hash, f.Found)
		}
		c.Report.Add(f)
	}
}
