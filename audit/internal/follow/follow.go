// Package follow shows the rows of a log as they are written, whatever becomes of the file meanwhile. [Follow] is all
// there is to call: follow.go finds out which file to read, and seen.go which of its rows are new.
package follow

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/ALRubinger/aileron/audit/internal/chain"
	"github.com/ALRubinger/aileron/audit/internal/table"
)

// Follow polls every followSoon after it has found rows, because more are likely to come, and less often with each time
// that it finds none, down to once in followEvery.
const (
	followSoon  = 20 * time.Millisecond
	followEvery = 100 * time.Millisecond
)

// nextPoll returns when to poll again, after it was found whether there are new rows.
func nextPoll(every time.Duration, found bool) time.Duration {
	if found {
		return followSoon
	}
	return min(2*every, followEvery)
}

// followSettle is the interval at which Follow looks for journals of sessions that are gone. Those of running sessions
// are folded without it.
const followSettle = time.Second

// Chunk is how many rows Follow reads before it shows them. A reader holds back checkpoints of the write-ahead
// log, so none is open while a terminal blocks.
const Chunk = 256

// Notice is what Follow reports besides rows: the log was replaced, or cannot be read.
type Notice struct {
	Text string
	Err  error // why the log, or a row, cannot be read; nil: it can
}

// Source is the log that is followed.
type Source struct {
	Path   string
	Filter table.Filter
	Open   func() (*table.Database, error) // opens it for reading
	Settle func()                          // adds the last rows of sessions that are gone to it
}

// Follow calls show for the selected rows of the log (the newest Filter.Limit of them if Newest is set), and then for
// each new row, of any process, until ctx ends; then it returns nil. It calls notice, unless it is nil, when the log is
// another one or cannot be read. Filter.NoIntents is for the first rows alone.
func Follow(ctx context.Context, from Source, show func(chain.Row) error, notice func(Notice)) error {
	if !from.Filter.Newest {
		from.Filter.Limit = 0
	}
	f := follower{Source: from, show: show, notice: notice}
	defer f.close()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for every := followEvery; ; {
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
		}
		before := f.cursor
		err := f.poll(ctx)
		var failed showError
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.As(err, &failed):
			return failed.error
		case err != nil && !f.began:
			return fmt.Errorf("read the audit log: %w", err)
		case err != nil:
			f.close() // a new connection may be able to read it
			f.notify(Notice{"audit.db cannot be read: trying again", err})
		}
		every = nextPoll(every, f.cursor != before)
		timer.Reset(every)
	}
}

// showError is an error of show.
type showError struct{ error }

// follower is the state of one Follow.
type follower struct {
	Source
	show   func(chain.Row) error
	notice func(Notice)

	log        *table.Database // nil: none is open
	file       os.FileInfo     // of log
	sidecars   [len(table.Sidecars)]os.FileInfo
	leaving    bool      // file is no longer at path, and is read for the last time
	lastNotice string    // the current notice
	settled    time.Time // when journals of killed sessions were looked for
	began      bool      // the first rows were shown

	cursor  int64    // the rows up to this one were read
	highest int64    // the highest cursor so far
	seen    seenRows // the rows that were read
}

// poll shows new rows.
func (f *follower) poll(ctx context.Context) error {
	if f.log == nil {
		if opened, err := f.open(ctx); err != nil || !opened {
			return err
		}
	}
	if time.Since(f.settled) >= followSettle {
		f.settled = time.Now()
		f.Settle()
	}
	there, same := f.inPlace()
	err := f.read(ctx)
	if table.NoTable(err) { // it is being created
		f.close()
		return nil
	}
	if err != nil {
		return err
	}
	switch {
	case same:
		f.leaving = false
		f.notify(Notice{})
	case !there:
		f.notify(Notice{Text: "audit.db was removed: waiting for a new one"})
	case !f.leaving: // a commit under way may still go to the old file
		f.leaving = true
	default:
		f.close()
		return f.poll(ctx)
	}
	return nil
}

