package detached

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Output is what the command of a session has written.
type Output struct {
	Home, ID string
	Tail     int // its last lines; negative: all
	// Alive reports whether more may follow. Nil: none is waited for.
	Alive func() bool
	// Cut is called with the number of bytes that are no longer there, where they
	// would be. Nil is nothing.
	Cut func(bytes int64)
}

// pollPause is the time between two looks for more output.
const pollPause = 200 * time.Millisecond

// ErrNone is returned for a session without output: it was not detached, or its
// output was removed.
var ErrNone = errors.New("there is no output of this session")

// segment is one file of output.
type segment struct {
	path string
	at   int64 // its place in the output
}

// segments returns the files in their order.
func (o Output) segments() ([]segment, error) {
	entries, err := os.ReadDir(Dir(o.Home, o.ID))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNone
	}
	if err != nil {
		return nil, fmt.Errorf("read the output: %w", err)
	}
	var all []segment
	for _, e := range entries {
		digits, ok := strings.CutSuffix(e.Name(), ".out")
		if at, err := strconv.ParseInt(digits, 16, 64); ok && err == nil {
			all = append(all, segment{filepath.Join(Dir(o.Home, o.ID), e.Name()), at})
		}
	}
	slices.SortFunc(all, func(a, b segment) int { return int(a.at - b.at) })
	return all, nil
}

// Copy copies the output to w. With Alive it goes on until the session has ended, or
// ctx does.
func (o Output) Copy(ctx context.Context, w io.Writer) error {
	var tail *lastLines
	if o.Tail >= 0 {
		tail = &lastLines{max: o.Tail}
	}
	tick := time.NewTicker(pollPause)
	defer tick.Stop()
	for at := int64(0); ; {
		last := o.Alive == nil || !o.Alive() // before it is read: what follows is then all
		var err error
		if tail != nil {
			if at, err = o.copyFrom(at, tail); err == nil {
				_, err = w.Write(tail.lines())
			}
			tail = nil
		} else {
			at, err = o.copyFrom(at, w)
		}
		if err != nil || last {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// copyFrom copies what there is from a place on, and returns the next place.
func (o Output) copyFrom(at int64, w io.Writer) (int64, error) {
	all, err := o.segments()
	if err != nil {
		return at, err
	}
	for _, s := range all {
		f, err := os.Open(s.path)
		if errors.Is(err, fs.ErrNotExist) {
			continue // just removed, for newer output
		}
		if err != nil {
			return at, fmt.Errorf("read the output: %w", err)
		}
		if s.at > at {
			if o.Cut != nil {
				o.Cut(s.at - at)
			}
			at = s.at
		}
		n, err := copySection(w, f, at-s.at)
		_ = f.Close()
		if at += n; err != nil {
			return at, err
		}
	}
	return at, nil
}

// copySection copies a file from a place on.
func copySection(w io.Writer, f *os.File, from int64) (int64, error) {
	if _, err := f.Seek(from, io.SeekStart); err != nil {
		return 0, err
	}
	return io.Copy(w, f)
}

// lastLines keeps the end of what is written to it. [MaxOutput] bounds that.
type lastLines struct {
	max  int
	text []byte
}

func (l *lastLines) Write(p []byte) (int, error) {
	l.text = append(l.text, p...)
	return len(p), nil
}

// lines returns the last lines. One without its end is a line too.
func (l *lastLines) lines() []byte {
	at := len(l.text)
	for n := 0; n < l.max && at > 0; n++ {
		at = bytes.LastIndexByte(l.text[:at-1], '\n') + 1
	}
	return l.text[at:]
}
