package audit

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
)

// Evidence is what Verify compares the log with, beside what is kept in the home. The zero value is none.
type Evidence struct {
	Heads string   // signed heads that were kept elsewhere, one behind the other, as SignedHead returns them
	Keys  []string // further public keys that signed heads of the log, as PublicKey returns them
}

// SignedHead returns the newest row of the log as a signed head, a note of five lines. It makes the key of this
// installation if there is none.
func (l *Log) SignedHead(ctx context.Context) (string, error) {
	if err := checkSchema(l.path); err != nil {
		return "", err
	}
	l.flush(ctx)
	newest, err := l.newestHead(ctx)
	if err != nil {
		return "", fmt.Errorf("read the audit log: %w", err)
	}
	k, err := makeKey(l.path)
	if err != nil {
		return "", err
	}
	return k.sign(newest)
}

// PublicKey returns the public key of the installation of the log at path, which it makes if there is none.
func PublicKey(path string) (string, error) {
	k, err := makeKey(path)
	if err != nil {
		return "", err
	}
	return k.public, nil
}

// signedCheck compares signed heads with the rows of a walk.
type signedCheck struct {
	keys   *keyring
	unkept string // why there is no key of this installation; "": there is one
	file   []signedHead
	exists bool // audit.checkpoints
	kept   []signedHead
	anyKey bool // signatures of keys that are not known are not verified

	keptPruned int // those of kept whose row was pruned

	rows   int   // that have a signed head
	newest int64 // the number of the newest row that has a valid one
	by     string
	faults []signatureFault
	names  []string // of the keys whose signatures were not verified
}

// signatureFault is what is wrong with the signatures of several signed heads.
type signatureFault struct {
	why   string
	first Finding
	more  int
}

// newSignedCheck reads audit.checkpoints, the key, and the evidence.
func (w *walk) newSignedCheck(path string, e Evidence) error {
	c := &signedCheck{}
	keys := slices.Clone(e.Keys)
	switch k, err := readKey(keyPath(path)); {
	case errors.Is(err, fs.ErrNotExist):
		c.unkept = "vault/audit.key is missing"
	case err != nil:
		c.unkept = err.Error()
	default:
		keys = append(keys, k.public)
	}
	var err error
	if c.keys, err = newKeyring(keys); err != nil {
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
		w.report.add(Finding{Why: fmt.Sprintf("audit.checkpoints has %d bytes that are no signed head", len(rest))})
	}
	for i, text := range notes {
		s, err := parseSignedHead(text)
		if err != nil {
			w.report.add(Finding{Why: fmt.Sprintf("note %d of audit.checkpoints: %s", i+1, err)})
			continue
		}
		c.file = append(c.file, s)
	}
	for _, s := range append(slices.Clone(c.file), c.kept...) {
		w.at[s.seq] = ""
	}
	w.signed = c
	return nil
}

// parseKept parses signed heads that were kept elsewhere.
func parseKept(text string) (kept []signedHead, err error) {
	if text == "" {
		return nil, nil
	}
	notes, rest := splitNotes(strings.ReplaceAll(text, "\r\n", "\n")) // a mail may have changed the ends of lines
	if len(notes) == 0 || strings.TrimSpace(rest) != "" {
		return nil, fmt.Errorf("read the kept head: %w", ErrNoSignedHead)
	}
	for _, n := range notes {
		s, err := parseSignedHead(n)
		if err != nil {
			return nil, fmt.Errorf("read the kept head: %w", err)
		}
		kept = append(kept, s)
	}
	return kept, nil
}

// checkpoint checks a row with a signed head: the head is the row before it.
func (w *walk) checkpoint(seq int64, id, fields string) {
	if w.signed == nil {
		return
	}
	var decoded map[string]any
	_ = json.Unmarshal([]byte(fields), &decoded) // if it fails, there is no text
	text, _ := decoded[checkpointField].(string)
	s, err := parseSignedHead(text)
	if err != nil {
		w.report.add(Finding{Seq: seq, ID: id, Why: "its signed head: " + err.Error()})
		return
	}
	if s.seq != w.last.seq || s.hash != w.last.hash {
		why := fmt.Sprintf("its signed head is row %d with hash %s, and before it is row %d with hash %s",
			s.seq, s.hash, w.last.seq, printableHash(w.last.hash))
		w.report.add(Finding{Seq: seq, ID: id, Expected: s.hash, Found: printableHash(w.last.hash), Why: why})
	}
	c := w.signed
	c.rows++
	if !c.isSigned(s, Finding{Seq: seq, ID: id}, fmt.Sprintf("the signed head in row %d", seq)) {
		return
	}
	c.newest, c.by = s.seq, s.origin
}

