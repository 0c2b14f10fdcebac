package audit

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// A journal is the file to which a session appends its rows. It is beside the database and has mode 0600. A row is
// durable when its frame is written: it survives SIGKILL, and with durability "full" a power cut. The session folds
// its journal into the database a moment later. While the database cannot be written, the journal keeps the rows.
//
// Space is allocated before it is needed: on a full disk, no intent is accepted any more, and what is left is for
// rows of what has begun. Space of folded frames is released.

const (
	// foldDelay is how long a row may be only in the journal before it is folded. Many rows are folded sooner.
	foldDelay = 50 * time.Millisecond
	// foldSoon is the number of unfolded bytes at which rows are folded without delay.
	foldSoon = 1 << 20
	// foldFirst is the number of unfolded bytes at which rows that are waited for wait until fewer are left.
	foldFirst = 4 << 20
	// maxUnfolded is the number of unfolded bytes beyond which no intent is accepted.
	maxUnfolded = 64 << 20
	// journalAhead is the space that is always allocated behind the last frame, and journalStep by how much more is
	// allocated at a time.
	journalAhead = 64 << 10
	journalStep  = 256 << 10
	// journalEnd is the part of the allocated space that only session.ended may use.
	journalEnd = 4 << 10
	// maxBatch is the size from which on a buffer is not kept for the next batch.
	maxBatch = 1 << 20
)

// The reasons for which a journal does not accept a row.
var (
	errJournalFull = errors.New("the space of the journal is used up")
	errUnfolded    = errors.New("too many rows wait to be moved from the journal to audit.db")
)

// journal is the journal of a running session. The first goroutine that adds a row writes it, and all rows that were
// added meanwhile are written together afterwards (group commit).
type journal struct {
	sync        bool // durability "full"
	foldFirst   int64
	maxUnfolded int64
	behind      atomic.Bool     // there are more unfolded bytes than foldFirst; set with mu locked
	room        chan struct{}   // closed by tried; nil: nothing waits for it
	wake        func(soon bool) // called when there is something to fold
	failed      func([]*Row)    // called with the rows of a batch that nothing waits for, if it cannot be written
	allocate    func(f *os.File, from, size int64) error

	mu        sync.Mutex
	next      batch // its rows are not written yet
	spare     batch // its slices are not in use
	inflight  int64 // the bytes that are being written
	free      []*waiter
	writing   bool // a goroutine writes, or replaces the file
	closed    bool
	file      *os.File
	path      string
	info      os.FileInfo // of file
	allocated int64       // the size up to which the file has space
	written   int64       // the end of the last frame
	folded    int64       // the end of the last frame that is in the database
	rows      int         // in frames that are not folded
	sum       [sumSize]byte
	oldest    time.Time // when the first frame that is not folded was written

	failing bool // the last batch could not be written

	// Owned by the leader of the log's writer.
	session    string
	registered bool   // the database knows the journal
	former     string // the name of the journal that this one replaces, until the database knows that
	punched    int64  // the space before it was released
	spilled    bool   // its rows could not be folded at once, and are marked
	buf        []byte // the buffers of collect
	slab       []*foldRow
	group      []*Row
	ends       []int64 // of the frames of group
}

// add adds r and, if wait is set, waits until it is written. If ctx ends first, the row may or may not be written. A
// row that nothing waits for and that cannot be written is handed to failed.
func (j *journal) add(ctx context.Context, r *Row, wait bool) error {
	j.mu.Lock()
	if j.closed {
		j.mu.Unlock()
		return errClosed
	}
	if err := j.queue(r, wait); err != nil {
		j.mu.Unlock()
		return err
	}
	if !j.writing {
		j.writing = true
		// Let goroutines run that may have a row for this batch: a write costs more than a row.
		j.mu.Unlock()
		runtime.Gosched()
		j.mu.Lock()
		return j.lead()
	}
	if !wait {
		j.mu.Unlock()
		return nil
	}
	return j.await(ctx)
}

// queue adds the frame of r to the next batch. j.mu is locked.
func (j *journal) queue(r *Row, wait bool) error {
	if len(j.next.frames) == 0 {
		j.next.frames = append(j.next.frames, make([]byte, framePrefix)...)
	}
	start := len(j.next.frames)
	out, err := appendFrame(j.next.frames, r)
	if err == nil {
		err = j.reserve(j.written+j.inflight+int64(len(out)-framePrefix), r.Event)
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
func (j *journal) reserve(end int64, e Event) error {
	if e == EventProxyStarted && end-j.folded > j.maxUnfolded {
		return errUnfolded
	}
	err := j.grow(end)
	switch {
	case err == nil:
		return nil
	case e == EventProxyStarted:
		return err
	case e == EventSessionEnded && end <= j.allocated, end <= j.allocated-journalEnd:
		return nil
	}
	return fmt.Errorf("%w: %w", errJournalFull, err)
}

// grow allocates space, if there is less than journalAhead behind end.
func (j *journal) grow(end int64) error {
	if end+journalAhead <= j.allocated {
		return nil
	}
	step := max(journalStep, end+journalAhead-j.allocated)
	if err := j.allocate(j.file, j.allocated, step); err != nil {
		return fmt.Errorf("extend the journal: %w", err)
	}
	j.allocated += step
	return nil
}

// close accepts no more rows but those of addLast, and waits until the others are written.
func (j *journal) close() {
	j.mu.Lock()
	j.closed = true
	j.mu.Unlock()
	j.flush(context.Background())
}

// addLast adds a row after close.
func (j *journal) addLast(r *Row) error {
	j.mu.Lock()
	if err := j.queue(r, true); err != nil {
		j.mu.Unlock()
		return err
	}
	j.writing = true
	return j.lead()
}

// flush waits until the rows that were added are written, or cannot be.
func (j *journal) flush(ctx context.Context) {
	j.mu.Lock()
	if !j.writing {
		j.mu.Unlock()
		return
	}
	_ = j.await(ctx)
}

// unfolded returns the number of bytes that are not folded.
func (j *journal) unfolded() int64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.written - j.folded
}

// keptRows returns how many rows of the journal are not in the database.
func (j *journal) keptRows() int {
	if j == nil {
		return 0
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.rows
}
