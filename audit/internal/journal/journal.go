// Package journal is the file in which a session's rows are durable before they are in the database. It knows files and
// frames: what a row is, and where it goes, is left to the caller.
//
// [Create] makes the journal of a session, [Journal.Add] writes a row in it, and [Journal.Collect] reads what is to be
// moved to the database, of which [Journal.Advance] takes note. [Read] reads the journal of another session.
package journal

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ALRubinger/aileron/audit/internal/chain"
)

// A journal is the file to which a session appends its rows. It is beside the database and has mode 0600. A row is
// durable when its frame is written: it survives SIGKILL, and with durability "full" a power cut. The session folds
// its journal into the database a moment later. While the database cannot be written, the journal keeps the rows.
//
// Space is allocated before it is needed: on a full disk, no intent is accepted any more, and what is left is for
// rows of what has begun. Space of folded frames is released.

const (
	// FoldDelay is how long a row may be only in the journal before it is folded. Many rows are folded sooner.
	FoldDelay = 50 * time.Millisecond
	// foldSoon is the number of unfolded bytes at which rows are folded without delay.
	foldSoon = 1 << 20
	// foldFirst is the number of unfolded bytes at which rows that are waited for wait until fewer are left.
	foldFirst = 4 << 20
	// maxUnfolded is the number of unfolded bytes beyond which no intent is accepted.
	maxUnfolded = 64 << 20
	// Ahead is the space that is always allocated behind the last frame, and Step by how much more is
	// allocated at a time.
	Ahead = 64 << 10
	Step  = 256 << 10
	// journalEnd is the part of the allocated space that only session.ended may use.
	journalEnd = 4 << 10
	// maxBatch is the size from which on a buffer is not kept for the next batch.
	maxBatch = 1 << 20
)

// The reasons for which a journal does not accept a row.
var (
	errJournalFull = errors.New("the space of the journal is used up")
	ErrClosed      = errors.New("it is closed, or open for reading")
	ErrUnfolded    = errors.New("too many rows wait to be moved from the journal to audit.db")
)

// Journal is the journal of a running session. The first goroutine that adds a row writes it, and all rows that were
// added meanwhile are written together afterwards (group commit).
type Journal struct {
	Sync        bool // durability "full"
	FoldFirst   int64
	MaxUnfolded int64
	Behind      atomic.Bool        // there are more unfolded bytes than FoldFirst; set with Mu locked
	room        chan struct{}      // closed by Tried; nil: nothing waits for it
	Wake        func(soon bool)    // called when there is something to fold
	Failed      func([]*chain.Row) // called with the rows of a batch that nothing waits for, if it cannot be written
	Allocate    func(f *os.File, from, size int64) error

	Mu        sync.Mutex
	next      batch // its rows are not written yet
	spare     batch // its slices are not in use
	inflight  int64 // the bytes that are being written
	free      []*waiter
	writing   bool // a goroutine writes, or replaces the file
	closed    bool
	File      *os.File
	Path      string
	info      os.FileInfo // of file
	Allocated int64       // the size up to which the file has space
	Written   int64       // the end of the last frame
	Folded    int64       // the end of the last frame that is in the database
	Rows      int         // in frames that are not folded
	sum       [sumSize]byte
	oldest    time.Time // when the first frame that is not folded was written

	failing bool // the last batch could not be written

	// Owned by the leader of the log's writer.
	Session    string
	Registered bool   // the database knows the journal
	Former     string // the name of the journal that this one replaces, until the database knows that
	Punched    int64  // the space before it was released
	Spilled    bool   // its rows could not be folded at once, and are marked
	buf        []byte // the buffers of Collect
	Slab       []*foldRow
	Group      []*chain.Row
	Ends       []int64 // of the frames of group
}

