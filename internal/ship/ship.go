// Package ship copies the audit log of a home to where others can ask for it. [Open] opens a log, and [Shipper.Once]
// and [Shipper.Follow] send its rows to a [Target], in their order and at least once:
//
//	s, err := ship.Open(home, target, ship.Options{Report: print})
//	if err != nil {
//		return err
//	}
//	defer s.Close()
//	return s.Follow(ctx)
//
// The log stays the authority: nothing is removed from it, and nothing that writes it waits for a target. Where to go
// on is what the target has, so that neither a restart nor a second shipper leaves out a row or sends one twice for
// good. A target whose newest row is not a row of the log is refused: one of both was changed, or is another one's.
//
// Targets are in internal/postgres, internal/jetstream and internal/otlp.
package ship

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/ALRubinger/aileron/audit"
)

// Bounds of a batch.
const (
	maxRows  = 4096
	maxBytes = 8 << 20
)

// Origin is the installation whose log it is.
type Origin struct {
	ID  string // of its key
	Key string // the public key that signs its heads
}

// Gap is rows that a log does not have.
type Gap struct {
	First, Last int64
	Hash        string // of the last one, to which the next row is chained
	Reason      string // GapPruned or GapMissing
}

// The reasons of a gap.
const (
	GapPruned  = "pruned"  // they were removed from the beginning of the log before they were shipped
	GapMissing = "missing" // they are missing inside the log
)

// Batch is rows that follow the newest one that a target has.
type Batch struct {
	Origin Origin
	After  audit.Head // the newest row that the target has; number 0: none
	Gap    *Gap       // between After and the first row; nil: there is none
	Rows   []audit.StoredRow
	Note   string // the signed head, if the last row is the newest of the log; "" otherwise
}

// Head returns the last row.
func (b *Batch) Head() audit.Head {
	last := &b.Rows[len(b.Rows)-1]
	return audit.Head{Seq: last.Seq, Hash: last.Hash}
}

// Target is where rows are sent to. An error that wraps a [RefusedError] is final; after any other one, the shipper
// asks for the head again.
type Target interface {
	// Head returns the newest row of the origin that the target has, and connects to it if needed.
	Head(ctx context.Context, o Origin) (audit.Head, error)
	// Send adds the rows of a batch, all or none, and keeps none of them. The error is ErrMoved if the newest
	// row is not b.After any more.
	Send(ctx context.Context, b *Batch) error
	// Close ends the connection. Head connects again.
	Close()
	// String returns the name of the target, without credentials.
	String() string
}

// ErrMoved is returned by a target that another shipper has sent rows to.
var ErrMoved = errors.New("another shipper has sent rows of this log")

// RefusedError is returned when trying again cannot help.
type RefusedError struct{ Err error }

func (e *RefusedError) Error() string { return e.Err.Error() }

// Unwrap returns the reason.
func (e *RefusedError) Unwrap() error { return e.Err }

// Refusef returns a RefusedError with a formatted reason.
func Refusef(format string, args ...any) error { return &RefusedError{fmt.Errorf(format, args...)} }

// Sent counts what a shipper has sent.
type Sent struct {
	Rows   int64  `json:"rows"`
	Gaps   int    `json:"gaps"`
	Newest int64  `json:"newest"` // the row that the target has
	Head   string `json:"head"`   // its hash
}

// Shipper sends the rows of one log to one target.
type Shipper struct {
	path   string
	origin Origin
	target Target
	opts   Options
	log    *audit.Log  // nil: it is not open
	file   os.FileInfo // of log
	sent   Sent
	after  *audit.Head       // what the target has; nil: it has to be asked
	warned bool              // that heads cannot be signed
	rows   []audit.StoredRow // of the batch before: its memory
	hashed []byte            // a buffer
}

// Open prepares to ship the log of a home. The log may be created later.
func Open(home string, to Target, o Options) (*Shipper, error) {
	path := filepath.Join(home, "audit.db")
	key, err := audit.PublicKey(path)
	if err != nil {
		return nil, err
	}
	id, ok := audit.OriginOf(key)
	if !ok {
		return nil, fmt.Errorf("ship the audit log: its key has the name %q", key)
	}
	return &Shipper{path: path, origin: Origin{id, key}, target: to, opts: o}, nil
}

// Origin returns whose log is shipped.
func (s *Shipper) Origin() Origin { return s.origin }

// Sent returns what was sent so far.
func (s *Shipper) Sent() Sent { return s.sent }

// Close closes the log and the target.
func (s *Shipper) Close() {
	s.closeLog()
	s.target.Close()
}

func (s *Shipper) closeLog() {
	if s.log != nil {
		_ = s.log.Close() // it was read only
		s.log = nil
	}
}

// Once sends all rows that the log has.
func (s *Shipper) Once(ctx context.Context) (Sent, error) {
	for {
		more, err := s.step(ctx)
		if errors.Is(err, ErrMoved) {
			continue
		}
		if err != nil || !more {
			return s.sent, err
		}
	}
}

