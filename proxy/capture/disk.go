package capture

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/ALRubinger/aileron/audit/export"

	"github.com/ALRubinger/aileron/internal/hint"
)

// disk is the file and, beside it, a second one that is brought up to date while the first stays as it is. Then the two
// exchange their names. So the document under the file's name is complete at any moment: a write of more than a page
// that is cut short by SIGKILL leaves half an entry, but never in the file that has the name.
//
// Where names cannot be exchanged there is one file, in which such a kill may leave half an entry.
type disk struct {
	path, next string
	files      [2]*os.File // equal if there is only one
	ends       [2]int64    // of their entries; their tail follows
	sizes      [2]int64
	shown      int    // the one that has the name
	lag        []byte // what the other one lacks
	entries    bool   // there are some
}

// createDisk creates the files.
func createDisk(path string, head []byte) (*disk, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	d := &disk{path: path, next: filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".next")}
	if _, err := os.Lstat(path); err == nil {
		return nil, d.exists()
	}
	// The second file of a capture that was killed: its first one is gone.
	if err := os.Remove(d.next); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("create the capture: %w", err)
	}
	if err := d.create(head); err != nil {
		_ = d.close()
		return nil, err
	}
	return d, nil
}

func (d *disk) exists() error {
	return hint.New(fmt.Errorf("create the capture: %s exists", d.path), "name a new file: a capture never replaces one")
}

// create makes the first file complete before it gets its name.
func (d *disk) create(head []byte) error {
	fail := func(err error) error {
		return hint.New(fmt.Errorf("create the capture: %w", err), "check the directory of --capture, and its rights")
	}
	text := append(head[:len(head):len(head)], export.HARTail...)
	for i := range d.files {
		f, err := createFile(d.next, text)
		if err != nil {
			return fail(err)
		}
		d.files[i], d.ends[i], d.sizes[i] = f, int64(len(head)), int64(len(text))
		if i == 1 {
			break
		}
		if err := os.Link(d.next, d.path); errors.Is(err, fs.ErrExist) {
			return errors.Join(d.exists(), os.Remove(d.next))
		} else if err != nil {
			return errors.Join(fail(err), os.Remove(d.next))
		}
		if err := os.Remove(d.next); err != nil {
			return fail(err)
		}
	}
	if exchangeNames(d.next, d.path) != nil {
		_ = d.files[1].Close()
		d.files[1] = d.files[0]
		return os.Remove(d.next)
	}
	d.shown = 1
	return nil
}

// createFile creates a file that only its owner may read, and writes text to it.
func createFile(path string, text []byte) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	if _, err := f.Write(text); err != nil {
		return nil, errors.Join(err, f.Close(), os.Remove(path))
	}
	return f, nil
}

// size returns how large the document is.
func (d *disk) size() int64 { return d.sizes[d.shown] }

// separator precedes each entry. The first one is written without it.
const separator = ",\n"

// commit appends entries, each with the separator before it, and then tail. entries must stay as they are until the
// next call. After an error the document is as it was; if there is one file, the next call must write its tail again.
func (d *disk) commit(entries, tail []byte) error {
	if !d.entries && len(entries) > 0 {
		entries = entries[len(separator):]
	}
	single := d.files[0] == d.files[1]
	to := 1 - d.shown
	if single {
		to, d.lag = d.shown, nil
	}
	end := d.ends[to]
	// What a write leaves that fails is cut off by the next one.
	d.sizes[to] = max(d.sizes[to], end+int64(len(d.lag)+len(entries)+len(tail)))
	// One write of entries and tail: where there is one file, a kill between two would leave it without an end.
	for _, piece := range [][]byte{d.lag, append(entries, tail...)} {
		n, err := d.files[to].WriteAt(piece, end)
		if err != nil {
			return err
		}
		end += int64(n)
	}
	size := end
	end -= int64(len(tail))
	if size < d.sizes[to] {
		if err := d.files[to].Truncate(size); err != nil {
			return err
		}
	}
	if !single {
		if err := d.exchange(); err != nil {
			return err
		}
	}
	d.ends[to], d.sizes[to], d.shown, d.lag = end, size, to, entries
	d.entries = d.entries || len(entries) > 0
	return nil
}

// exchange exchanges the names, unless the first one is another file's by now: that must not be replaced.
func (d *disk) exchange() error {
	if !d.isOurs(d.path, d.shown) {
		return errGone
	}
	return exchangeNames(d.next, d.path)
}

// errGone ends a capture whose file was removed or replaced.
var errGone = errors.New("the file was removed or replaced")

// isOurs reports whether path is the name of one of the files.
func (d *disk) isOurs(path string, which int) bool {
	ours, err := d.files[which].Stat()
	if err != nil {
		return false
	}
	named, err := os.Lstat(path)
	return err == nil && os.SameFile(ours, named)
}

// close closes both files, and removes the one that does not have the name.
func (d *disk) close() error {
	var errs []error
	if d.files[1] != nil && d.files[0] != d.files[1] && d.isOurs(d.next, 1-d.shown) {
		errs = append(errs, os.Remove(d.next))
	}
	for i, f := range d.files {
		if f != nil && (i == 0 || f != d.files[0]) {
			errs = append(errs, f.Close())
		}
	}
	return errors.Join(errs...)
}
