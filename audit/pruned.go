package audit

import (
	"context"
	"database/sql"
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

// head returns the row that the first row of the log is chained to.
func (p *PrunedRows) head() head { return head{seq: p.Last, hash: p.Hash} }

// prunedWord begins the line by which the note of EventPruned differs from every other signed head.
const prunedWord = "pruned"

// line returns the extension line of the note: the numbers of the rows, how many they were, and their times.
func (p *PrunedRows) line() string {
	return fmt.Sprintf("%s %d %d %d %s %s\n", prunedWord, p.First, p.Last, p.Rows,
		p.From.UTC().Format(timeFormat), p.Until.UTC().Format(timeFormat))
}

// signPruned returns the note of a row of EventPruned.
func (k *signKey) signPruned(p *PrunedRows) (string, error) {
	text, err := checkpointText(k.signer.Name(), p.head())
	if err != nil {
		return "", err
	}
	return k.signText(text + p.line())
}

// errNotPruned is returned for a note that is not the one of EventPruned: any signed head of the log has the same first
// lines.
var errNotPruned = errors.New("it does not say which rows were pruned")

// parsePruned parses the fields of a row of EventPruned, without the signature of its note.
func parsePruned(seq int64, fields string) (p PrunedRows, s signedHead, err error) {
	var f struct {
		Checkpoint string
		First      int64 `json:"first_seq"`
		Last       int64 `json:"last_seq"`
		Rows       int64
	}
	_ = json.Unmarshal([]byte(fields), &f) // if it fails, there is no note
	if s, err = parseSignedHead(f.Checkpoint); err != nil {
		return p, s, err
	}
	body, _, _ := strings.Cut(s.note, "\n\n")
	lines := strings.Split(body, "\n")
	if len(lines) != 4 {
		return p, s, errNotPruned
	}
	p.Seq, p.Hash = seq, s.hash
	var from, until string
	_, err = fmt.Sscanf(lines[3], prunedWord+" %d %d %d %s %s", &p.First, &p.Last, &p.Rows, &from, &until)
	if err != nil {
		return p, s, errNotPruned
	}
	var failed error
	p.From, err = time.Parse(timeFormat, from)
	p.Until, failed = time.Parse(timeFormat, until)
	if errors.Join(err, failed) != nil || p.line() != lines[3]+"\n" || p.Last != s.seq || p.Last >= seq ||
		p.First < 1 || p.First > p.Last || p.First != f.First || p.Last != f.Last || p.Rows != f.Rows {
		return p, s, errNotPruned
	}
	return p, s, nil
}

// prunedRows returns what the newest row of EventPruned with a valid signature stands for; nil if there is none. A log
// that has its first row was not pruned.
func (l *Log) prunedRows(ctx context.Context, keys *keyring) (*PrunedRows, error) {
	first, err := l.firstHead(ctx)
	if err != nil || first.seq <= 1 {
		return nil, err
	}
	// Not by the index, which is no evidence: it must not hide the row.
	const query = "SELECT seq, fields FROM events WHERE event = ? ORDER BY seq DESC"
	rows, err := l.database().QueryContext(ctx, query, EventPruned)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var seq int64
		var fields string
		if err := rows.Scan(&seq, &fields); err != nil {
			return nil, err
		}
		p, s, err := parsePruned(seq, fields)
		if err == nil && keys.check(s) == "" {
			return &p, nil
		}
	}
	return nil, rows.Err()
}

// firstHead returns the number of the first row of the log, and the hash of the row before it; seq 0 if there is none.
func (l *Log) firstHead(ctx context.Context) (first head, err error) {
	const query = "SELECT seq, prev_hash FROM events ORDER BY seq LIMIT 1"
	err = l.database().QueryRowContext(ctx, query).Scan(&first.seq, &first.hash)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return first, err
}

// wasPruned reports whether the row of h, which the log does not have, is one that a row of EventPruned stands for. The
// signature of this installation is what makes that different from a row that was removed.
func (l *Log) wasPruned(ctx context.Context, h head) bool {
	first, err := l.firstHead(ctx)
	if err != nil || h.seq < 1 || h.seq >= first.seq {
		return false
	}
	k, err := readKey(keyPath(l.path))
	if err != nil {
		return false
	}
	keys, err := newKeyring([]string{k.public})
	if err != nil {
		return false
	}
	p, err := l.prunedRows(ctx, keys)
	if err != nil || p == nil || h.seq > p.Last || first.seq > p.Last+1 {
		return false
	}
	// Of the row before the first one the hash is known; of those before it only that they were there.
	return h.seq < first.seq-1 || h.hash == first.hash && (h.seq < p.Last || h.hash == p.Hash)
}

// excuses reports whether a breach is only that the row was pruned. This process then knows no row of the log.
func (l *Log) excuses(b *breach) bool {
	if b.reason != reasonRowMissing || !l.wasPruned(context.Background(), b.expected) {
		return false
	}
	l.known = head{}
	if l.tx != nil {
		l.tx.forget()
	}
	return true
}