// step sends the next batch, and reports whether there may be more rows.
func (s *Shipper) step(ctx context.Context) (more bool, err error) {
	if err := s.openLog(); err != nil || s.log == nil {
		return false, err
	}
	if s.after == nil {
		head, err := s.target.Head(ctx, s.origin)
		if err == nil {
			err = s.holds(ctx, head)
		}
		if err != nil {
			return false, err
		}
		s.at(head)
	}
	b, more, err := s.next(ctx)
	if err != nil || b == nil {
		return false, err
	}
	if err := s.target.Send(ctx, b); err != nil {
		s.after = nil
		return false, err
	}
	if b.Gap != nil {
		s.sent.Gaps++
	}
	s.sent.Rows += int64(len(b.Rows))
	s.at(b.Head())
	return more, nil
}

// at notes the newest row that the target has.
func (s *Shipper) at(head audit.Head) {
	s.after, s.sent.Newest, s.sent.Head = &head, head.Seq, head.Hash
}

// holds returns an error unless the log has, or had, the newest row of the target.
func (s *Shipper) holds(ctx context.Context, head audit.Head) error {
	if head.Seq < 0 || (head.Seq > 0) != (head.Hash != "") { // the hash of a row that the log lacks is "", too
		return Refusef("%s has %d as the number of its newest row of this log (origin %s), with the hash %q", s.target,
			head.Seq, s.origin.ID, head.Hash)
	}
	before, newest, err := s.log.Ends(ctx)
	if err != nil || head.Seq < before.Seq || head == before {
		return err // of the rows that were pruned, the newest alone can be compared
	}
	hash, err := s.log.HashOf(ctx, head.Seq)
	switch {
	case err != nil || hash == head.Hash:
		return err
	case head.Seq > newest.Seq:
		return Refusef("%s has row %d of this log (origin %s), which ends at row %d: the log was cut, restored or begun "+
			"again", s.target, head.Seq, s.origin.ID, newest.Seq)
	}
	return Refusef("%s has another row %d of this log (origin %s): one of them was changed, or two logs have one key",
		s.target, head.Seq, s.origin.ID)
}

// errFull ends the reading of rows.
var errFull = errors.New("the batch is full")

// next returns the rows behind the newest one of the target, nil if there are none, and whether there are more.
func (s *Shipper) next(ctx context.Context) (b *Batch, more bool, err error) {
	_, newest, err := s.log.Ends(ctx)
	if err != nil || newest.Seq <= s.after.Seq {
		return nil, false, err
	}
	b = &Batch{Origin: s.origin, After: *s.after, Rows: s.rows[:0]}
	size, last, most := 0, b.After, maxBytes
	if t, ok := s.target.(interface{ MaxBytes() int }); ok {
		most = cmp.Or(t.MaxBytes(), most)
	}
	err = s.log.EachStored(ctx, b.After.Seq, maxRows, func(r *audit.StoredRow) error {
		if r.Seq > last.Seq+1 && len(b.Rows) > 0 {
			return errFull // the gap begins the next batch
		}
		if err := s.link(ctx, b, last, r); err != nil {
			return err
		}
		b.Rows, last = append(b.Rows, *r), audit.Head{Seq: r.Seq, Hash: r.Hash}
		if size += r.Size(); size >= most {
			return errFull
		}
		return nil
	})
	s.rows = b.Rows
	if err != nil && !errors.Is(err, errFull) {
		return nil, false, err
	}
	if len(b.Rows) == 0 {
		return nil, false, nil
	}
	if more = last.Seq < newest.Seq; !more {
		b.Note = s.sign(ctx, last)
	}
	return b, more, nil
}

// link checks that a row is chained to the one before it, and notes a gap.
func (s *Shipper) link(ctx context.Context, b *Batch, last audit.Head, r *audit.StoredRow) error {
	var fits bool
	if fits, s.hashed = r.HasItsHash(s.hashed); !fits {
		return Refusef("row %d of the audit log does not have its hash", r.Seq)
	}
	if r.Seq == last.Seq+1 {
		if before := last.Hash; r.Prev != before && last.Seq > 0 {
			return Refusef("row %d of the audit log is not chained to the row before it", r.Seq)
		}
		return nil
	}
	b.Gap = &Gap{First: last.Seq + 1, Last: r.Seq - 1, Hash: r.Prev, Reason: GapMissing}
	before, _, err := s.log.Ends(ctx)
	if err == nil && before.Seq == b.Gap.Last {
		b.Gap.Reason = GapPruned
	}
	return err
}

// sign returns the signed head of the newest row, "" if it is another one by now, or cannot be signed.
func (s *Shipper) sign(ctx context.Context, last audit.Head) string {
	note, err := s.log.SignedHead(ctx)
	if err != nil {
		if !s.warned {
			s.opts.report("aileron: warning: rows are shipped without a signature: %v", err)
		}
		s.warned = true
		return ""
	}
	if h, _, err := audit.OpenSignedHead(note, []string{s.origin.Key}); err != nil || h != last {
		return ""
	}
	return note
}
