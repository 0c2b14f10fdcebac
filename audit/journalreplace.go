package audit

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// gone reports whether the file has no name any more. The rows of a file that was moved with its home are kept.
func (j *journal) gone() bool {
	var st unix.Stat_t
	return unix.Fstat(int(j.file.Fd()), &st) != nil || st.Nlink == 0
}

// replaceJournal creates a new journal, because the old one was removed, replaced or changed, and queues the event that
// reports it. If whole is set, the rows that are not folded yet are moved to the new one; otherwise they are lost, and
// what is left of the old journal is kept as evidence.
func (l *Log) replaceJournal(found string, whole bool) error {
	j := l.journal
	fresh, err := createJournal(l.path, j.session, NewID(), l.known)
	if err != nil {
		return err
	}
	j.pause()
	defer j.resume()
	r := Row{Event: EventBroken, SessionID: l.opts.Session, Source: SourceLauncher, Reason: reasonJournalChanged}
	r.Fields = map[string]any{"file": j.name(), "offset": j.folded, "found": found}
	if !whole {
		r.Fields["lost"] = j.rows
		l.lose(j.rows)
		aside := journalKeptAside + NewID()
		if os.Rename(j.path, filepath.Join(filepath.Dir(j.path), aside)) == nil {
			r.Fields["kept_as"] = aside
		}
	} else if err := j.copyTo(fresh); err != nil {
		fresh.remove()
		return err
	}
	if l.broken == nil {
		l.broken = &r
	} else {
		l.broken.Fields["journal"] = found
	}
	_ = j.file.Close()
	j.adopt(fresh)
	return nil
}

// pause waits until no batch is being written, and keeps others from beginning.
func (j *journal) pause() {
	for {
		j.mu.Lock()
		if !j.writing {
			j.writing = true
			j.mu.Unlock()
			return
		}
		j.mu.Unlock()
		j.flush(context.Background())
	}
}

// resume ends pause, and writes the batch that waits.
func (j *journal) resume() {
	j.mu.Lock()
	_ = j.lead()
}

// copyTo adds the frames that are not folded to another journal. The journal is paused.
func (j *journal) copyTo(fresh *journal) error {
	frames := frameReader{file: j.file, at: j.folded, end: j.written}
	for {
		body, err := frames.next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		out := endFrame(append(make([]byte, framePrefix+frameHead), body...), framePrefix)
		sum := fresh.sum
		chainFrames(out, &sum)
		if err := fresh.grow(fresh.written + int64(len(out))); err != nil {
			return err
		}
		if _, err := fresh.file.WriteAt(out[framePrefix:], fresh.written); err != nil {
			return err
		}
		fresh.sum = sum
		fresh.written += int64(len(out) - framePrefix)
		fresh.rows++
	}
}

// adopt makes the file of fresh that of j. The journal is paused.
func (j *journal) adopt(fresh *journal) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.registered && j.former == "" {
		j.former = j.name()
	}
	j.file, j.path, j.info, j.allocated = fresh.file, fresh.path, fresh.info, fresh.allocated
	j.written, j.folded, j.punched = fresh.written, fresh.folded, fresh.punched
	j.rows, j.sum = fresh.rows, fresh.sum
	j.registered, j.failing = false, false
	j.tried()
}
