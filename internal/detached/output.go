package detached

import (
	"bytes"
	"cmp"
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

	"github.com/ALRubinger/aileron/internal/filelock"
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

// MaxOutput bounds what is kept of the output of a session, in bytes: the end of it.
const MaxOutput = 2 * maxSegment

// maxSegment bounds one of the two files in which output is.
const maxSegment = 4 << 20

// recorder records what a command writes in files that are named after the place in
// the output at which they begin. Of these it keeps the last two.
type recorder struct {
	dir    string
	in     *io.PipeWriter // to what redacts; nil: nothing does
	copied chan struct{}  // closed when all of it is recorded

	file  *os.File // nil: none could be made
	names []string // of the files, the last is file's
	size  int64    // of file
	at    int64    // in the output
	lost  int64    // bytes that could not be recorded since the last that could
	why   error
}

func segmentName(at int64) string { return fmt.Sprintf("%016x.out", at) }

func newRecorder(s Session) (*recorder, error) {
	r := &recorder{dir: Dir(s.Home, s.ID)}
	_, _ = Prune(s.Home, MaxKept-1, s.Alive) // what cannot be removed now is by the next session
	if err := os.MkdirAll(r.dir, 0o700); err != nil {
		return nil, fmt.Errorf("record the session's output: %w", err)
	}
	if r.begin(); r.file == nil {
		return nil, fmt.Errorf("record the session's output: %w", r.why)
	}
	if s.Redact != nil {
		out, in := io.Pipe()
		r.in, r.copied = in, make(chan struct{})
		go func() {
			defer close(r.copied)
			_, err := io.Copy(recorded{r}, s.Redact(out))
			_ = out.CloseWithError(err) // the command goes on
		}()
	}
	return r, nil
}

// begin begins a file, and removes the oldest if there are more than two.
func (r *recorder) begin() {
	if r.file != nil {
		_ = r.file.Close()
	}
	name := segmentName(r.at)
	file, err := os.OpenFile(filepath.Join(r.dir, name), os.O_CREATE|os.O_TRUNC|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		r.file, r.why = nil, err
		return
	}
	r.file, r.size = file, 0
	if len(r.names) == 0 || r.names[len(r.names)-1] != name {
		r.names = append(r.names, name)
	}
	if len(r.names) > 2 {
		_ = os.Remove(filepath.Join(r.dir, r.names[0]))
		r.names = r.names[1:]
	}
}

// write records p. The command goes on if that fails.
func (r *recorder) write(p []byte) {
	if r.in != nil {
		_, _ = r.in.Write(p)
		return
	}
	r.put(p)
}

// recorded is a recorder after the redaction.
type recorded struct{ *recorder }

func (r recorded) Write(p []byte) (int, error) {
	r.put(p)
	return len(p), nil
}

// put writes p to the files. What was lost before is named in its place.
func (r *recorder) put(p []byte) {
	if r.lost > 0 {
		note := fmt.Appendf(nil, "\r\n[aileron: %d bytes were not recorded: %v]\r\n", r.lost, r.why)
		if r.append(note) < len(note) {
			r.lost += int64(len(p))
			return
		}
		r.lost = 0
	}
	if n := r.append(p); n < len(p) {
		r.lost += int64(len(p) - n)
	}
}

// append appends p to the files and returns how much of it they took.
func (r *recorder) append(p []byte) (n int) {
	for n < len(p) {
		if r.file == nil || r.size >= maxSegment {
			if r.begin(); r.file == nil {
				return n
			}
		}
		m, err := r.file.Write(p[n:min(len(p), n+int(maxSegment-r.size))])
		n, r.size, r.at = n+m, r.size+int64(m), r.at+int64(m)
		if err != nil {
			r.why = err
			return n
		}
	}
	return n
}

func (r *recorder) close() {
	if r.in != nil {
		_ = r.in.Close()
		<-r.copied
	}
	if r.file != nil {
		_ = r.file.Close()
	}
}

// MaxKept is of how many sessions the output is kept when one begins, beside those that
// run.
const MaxKept = 20

// outputs returns the directory that has one of each detached session.
func outputs(home string) string { return filepath.Join(home, "detached") }

// Dir returns the directory of the output of a session.
func Dir(home, id string) string { return filepath.Join(outputs(home), id) }

// MessagesPath returns the path of the messages that aileron wrote about a session
// since its command began.
func MessagesPath(home, id string) string { return filepath.Join(Dir(home, id), "messages") }

// MakeLog makes the file to which the process of a session that has no command writes its messages, and returns its
// path: [Output.Copy] reads it as what a command has written. The output of older sessions is removed, as it is by
// [Terminal.Open].
func MakeLog(s Session) (path string, err error) {
	_, _ = Prune(s.Home, MaxKept-1, s.Alive) // what cannot be removed now is by the next session
	dir := Dir(s.Home, s.ID)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("make the file of the session's messages: %w", err)
	}
	return filepath.Join(dir, segmentName(0)), nil
}

// IsWritten reports whether the process of a session may still write to its output or its messages: it does so for a
// moment after the session has ended.
func IsWritten(home, id string) bool {
	return filelock.Held(MessagesPath(home, id)) || filelock.Held(filepath.Join(Dir(home, id), segmentName(0)))
}

// maxMessages bounds what is read of messages: the end of them.
const maxMessages = 64 << 10

// Messages returns the messages of a session, "" if there are none.
func Messages(home, id string) string {
	f, err := os.Open(MessagesPath(home, id))
	if err != nil {
		return ""
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.Size() > maxMessages {
		_, _ = f.Seek(-maxMessages, io.SeekEnd)
	}
	text, _ := io.ReadAll(io.LimitReader(f, maxMessages)) // what can be read
	return string(text)
}

// Has reports whether there is output of a session.
func Has(home, id string) bool {
	_, err := os.Stat(Dir(home, id))
	return err == nil
}

// Remove removes the output of a session.
func Remove(home, id string) error { return os.RemoveAll(Dir(home, id)) }

// Prune removes the output of ended sessions but of the newest keep, and returns how
// many there were.
func Prune(home string, keep int, alive func(id string) bool) (removed int, err error) {
	entries, readErr := os.ReadDir(outputs(home))
	if os.IsNotExist(readErr) {
		return 0, nil
	}
	slices.SortFunc(entries, func(a, b os.DirEntry) int { return strings.Compare(b.Name(), a.Name()) }) // newest first
	for _, e := range entries {
		if alive(e.Name()) {
			continue
		}
		if keep--; keep >= 0 {
			continue
		}
		removeErr := Remove(home, e.Name())
		if err = cmp.Or(err, removeErr); removeErr == nil {
			removed++
		}
	}
	return removed, cmp.Or(err, readErr)
}
