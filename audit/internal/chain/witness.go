package chain

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
	exists, Readable bool
	Line             HeadLine // its number is how many lines audit.head had
}

// ReadWitness reads the witness at path, if there is one.
func ReadWitness(path string) (witness, error) {
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
	raw := make([]byte, LineSize+1)
	n, _ := f.ReadAt(raw, 0)
	line, ok := parseLine(raw[:n])
	return witness{exists: true, Readable: ok, Line: line}
}

// makeWitness creates the witness before audit.head gets its first line.
func (h *HeadFile) makeWitness() error {
	if _, err := os.Lstat(h.WitnessPath); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return h.writeWitness(HeadLine{Head: Head{Hash: ZeroHash}, Writer: h.Writer, State: LineHead})
}

// updateWitness makes the line of this writer the witness, unless the witness is newer.
func (h *HeadFile) updateWitness() error {
	f, err := os.OpenFile(h.WitnessPath, os.O_RDWR|os.O_CREATE|unix.O_NONBLOCK, 0o600)
	if err != nil {
		return fmt.Errorf("open the witness of audit.head: %w", err)
	}
	line := h.Line
	if old := readWitnessLine(f); old.Readable && old.Line.Seq > line.Seq {
		line.Head, line.Writer = old.Line.Head, old.Line.Writer
	}
	if line.Number, err = h.places(); err == nil {
		err = overwrite(f, line)
	}
	return errors.Join(err, f.Close())
}

// writeWitness makes line the witness, whatever it was before.
func (h *HeadFile) writeWitness(line HeadLine) error {
	f, err := os.OpenFile(h.WitnessPath, os.O_WRONLY|os.O_CREATE|unix.O_NONBLOCK, 0o600)
	if err != nil {
		return fmt.Errorf("open the witness of audit.head: %w", err)
	}
	return errors.Join(overwrite(f, line), f.Close())
}

// overwrite replaces the content of f by line.
func overwrite(f *os.File, line HeadLine) error {
	if _, err := f.WriteAt(line.append(nil), 0); err != nil {
		return err
	}
	if info, err := f.Stat(); err != nil || info.Size() == LineSize {
		return err
	}
	return f.Truncate(LineSize)
}
