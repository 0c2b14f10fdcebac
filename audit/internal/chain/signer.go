package chain

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// SignedEvery is the number of rows after which the head of the log is signed: by the process that commits the row
// whose number is a multiple of it.
const SignedEvery = 1000

// maxSignedHeads is the number of bytes that are read of audit.checkpoints: 200 million rows.
const maxSignedHeads = 64 << 20

// SignedHeadsPath returns the file that has a copy of every signed head.
func SignedHeadsPath(db string) string { return filepath.Join(filepath.Dir(db), "audit.checkpoints") }

// HeadSigner signs heads for one Writer. A head that cannot be signed, for example because the home is full,
// delays and fails nothing: the next one stands for its rows too.
type HeadSigner struct {
	Path   string // of the database
	Source Source // of its rows
	key    *SignKey
	file   *os.File // audit.checkpoints
}

// IsDue reports whether the head is signed behind a row whose number is seq.
func (s *HeadSigner) IsDue(seq int64, event Event) bool {
	return s != nil && (seq%SignedEvery == 0 || event == EventSessionEnded)
}

// Prepare makes Row need no file that is not open. What fails now is tried again by Row.
func (s *HeadSigner) Prepare() {
	if s.key, _ = ReadKey(KeyPath(s.Path)); s.key != nil {
		_ = s.openFile()
	}
}

// Close closes the file. It accepts nil.
func (s *HeadSigner) Close() {
	if s != nil && s.file != nil {
		_ = s.file.Close()
		s.file = nil
	}
}

// openFile opens the file at the path, unless it is open already.
func (s *HeadSigner) openFile() error {
	if s.file != nil {
		now, err := os.Stat(SignedHeadsPath(s.Path))
		is, failed := s.file.Stat()
		if err == nil && failed == nil && os.SameFile(now, is) {
			return nil
		}
		s.Close()
	}
	f, err := os.OpenFile(SignedHeadsPath(s.Path),
		os.O_WRONLY|os.O_APPEND|os.O_CREATE|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0o600)
	s.file = f
	return err
}

// HasSigned reports whether a signed head was kept of the log, so that rows have signed heads.
func HasSigned(db string) bool {
	info, err := os.Lstat(SignedHeadsPath(db))
	return err == nil && info.Size() > 0
}

// Row returns the row that has the signed head.
func (s *HeadSigner) Row(newest Head) (*Row, error) {
	if s.key == nil {
		var err error
		if s.key, err = MakeKey(s.Path); err != nil {
			return nil, err
		}
	}
	signed, err := s.key.Sign(newest)
	if err != nil {
		return nil, err
	}
	// Before the row is committed: a log that has the row has the file.
	if err := s.openFile(); err != nil {
		return nil, err
	}
	// It has the time of the row that it signs: the process that adopts a session's rows may have another clock.
	fields := map[string]any{CheckpointField: signed, EveryField: SignedEvery}
	return &Row{TS: newest.Ts, Event: EventCheckpoint, Source: s.Source, Fields: fields}, nil
}

// CheckpointField is the name of the field that has the signed head.
const CheckpointField = "checkpoint"

// Keep appends the signed head of a committed row to the file. One write appends all of it or nothing, whatever other
// processes append. If it fails, the row has the head.
func (s *HeadSigner) Keep(r *Row) {
	signed, _ := r.Fields[CheckpointField].(string)
	if s.openFile() == nil {
		_, _ = s.file.WriteString(signed + "\n")
	}
}

// readSignedHeads reads audit.checkpoints. rest is what is not a signed note.
func readSignedHeads(db string) (notes []string, rest string, exists bool, err error) {
	f, err := os.OpenFile(SignedHeadsPath(db), os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
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
	notes, rest = SplitNotes(string(raw))
	return notes, rest, true, nil
}

// CutSignedHeads drops the signed heads of rows before the last one that was removed from audit.checkpoints, which so
// stays bounded. A head that another process appends meanwhile may be lost: its row has it.
func CutSignedHeads(db string, last int64) error {
	notes, rest, exists, err := readSignedHeads(db)
	if err != nil || !exists || rest != "" {
		return err // what is not a signed head stays: Verify names it
	}
	var kept strings.Builder
	for _, text := range notes {
		s, err := ParseSignedHead(text)
		if err != nil {
			return err
		}
		if s.Seq >= last {
			kept.WriteString(text + "\n")
		}
	}
	work := SignedHeadsPath(db) + ".new"
	f, err := os.OpenFile(work, os.O_WRONLY|os.O_CREATE|os.O_TRUNC|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(kept.String())
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, os.Remove(work))
	}
	return os.Rename(work, SignedHeadsPath(db))
}