// open opens the log at path, unless there is none or it is being replaced.
func (f *follower) open(ctx context.Context) (opened bool, err error) {
	before, err := os.Stat(f.Path)
	if errors.Is(err, fs.ErrNotExist) {
		if f.began {
			f.notify(Notice{Text: "audit.db was removed: waiting for a new one"})
		}
		return false, nil
	}
	l, err := f.Open()
	if err != nil {
		return false, err
	}
	l.SQL().SetMaxOpenConns(1) // a later connection might open another file
	newest, err := l.Newest(ctx)
	now, gone := os.Stat(f.Path)
	if table.NoTable(err) || gone != nil || !os.SameFile(before, now) {
		return false, l.Close() // it is being created, or replaced again
	}
	if err != nil {
		return false, errors.Join(err, l.Close())
	}
	another := f.replaced(now)
	f.log, f.file, f.leaving = l, now, false
	for i, suffix := range table.Sidecars {
		f.sidecars[i], _ = os.Stat(f.Path + suffix) // nil: it is not compared
	}
	if !f.began {
		return true, f.begin(ctx, newest.Seq)
	}
	return true, f.goBack(ctx, !another)
}

// replaced reports whether the file is another one than before, and sends the notice.
func (f *follower) replaced(now os.FileInfo) bool {
	if f.file == nil || os.SameFile(f.file, now) {
		return false
	}
	f.notify(Notice{Text: "audit.db was replaced: following the new file"})
	f.lastNotice = ""
	return true
}

// goBack calls rewind, and sends a notice if the same file has lost rows.
func (f *follower) goBack(ctx context.Context, same bool) error {
	before := f.cursor
	after, err := f.rewind(ctx)
	if err == nil && same && after < before {
		const text = "audit.db does not have row %d any more: following it from row %d on"
		f.notify(Notice{Text: fmt.Sprintf(text, before, after+1)})
		f.lastNotice = ""
	}
	return err
}

// inPlace reports whether there is a file at path, and whether it and its write-ahead log are the open ones.
func (f *follower) inPlace() (there, same bool) {
	now, err := os.Stat(f.Path)
	if err != nil {
		return false, false
	}
	for i, suffix := range table.Sidecars {
		side, err := os.Stat(f.Path + suffix)
		if f.sidecars[i] != nil && (err != nil || !os.SameFile(side, f.sidecars[i])) {
			return true, false
		}
	}
	return true, os.SameFile(now, f.file)
}

// begin shows the rows up to newest.
func (f *follower) begin(ctx context.Context, newest int64) error {
	if err := f.seen.load(ctx, f.log, newest); err != nil {
		return err
	}
	filter := f.Filter
	if filter.ThroughSeq = newest; newest > 0 {
		if err := f.log.EachRow(ctx, filter, f.print); err != nil {
			return err
		}
	}
	f.cursor, f.highest, f.began = newest, newest, true
	f.Filter.NoIntents = false
	return nil
}

// read shows the rows behind the cursor. If the log no longer has the row at the cursor, its rows were replaced.
func (f *follower) read(ctx context.Context) error {
	// Drop the page cache: the file may no longer have what it holds.
	_, _ = f.log.SQL().ExecContext(ctx, "PRAGMA shrink_memory")
	var hash string
	err := f.log.SQL().QueryRowContext(ctx, table.SelectHash, f.cursor).Scan(&hash)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	if f.cursor > 0 && !f.seen.has(hash) && !f.wasPruned(ctx, err != nil) {
		if err := f.goBack(ctx, true); err != nil {
			return err
		}
	}
	for {
		rows, err := f.chunk(ctx)
		for _, r := range rows {
			if err := f.print(r); err != nil {
				return err
			}
		}
		if err != nil || len(rows) < Chunk {
			return err
		}
	}
}
