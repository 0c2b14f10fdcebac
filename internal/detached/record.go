package detached

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
)

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
