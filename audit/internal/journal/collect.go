package journal

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/ALRubinger/aileron/audit/internal/chain"
)

const (
	// maxFold is how many rows collect reads at once, and foldBytes about how many bytes they have.
	maxFold   = 4096
	foldBytes = 4 << 20
)

// foldRow is memory for a row that is being folded.
type foldRow struct {
	chain.Row
	source chain.RawRow
}

// Collect reads the next rows that are to be folded. They are valid until the next call.
func (j *Journal) Collect() ([]*chain.Row, error) {
	j.Mu.Lock()
	frames := FrameReader{File: j.File, At: j.Folded, End: j.Written, buf: j.buf[:0]}
	sum, late := j.sum, time.Since(j.oldest)
	j.Mu.Unlock()
	j.Group, j.Ends = j.Group[:0], j.Ends[:0]
	for begin := frames.At; len(j.Group) < maxFold && frames.At-begin < foldBytes; {
		body, err := frames.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if len(j.Slab) == len(j.Group) {
			j.Slab = append(j.Slab, new(foldRow))
		}
		r, raw := &j.Slab[len(j.Group)].Row, &j.Slab[len(j.Group)].source
		if err == nil && r.Parse(string(body), raw) != nil {
			err = ErrNoFrame
		}
		if errors.Is(err, ErrNoFrame) && len(j.Group) > 0 {
			break // the rows before are folded first
		}
		if err != nil {
			return nil, err
		}
		if raw.Late = late; j.Spilled {
			if err := r.SetField(chain.FieldSpilled, true); err != nil {
				return nil, err
			}
		}
		j.Group, j.Ends = append(j.Group, r), append(j.Ends, frames.At)
	}
	j.buf = frames.buf
	if frames.At == frames.End && len(j.Group) > 0 {
		// The file may have been changed and chained again: the sum in memory cannot be.
		if last, err := frames.sumBefore(); err != nil || [sumSize]byte(last) != sum {
			return nil, ErrNoFrame
		}
	}
	return j.Group, nil
}

// Advance records that the first n rows of collect are in the database, of which after is the newest row.
func (j *Journal) Advance(n int, after chain.Head) {
	end := j.Ends[n-1]
	mark := journalMark{Folded: end, After: after}
	_, err := j.File.WriteAt(mark.append(make([]byte, 0, 256)), MarkAt)
	j.Mu.Lock()
	j.Folded, j.Rows = end, j.Rows-n
	j.Tried()
	j.Mu.Unlock()
	if err == nil { // otherwise the table has how far it is folded
		j.release()
	}
}

// Probe returns an error if the journal cannot accept rows.
func (j *Journal) Probe() error {
	j.Mu.Lock()
	defer j.Mu.Unlock()
	if j.failing && !j.writing {
		if _, err := j.File.WriteAt(make([]byte, FrameHead), j.Written); err != nil {
			return fmt.Errorf("write the journal: %w", err)
		}
	}
	j.failing = false
	return j.grow(j.Written + j.inflight)
}