// Add adds r and, if wait is set, waits until it is written. If ctx ends first, the row may or may not be written. A
// row that nothing waits for and that cannot be written is handed to failed.
func (j *Journal) Add(ctx context.Context, r *chain.Row, wait bool) error {
	j.Mu.Lock()
	if j.closed {
		j.Mu.Unlock()
		return ErrClosed
	}
	if err := j.queue(r, wait); err != nil {
		j.Mu.Unlock()
		return err
	}
	if !j.writing {
		j.writing = true
		// Let goroutines run that may have a row for this batch: a write costs more than a row.
		j.Mu.Unlock()
		runtime.Gosched()
		j.Mu.Lock()
		return j.lead()
	}
	if !wait {
		j.Mu.Unlock()
		return nil
	}
	return j.await(ctx)
}

// queue adds the frame of r to the next batch. j.Mu is locked.
func (j *Journal) queue(r *chain.Row, wait bool) error {
	if len(j.next.frames) == 0 {
		j.next.frames = append(j.next.frames, make([]byte, framePrefix)...)
	}
	start := len(j.next.frames)
	out, err := appendFrame(j.next.frames, r)
	if err == nil {
		err = j.reserve(j.Written+j.inflight+int64(len(out)-framePrefix), r.Event)
	}
	if err != nil {
		return err
	}
	j.next.frames = out
	if !wait {
		j.next.soon = append(j.next.soon, start)
	}
	return nil
}

// reserve makes sure that there is space up to end, for a row with the given event. If the disk is full, it denies
// intents, and leaves the end of the space to session.ended.
func (j *Journal) reserve(end int64, e chain.Event) error {
	if e == chain.EventProxyStarted && end-j.Folded > j.MaxUnfolded {
		return ErrUnfolded
	}
	err := j.grow(end)
	switch {
	case err == nil:
		return nil
	case e == chain.EventProxyStarted:
		return err
	case e == chain.EventSessionEnded && end <= j.Allocated, end <= j.Allocated-journalEnd:
		return nil
	}
	return fmt.Errorf("%w: %w", errJournalFull, err)
}

// grow allocates space, if there is less than Ahead behind end.
func (j *Journal) grow(end int64) error {
	if end+Ahead <= j.Allocated {
		return nil
	}
	step := max(Step, end+Ahead-j.Allocated)
	if err := j.Allocate(j.File, j.Allocated, step); err != nil {
		return fmt.Errorf("extend the journal: %w", err)
	}
	j.Allocated += step
	return nil
}

// Close accepts no more rows but those of AddLast, and waits until the others are written.
func (j *Journal) Close() {
	j.Mu.Lock()
	j.closed = true
	j.Mu.Unlock()
	j.Flush(context.Background())
}

// AddLast adds a row after close.
func (j *Journal) AddLast(r *chain.Row) error {
	j.Mu.Lock()
	if err := j.queue(r, true); err != nil {
		j.Mu.Unlock()
		return err
	}
	j.writing = true
	return j.lead()
}

// Flush waits until the rows that were added are written, or cannot be.
func (j *Journal) Flush(ctx context.Context) {
	j.Mu.Lock()
	if !j.writing {
		j.Mu.Unlock()
		return
	}
	_ = j.await(ctx)
}

// Unfolded returns the number of bytes that are not folded.
func (j *Journal) Unfolded() int64 {
	j.Mu.Lock()
	defer j.Mu.Unlock()
	return j.Written - j.Folded
}

// KeptRows returns how many rows of the journal are not in the database.
func (j *Journal) KeptRows() int {
	if j == nil {
		return 0
	}
	j.Mu.Lock()
	defer j.Mu.Unlock()
	return j.Rows
}

// NextFold returns a channel that is closed when the next rows are folded, or cannot be.
func (j *Journal) NextFold() <-chan struct{} {
	j.Mu.Lock()
	defer j.Mu.Unlock()
	if j.room == nil {
		j.room = make(chan struct{})
	}
	return j.room
}

// Tried wakes the goroutines that wait for NextFold, after a fold that advanced or failed. j.Mu is locked.
func (j *Journal) Tried() {
	j.Behind.Store(j.Written-j.Folded > j.FoldFirst)
	if j.room != nil {
		close(j.room)
		j.room = nil
	}
}
