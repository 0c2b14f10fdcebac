package chain

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
)

// PrunedRows is what a row of EventPruned stands for: all rows of the log up to the one with the number Last. It is
// signed, as a signed head of that row with one line more.
type PrunedRows struct {
	First int64     `json:"first_seq"`
	Last  int64     `json:"last_seq"`
	Rows  int64     `json:"rows"`
	Hash  string    `json:"last_hash"` // of row Last: the next row is chained to it
	From  time.Time `json:"from"`      // of row First
	Until time.Time `json:"until"`     // of row Last
	Seq   int64     `json:"seq,omitempty"`
}

// Head returns the row that the first row of the log is chained to.
func (p *PrunedRows) Head() Head { return Head{Seq: p.Last, Hash: p.Hash} }

// prunedWord begins the line by which the note of EventPruned differs from every other signed head.
const prunedWord = "pruned"

// line returns the extension line of the note: the numbers of the rows, how many they were, and their times.
func (p *PrunedRows) line() string {
	return fmt.Sprintf("%s %d %d %d %s %s\n", prunedWord, p.First, p.Last, p.Rows,
		p.From.UTC().Format(TimeFormat), p.Until.UTC().Format(TimeFormat))
}

// SignPruned returns the note of a row of EventPruned.
func (k *SignKey) SignPruned(p *PrunedRows) (string, error) {
	text, err := CheckpointText(k.Signer.Name(), p.Head())
	if err != nil {
		return "", err
	}
	return k.signText(text + p.line())
}

// errNotPruned is returned for a note that is not the one of EventPruned: any signed head of the log has the same first
// lines.
var errNotPruned = errors.New("it does not say which rows were pruned")

// ParsePruned parses the fields of a row of EventPruned, without the signature of its note.
func ParsePruned(seq int64, fields string) (p PrunedRows, s signedHead, err error) {
	var f struct {
		Checkpoint string
		First      int64 `json:"first_seq"`
		Last       int64 `json:"last_seq"`
		Rows       int64
	}
	_ = json.Unmarshal([]byte(fields), &f) // if it fails, there is no note
	if s, err = ParseSignedHead(f.Checkpoint); err != nil {
		return p, s, err
	}
	body, _, _ := strings.Cut(s.Note, "\n\n")
	lines := strings.Split(body, "\n")
	if len(lines) != 4 {
		return p, s, errNotPruned
	}
	p.Seq, p.Hash = seq, s.Hash
	var from, until string
	_, err = fmt.Sscanf(lines[3], prunedWord+" %d %d %d %s %s", &p.First, &p.Last, &p.Rows, &from, &until)
	if err != nil {
		return p, s, errNotPruned
	}
	var failed error
	p.From, err = time.Parse(TimeFormat, from)
	p.Until, failed = time.Parse(TimeFormat, until)
	if errors.Join(err, failed) != nil || p.line() != lines[3]+"\n" || p.Last != s.Seq || p.Last >= seq ||
		p.First < 1 || p.First > p.Last || p.First != f.First || p.Last != f.Last || p.Rows != f.Rows {
		return p, s, errNotPruned
	}
	return p, s, nil
}
