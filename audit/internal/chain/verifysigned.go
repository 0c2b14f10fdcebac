package chain

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
)

// Evidence is what Verify compares the log with, beside what is kept in the home. The zero value is none.
type Evidence struct {
	Heads    string   // signed heads that were kept elsewhere, one behind the other, as SignedHead returns them
	Complete bool     // an export must have every row from its first to its last one, and the first one of its log
	Keys     []string // further public keys that signed heads of the log, as PublicKey returns them
}

// SignedCheck compares signed heads with the rows of a walk.
type SignedCheck struct {
	Keys   *Keyring
	unkept string // why there is no key of this installation; "": there is one
	file   []signedHead
	exists bool // audit.checkpoints
	kept   []signedHead
	anyKey bool // signatures of keys that are not known are not verified

	keptPruned int // those of kept whose row was pruned

	rows   int   // that have a signed head
	newest int64 // the number of the newest row that has a valid one
	by     string
	Faults []signatureFault
	names  []string // of the keys whose signatures were not verified
}

// signatureFault is what is wrong with the signatures of several signed heads.
type signatureFault struct {
	why   string
	first Finding
	More  int
}

// NewSignedCheck reads audit.checkpoints, the key, and the evidence.
func (w *Walk) NewSignedCheck(path string, e Evidence) error {
	c := &SignedCheck{}
	keys := slices.Clone(e.Keys)
	switch k, err := ReadKey(KeyPath(path)); {
	case errors.Is(err, fs.ErrNotExist):
		c.unkept = "vault/audit.key is missing"
	case err != nil:
		c.unkept = err.Error()
	default:
		keys = append(keys, k.Public)
	}
	var err error
	if c.Keys, err = NewKeyring(keys); err != nil {
		return err
	}
	if c.kept, err = parseKept(e.Heads); err != nil {
		return err
	}
	notes, rest, exists, err := readSignedHeads(path)
	if err != nil {
		return err
	}
	c.exists = exists
	if strings.Trim(rest, "\n") != "" {
		w.Report.Add(Finding{Why: fmt.Sprintf("audit.checkpoints has %d bytes that are no signed head", len(rest))})
	}
	for i, text := range notes {
		s, err := ParseSignedHead(text)
		if err != nil {
			w.Report.Add(Finding{Why: fmt.Sprintf("note %d of audit.checkpoints: %s", i+1, err)})
			continue
		}
		c.file = append(c.file, s)
	}
	for _, s := range append(slices.Clone(c.file), c.kept...) {
		w.at[s.Seq] = ""
	}
	w.Signed = c
	return nil
}

// parseKept parses signed heads that were kept elsewhere.
func parseKept(text string) (kept []signedHead, err error) {
	if text == "" {
		return nil, nil
	}
	notes, rest := SplitNotes(strings.ReplaceAll(text, "\r\n", "\n")) // a mail may have changed the ends of lines
	if len(notes) == 0 || strings.TrimSpace(rest) != "" {
		return nil, fmt.Errorf("read the kept head: %w", ErrNoSignedHead)
	}
	for _, n := range notes {
		s, err := ParseSignedHead(n)
		if err != nil {
			return nil, fmt.Errorf("read the kept head: %w", err)
		}
		kept = append(kept, s)
	}
	return kept, nil
}

// checkpoint checks a row with a signed head: the head is the row before it.
func (w *Walk) checkpoint(seq int64, id, fields string) {
	if w.Signed == nil {
		return
	}
	var decoded map[string]any
	_ = json.Unmarshal([]byte(fields), &decoded) // if it fails, there is no text
	text, _ := decoded[CheckpointField].(string)
	s, err := ParseSignedHead(text)
	if err != nil {
		w.Report.Add(Finding{Seq: seq, ID: id, Why: "its signed head: " + err.Error()})
		return
	}
	if s.Seq != w.Last.Seq || s.Hash != w.Last.Hash {
		why := fmt.Sprintf("its signed head is row %d with hash %s, and before it is row %d with hash %s",
			s.Seq, s.Hash, w.Last.Seq, printableHash(w.Last.Hash))
		w.Report.Add(Finding{Seq: seq, ID: id, Expected: s.Hash, Found: printableHash(w.Last.Hash), Why: why})
	}
	c := w.Signed
	c.rows++
	if !c.IsSigned(s, Finding{Seq: seq, ID: id}, fmt.Sprintf("the signed head in row %d", seq)) {
		return
	}
	c.newest, c.by = s.Seq, s.Origin
}

