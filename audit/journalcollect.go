package audit

import (
	"errors"
	"fmt"
	"io"
	"time"
)

// foldRow is memory for a row that is being folded.
type foldRow struct {
	Row
	source rawRow
}

// collect reads the next rows that are to be folded. They are valid until the next call.
func (j *journal) collect() ([]*Row, error) {
	j.mu.Lock()
	frames := frameReader{file: j.file, at: j.folded, end: j.written, buf: j.buf[:0]}
	sum, late := j.sum, time.Since(j.oldest)
	j.mu.Unlock()
	j.group, j.ends = j.group[:0], j.ends[:0]
	for begin := frames.at; len(j.group) < maxFold && frames.at-begin < foldBytes; {
		body, err := frames.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if len(j.slab) == len(j.group) {
			j.slab = append(j.slab, new(foldRow))
		}
		r, raw := &j.slab[len(j.group)].Row, &j.slab[len(j.group)].source
		if err == nil && r.parse(string(body), raw) != nil {
			err = errNoFrame
		}
		if errors.Is(err, errNoFrame) && len(j.group) > 0 {
			break // the rows before are folded first
		}
		if err != nil {
			return nil, err
		}
		if raw.late = late; j.spilled {
			if err := r.setField(fieldSpilled, true); err != nil {
				return nil, err
			}
		}
		j.group, j.ends = append(j.group, r), append(j.ends, frames.at)
	}
	j.buf = frames.buf
	if frames.at == frames.end && len(j.group) > 0 {
		// The file may have been changed and chained again: the sum in memory cannot be.
		if last, err := frames.sumBefore(); err != nil || [sumSize]byte(last) != sum {
			return nil, errNoFrame
		}
	}
	return j.group, nil
}

// advance records that the first n rows of collect are in the database, of which after is the newest row.
func (j *journal) advance(n int, after head) {
	end := j.ends[n-1]
	mark := journalMark{folded: end, after: after}
	_, err := j.file.WriteAt(mark.append(make([]byte, 0, 256)), journalMarkAt)
	j.mu.Lock()
	j.folded, j.rows = end, j.rows-n
	j.tried()
	j.mu.Unlock()
	if err == nil { // otherwise the table has how far it is folded
		j.release()
	}
}

// probe returns an error if the journal cannot accept rows.
func (j *journal) probe() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.failing && !j.writing {
		if _, err := j.file.WriteAt(make([]byte, frameHead), j.written); err != nil {
			return fmt.Errorf("write the journal: %w", err)
		}
	}
	j.failing = false
	return j.grow(j.written + j.inflight)
}
