package journal

import (
	"context"
	"errors"
	"io"

	"golang.org/x/sys/unix"
)

// Gone reports whether the file has no name any more. The rows of a file that was moved with its home are kept.
func (j *Journal) Gone() bool {
	var st unix.Stat_t
	return unix.Fstat(int(j.File.Fd()), &st) != nil || st.Nlink == 0
}

// Pause waits until no batch is being written, and keeps others from beginning.
func (j *Journal) Pause() {
	for {
		j.Mu.Lock()
		if !j.writing {
			j.writing = true
			j.Mu.Unlock()
			return
		}
		j.Mu.Unlock()
		j.Flush(context.Background())
	}
}

// Resume ends pause, and writes the batch that waits.
func (j *Journal) Resume() {
	j.Mu.Lock()
	_ = j.lead()
}

// CopyTo adds the frames that are not folded to another journal. The journal is paused.
func (j *Journal) CopyTo(fresh *Journal) error {
	frames := FrameReader{File: j.File, At: j.Folded, End: j.Written}
	for {
		body, err := frames.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		out := endFrame(append(make([]byte, framePrefix+FrameHead), body...), framePrefix)
		sum := fresh.sum
		chainFrames(out, &sum)
		if err := fresh.grow(fresh.Written + int64(len(out))); err != nil {
			return err
		}
		if _, err := fresh.File.WriteAt(out[framePrefix:], fresh.Written); err != nil {
			return err
		}
		fresh.sum = sum
		fresh.Written += int64(len(out) - framePrefix)
		fresh.Rows++
	}
}

// Adopt makes the file of fresh that of j. The journal is paused.
func (j *Journal) Adopt(fresh *Journal) {
	j.Mu.Lock()
	defer j.Mu.Unlock()
	if j.Registered && j.Former == "" {
		j.Former = j.Name()
	}
	j.File, j.Path, j.info, j.Allocated = fresh.File, fresh.Path, fresh.info, fresh.Allocated
	j.Written, j.Folded, j.Punched = fresh.Written, fresh.Folded, fresh.Punched
	j.Rows, j.sum = fresh.Rows, fresh.sum
	j.Registered, j.failing = false, false
	j.Tried()
}
