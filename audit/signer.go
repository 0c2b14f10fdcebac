package audit

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	sqlite3 "modernc.org/sqlite/lib"

	"golang.org/x/sys/unix"
)

// signedEvery is the number of rows after which the head of the log is signed: by the process that commits the row
// whose number is a multiple of it.
const signedEvery = 1000

// maxSignedHeads is the number of bytes that are read of audit.checkpoints: 200 million rows.
const maxSignedHeads = 64 << 20

// signedHeadsPath returns the file that has a copy of every signed head.
func signedHeadsPath(db string) string { return filepath.Join(filepath.Dir(db), "audit.checkpoints") }

// headSigner signs heads for one batchWriter. A head that cannot be signed, for example because the home is full,
// delays and fails nothing: the next one stands for its rows too.
type headSigner struct {
	path   string // of the database
	source Source // of its rows
	key    *signKey
}

// isDue reports whether the head is signed behind rows, the first of which has the number after newest.
func (s *headSigner) isDue(newest int64, rows []*Row) bool {
	if s == nil {
		return false
	}
	if (newest+int64(len(rows)))/signedEvery > newest/signedEvery {
		return len(rows) > 0
	}
	for _, r := range rows {
		if r.Event == EventSessionEnded {
			return true
		}
	}
	return false
}

// row returns the row that has the signed head.
func (s *headSigner) row(newest head) (*Row, error) {
	if s.key == nil {
		var err error
		if s.key, err = makeKey(s.path); err != nil {
			return nil, err
		}
	}
	signed, err := s.key.sign(newest)
	if err != nil {
		return nil, err
	}
	// Before the row is committed: a log that has the row has the file.
	f, err := openSignedHeads(s.path)
	if err != nil {
		return nil, err
	}
	if err := f.Close(); err != nil {
		return nil, err
	}
	// It has the time of the row that it signs: the process that adopts a session's rows may have another clock.
	fields := map[string]any{checkpointField: signed}
	return &Row{TS: newest.ts, Event: EventCheckpoint, Source: s.source, Fields: fields}, nil
}

// checkpointField is the name of the field that has the signed head.
const checkpointField = "checkpoint"

func openSignedHeads(db string) (*os.File, error) {
	return os.OpenFile(signedHeadsPath(db), os.O_WRONLY|os.O_APPEND|os.O_CREATE|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0o600)
}

// keep appends the signed head of a committed row to the file. One write appends all of it or nothing, whatever other
// processes append. If it fails, the row has the head.
func (s *headSigner) keep(r *Row) {
	signed, _ := r.Fields[checkpointField].(string)
	f, err := openSignedHeads(s.path)
	if err != nil {
		return
	}
	_, _ = f.WriteString(signed + "\n")
	_ = f.Close()
}

// signHead adds the row with the signed head h behind rows, of which newest is the number of the row before, if it is
// due. It returns the new head. A database that does not accept the row, because of a constraint of someone else's,
// accepts rows all the same.
func (t *batchWriter) signHead(h head, newest int64, rows []*Row) (head, error) {
	t.signed = nil
	if !t.signer.isDue(newest, rows) {
		return h, nil
	}
	r, err := t.signer.row(h)
	if err != nil {
		return h, nil //nolint:nilerr // see headSigner
	}
	next, err := t.insertRow(h, r)
	if code, ok := codeOf(err); ok && code&0xff == sqlite3.SQLITE_CONSTRAINT {
		return h, nil
	}
	if err == nil {
		t.signed = r
	}
	return next, err
}

// readSignedHeads reads audit.checkpoints. rest is what is not a signed note.
func readSignedHeads(db string) (notes []string, rest string, exists bool, err error) {
	f, err := os.OpenFile(signedHeadsPath(db), os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, "", false, nil
	}
	if err != nil {
		return nil, "", false, fmt.Errorf("read audit.checkpoints: %w", err)
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, maxSignedHeads))
	if err != nil {
		return nil, "", true, fmt.Errorf("read audit.checkpoints: %w", err)
	}
	notes, rest = splitNotes(string(raw))
	return notes, rest, true, nil
}