// prunedNote checks a row of EventPruned: its note fits its fields, and is signed.
func (w *Walk) prunedNote(seq int64, id, fields string) {
	if w.Signed == nil {
		return
	}
	_, s, err := ParsePruned(seq, fields)
	if err != nil {
		w.Report.Add(Finding{Seq: seq, ID: id, Why: "its signed head: " + err.Error()})
		return
	}
	w.Signed.IsSigned(s, Finding{Seq: seq, ID: id}, fmt.Sprintf("the signed head in row %d", seq))
}

// IsSigned reports whether s has a valid signature, and otherwise notes what is wrong with it.
func (c *SignedCheck) IsSigned(s signedHead, at Finding, name string) bool {
	why := c.Keys.Check(s)
	if why == "" {
		return true
	}
	other, isOther := strings.CutPrefix(why, anotherKey)
	if isOther && c.anyKey {
		if len(c.names) < MaxFindings && !slices.Contains(c.names, other) {
			c.names = append(c.names, other)
		}
		return true
	}
	if c.unkept != "" && isOther {
		why = "cannot be checked, because " + c.unkept
	}
	place, _, _ := strings.Cut(name, " row ")
	for i := range c.Faults {
		// An export chooses the names in it: their number is bounded, and with it the time to compare them.
		if f := &c.Faults[i]; f.why == place+why || i == MaxFindings-1 {
			f.More++
			return false
		}
	}
	at.Why = name + " " + why
	c.Faults = append(c.Faults, signatureFault{why: place + why, first: at})
	return false
}

// end adds findings for signed heads that are not in rows, and for signatures.
func (c *SignedCheck) end(w *Walk) {
	if c == nil {
		return
	}
	for _, s := range c.file {
		c.IsSigned(s, Finding{Seq: s.Seq}, fmt.Sprintf("audit.checkpoints: the signed head of row %d", s.Seq))
		w.line(HeadLine{Head: s.Head, State: LineHead}, "audit.checkpoints")
	}
	c.keptHeads(w)
	if c.rows > 0 && !c.exists {
		w.Report.Add(Finding{Why: "audit.checkpoints is missing, and rows have signed heads"})
	}
	c.result(w)
}

// keptHeads compares the heads that were kept elsewhere with the rows. One of a row that was pruned proves nothing, and
// a log that agrees with none of them is not held to anything: who has the key could have pruned what was rewritten.
func (c *SignedCheck) keptHeads(w *Walk) {
	for _, s := range c.kept {
		if !c.IsSigned(s, Finding{Seq: s.Seq}, fmt.Sprintf("the kept head of row %d", s.Seq)) {
			continue
		}
		if s.Seq <= w.gone && w.at[s.Seq] == "" {
			c.keptPruned++
			continue
		}
		w.line(HeadLine{Head: s.Head, State: LineHead}, "the kept head")
	}
	if c.keptPruned > 0 && c.keptPruned == len(c.kept) {
		newest := slices.MaxFunc(c.kept, func(a, b signedHead) int { return cmp.Compare(a.Seq, b.Seq) })
		why := fmt.Sprintf("the log cannot be held to the kept head of row %d: rows 1 to %d were pruned, and no head of a "+
			"later row was kept", newest.Seq, w.gone)
		w.Report.Add(Finding{Seq: newest.Seq, Expected: newest.Hash, Found: foundPruned, Why: why})
	}
}

// result adds findings for signatures, and what is signed.
func (c *SignedCheck) result(w *Walk) {
	for _, f := range c.Faults {
		if f.More > 0 {
			f.first.Why += fmt.Sprintf(" (and %d more)", f.More)
		}
		w.Report.Add(f.first)
	}
	w.Report.Signed, w.Report.SignedBy = c.newest, c.by
	w.Report.Kept, w.Report.KeptPruned = len(c.kept)-c.keptPruned, c.keptPruned
}