// prunedNote checks a row of EventPruned: its note fits its fields, and is signed.
func (w *walk) prunedNote(seq int64, id, fields string) {
	if w.signed == nil {
		return
	}
	_, s, err := parsePruned(seq, fields)
	if err != nil {
		w.report.add(Finding{Seq: seq, ID: id, Why: "its signed head: " + err.Error()})
		return
	}
	w.signed.isSigned(s, Finding{Seq: seq, ID: id}, fmt.Sprintf("the signed head in row %d", seq))
}

// isSigned reports whether s has a valid signature, and otherwise notes what is wrong with it.
func (c *signedCheck) isSigned(s signedHead, at Finding, name string) bool {
	why := c.keys.check(s)
	if why == "" {
		return true
	}
	other, isOther := strings.CutPrefix(why, anotherKey)
	if isOther && c.anyKey {
		if len(c.names) < maxFindings && !slices.Contains(c.names, other) {
			c.names = append(c.names, other)
		}
		return true
	}
	if c.unkept != "" && isOther {
		why = "cannot be checked, because " + c.unkept
	}
	place, _, _ := strings.Cut(name, " row ")
	for i := range c.faults {
		// An export chooses the names in it: their number is bounded, and with it the time to compare them.
		if f := &c.faults[i]; f.why == place+why || i == maxFindings-1 {
			f.more++
			return false
		}
	}
	at.Why = name + " " + why
	c.faults = append(c.faults, signatureFault{why: place + why, first: at})
	return false
}

// end adds findings for signed heads that are not in rows, and for signatures.
func (c *signedCheck) end(w *walk) {
	if c == nil {
		return
	}
	for _, s := range c.file {
		c.isSigned(s, Finding{Seq: s.seq}, fmt.Sprintf("audit.checkpoints: the signed head of row %d", s.seq))
		w.line(headLine{head: s.head, state: lineHead}, "audit.checkpoints")
	}
	c.keptHeads(w)
	if c.rows > 0 && !c.exists {
		w.report.add(Finding{Why: "audit.checkpoints is missing, and rows have signed heads"})
	}
	c.result(w)
}

// keptHeads compares the heads that were kept elsewhere with the rows. One of a row that was pruned proves nothing, and
// a log that agrees with none of them is not held to anything: who has the key could have pruned what was rewritten.
func (c *signedCheck) keptHeads(w *walk) {
	for _, s := range c.kept {
		if !c.isSigned(s, Finding{Seq: s.seq}, fmt.Sprintf("the kept head of row %d", s.seq)) {
			continue
		}
		if s.seq <= w.gone && w.at[s.seq] == "" {
			c.keptPruned++
			continue
		}
		w.line(headLine{head: s.head, state: lineHead}, "the kept head")
	}
	if c.keptPruned > 0 && c.keptPruned == len(c.kept) {
		newest := slices.MaxFunc(c.kept, func(a, b signedHead) int { return cmp.Compare(a.seq, b.seq) })
		why := fmt.Sprintf("the log cannot be held to the kept head of row %d: rows 1 to %d were pruned, and no head of a "+
			"later row was kept", newest.seq, w.gone)
		w.report.add(Finding{Seq: newest.seq, Expected: newest.hash, Found: foundPruned, Why: why})
	}
}

// result adds findings for signatures, and what is signed.
func (c *signedCheck) result(w *walk) {
	for _, f := range c.faults {
		if f.more > 0 {
			f.first.Why += fmt.Sprintf(" (and %d more)", f.more)
		}
		w.report.add(f.first)
	}
	w.report.Signed, w.report.SignedBy = c.newest, c.by
	w.report.Kept, w.report.KeptPruned = len(c.kept)-c.keptPruned, c.keptPruned
}
