package audit

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// witness is a second copy of the newest head, in a file of its own: an older pair of audit.db and audit.head does
// not match it.
type witness struct {
	exists, readable bool
	line             headLine // its number is how many lines audit.head had
}

// readWitness reads the witness at path, if there is one.
func readWitness(path string) (witness, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return witness{}, nil
	}
	if err != nil {
		return witness{}, fmt.Errorf("read the witness of the audit log: %w", err)
	}
	defer f.Close()
	return readWitnessLine(f), nil
}

// readWitnessLine reads a witness; it is not readable if its line is garbled.
func readWitnessLine(f *os.File) witness {
	raw := make([]byte, lineSize+1)
	n, _ := f.ReadAt(raw, 0)
	line, ok := parseLine(raw[:n])
	return witness{exists: true, readable: ok, line: line}
}

// makeWitness creates the witness before audit.head gets its first line.
func (h *headFile) makeWitness() error {
	if _, err := os.Lstat(h.witnessPath); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return h.writeWitness(headLine{head: head{hash: zeroHash}, writer: h.writer, state: lineHead})
}

// updateWitness makes the line of this writer the witness, unless the witness is newer.
func (h *headFile) updateWitness() error {
	f, err := os.OpenFile(h.witnessPath, os.O_RDWR|os.O_CREATE|unix.O_NONBLOCK, 0o600)
	if err != nil {
		return fmt.Errorf("open the witness of audit.head: %w", err)
	}
	line := h.line
	if old := readWitnessLine(f); old.readable && old.line.seq > line.seq {
		line.head, line.writer = old.line.head, old.line.writer
	}
	if line.number, err = h.places(); err == nil {
		err = overwrite(f, line)
	}
	return errors.Join(err, f.Close())
}

// writeWitness makes line the witness, whatever it was before.
func (h *headFile) writeWitness(line headLine) error {
	f, err := os.OpenFile(h.witnessPath, os.O_WRONLY|os.O_CREATE|unix.O_NONBLOCK, 0o600)
	if err != nil {
		return fmt.Errorf("open the witness of audit.head: %w", err)
	}
	return errors.Join(overwrite(f, line), f.Close())
}

// overwrite replaces the content of f by line.
func overwrite(f *os.File, line headLine) error {
	if _, err := f.WriteAt(line.append(nil), 0); err != nil {
		return err
	}
	if info, err := f.Stat(); err != nil || info.Size() == lineSize {
		return err
	}
	return f.Truncate(lineSize)
}
