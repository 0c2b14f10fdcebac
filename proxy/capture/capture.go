// Package capture records the exchanges of one session with headers and bodies, in a HAR file that a person asked for.
//
// [Open] creates the file, [File.Begin] starts an exchange, and [Exchange.End] hands it over to be written:
//
//	f, err := capture.Open("session.har", capture.Options{Version: version})
//	if err != nil {
//		return err
//	}
//	defer f.Close()
//	e := f.Begin(req)
//	res.Body = tap(res.Body, e.Received)
//	e.End(capture.Outcome{Row: row, Secrets: secrets})
//
// Requests are as the client sent them, and responses as it got them. Nothing of a credential is in the file: where the
// proxy put one there is its binding's name, and every text and body is searched for the session's secrets once more,
// whatever was done to it before. The token of the session is left out too.
//
// Every bound is on bytes: of a body, of what is held in memory, and of the file. Traffic never fails for a capture: a
// file that cannot be written ends it, with one warning. The file is a complete JSON document from its creation on, and
// stays one if the process is killed at any moment: see [File.Close].
package capture

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ALRubinger/aileron/audit/export"

	"github.com/ALRubinger/aileron/proxy/scrub"
)

// The bounds.
const (
	MaxBody   = 1 << 20   // of one body
	MaxFile   = 256 << 20 // of the file
	maxHeld   = 64 << 20  // of bodies in memory, of all exchanges
	maxQueued = 256       // exchanges that wait to be written
	batchSize = 1 << 20   // of what is written at once, but for an entry that is larger
)

// writeWait is how long an exchange waits for the disk before it is left out.
const writeWait = time.Second

// Options describes a capture.
type Options struct {
	Version string // of aileron
	Token   string // of the session
	// Warn is called once, from another goroutine, if the capture ends before the session does. Nil discards it.
	Warn func(error)

	maxFile   int64         // in tests
	writeWait time.Duration // in tests; 0: writeWait
}

// File is a HAR file that is being written. Its methods are safe for concurrent use.
type File struct {
	disk    *disk
	token   *scrub.Set
	opts    Options
	held    atomic.Int64
	stopped atomic.Bool
	omitted atomic.Int64 // exchanges for which the disk was too slow

	mu     sync.RWMutex // closed is not set while one sends to queue
	closed bool
	queue  chan *ended
	done   chan struct{}

	pieces sync.Pool // of *[pieceSize]byte
	text   text      // of the writer
}

// ended is an exchange to be written.
type ended struct {
	*Exchange
	Outcome
}

// Open creates the file, with mode 0600. It refuses one that exists.
func Open(path string, opts Options) (*File, error) {
	if opts.maxFile == 0 {
		opts.maxFile = MaxFile
	}
	d, err := createDisk(path, export.HARHead(opts.Version))
	if err != nil {
		return nil, err
	}
	f := &File{token: scrub.NewSet([]scrub.Credential{{Secret: []byte(opts.Token)}}), disk: d, opts: opts,
		queue: make(chan *ended, maxQueued), done: make(chan struct{})}
	go f.write()
	return f, nil
}

// Path returns the absolute path of the file.
func (f *File) Path() string { return f.disk.path }

// Begin starts to record an exchange. It returns nil, which every method of an [Exchange] accepts, once the capture has
// ended.
func (f *File) Begin(r *http.Request) *Exchange {
	if f == nil || f.stopped.Load() {
		return nil
	}
	return newExchange(f, r)
}

// Close writes what has ended until now, and closes the file. It removes the second file, .NAME.next, which a killed
// process leaves beside the first.
func (f *File) Close() error {
	f.mu.Lock()
	if f.closed {
		f.mu.Unlock()
		return nil
	}
	f.closed = true
	close(f.queue)
	f.mu.Unlock()
	<-f.done
	if n := f.omitted.Load(); n > 0 && !f.stopped.Load() {
		_ = f.disk.commit(nil, tailWith(fmt.Sprintf("%d requests are not in it: the disk was too slow", n)))
	}
	return f.disk.close()
}

// add queues an exchange that has ended.
func (f *File) add(e *ended) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	if f.closed || f.stopped.Load() {
		e.release()
		return
	}
	select {
	case f.queue <- e:
		return
	default:
	}
	timer := time.NewTimer(cmp.Or(f.opts.writeWait, writeWait))
	defer timer.Stop()
	select {
	case f.queue <- e:
	case <-timer.C:
		f.omitted.Add(1)
		e.release()
	}
}

// write writes exchanges until the queue is closed.
func (f *File) write() {
	defer close(f.done)
	var batch, last []byte // the disk needs the last one until it has the next
	for e := range f.queue {
		batch = f.encode(batch[:0], e)
		for more := true; more && len(batch) < batchSize; {
			select {
			case next, ok := <-f.queue:
				if more = ok; ok {
					batch = f.encode(batch, next)
				}
			default:
				more = false
			}
		}
		if len(batch) > 0 && !f.stopped.Load() {
			f.commit(batch)
		}
		if batch, last = last, batch; cap(batch) > 4*batchSize {
			batch = nil
		}
	}
}

// errFull ends a capture that has reached its size.
var errFull = errors.New("it has reached its size")

func (f *File) commit(batch []byte) {
	err, why := errFull, fmt.Sprintf("%d MiB", f.opts.maxFile>>20)
	if f.disk.size()+int64(len(batch)) <= f.opts.maxFile {
		if err = f.disk.commit(batch, []byte(export.HARTail)); err == nil {
			return
		}
		why = "an error: " + err.Error()
	}
	f.stopped.Store(true)
	// On a full disk there may be no room for that.
	if f.disk.commit(nil, tailWith("the capture ended at "+why+"; later requests are not in it")) != nil {
		_ = f.disk.commit(nil, []byte(export.HARTail))
	}
	if f.opts.Warn != nil {
		f.opts.Warn(fmt.Errorf("capture to %s: %w; requests go on without it", f.disk.path, err))
	}
}

// tailWith returns the end of the document with a comment.
func tailWith(comment string) []byte {
	text, _ := json.Marshal(comment) // a string never fails
	return fmt.Appendf(nil, "],\"comment\":%s}}\n", text)
}

// encode appends an exchange as an element of the log's entries, with the separator before it.
func (f *File) encode(batch []byte, e *ended) []byte {
	defer e.release()
	if f.stopped.Load() {
		return batch
	}
	return e.appendTo(append(batch, separator...), &f.text)
}

// take reserves memory, and reports whether there was enough.
func (f *File) take(n int) bool {
	if f.held.Add(int64(n)) <= maxHeld {
		return true
	}
	f.held.Add(-int64(n))
	return false
}
