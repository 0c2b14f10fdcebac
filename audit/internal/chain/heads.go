package chain

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Head identifies a row that was the newest of the log.
type Head struct {
	Seq  int64
	Ts   time.Time
	Hash string
}

// MaxHeads is the number of bytes that are read of audit.head: half a million writers.
const MaxHeads = 64 << 20

// Heads is the content of audit.head and the witness at one moment.
type Heads struct {
	exists  bool
	places  int64      // how many lines the file has, readable or not
	Lines   []HeadLine // the readable ones, in the file's order
	faults  []string   // what is wrong with the others, one sentence each
	Witness witness
}

// ReadHeads reads audit.head and the witness while no writer changes them.
func ReadHeads(path, witnessPath string) (found Heads, err error) {
	// Read the witness before looking for audit.head: if it counts lines and audit.head is missing afterwards, the home
	// is not a new one.
	before, err := ReadWitness(witnessPath)
	if err != nil {
		return found, err
	}
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return Heads{Witness: before}, nil
	}
	if err != nil {
		return found, fmt.Errorf("read audit.head: %w", err)
	}
	defer f.Close()
	if err := Flock(f, unix.LOCK_SH, BusyTimeout); err != nil {
		return found, fmt.Errorf("lock audit.head: %w", err)
	}
	if found, err = ParseHeads(io.LimitReader(f, MaxHeads+1)); err != nil {
		return found, fmt.Errorf("read audit.head: %w", err)
	}
	found.Witness, err = ReadWitness(witnessPath)
	return found, err
}

// ParseHeads parses every line of audit.head.
func ParseHeads(from io.Reader) (Heads, error) {
	found := Heads{exists: true}
	raw, err := io.ReadAll(from)
	if err != nil {
		return found, err
	}
	if len(raw) > MaxHeads {
		found.faults = append(found.faults, fmt.Sprintf("audit.head is larger than %d bytes", MaxHeads))
	}
	for len(raw) > 0 {
		found.places++
		text := raw[:min(LineSize, len(raw))]
		raw = raw[len(text):]
		line, ok := parseLine(text)
		switch {
		case !ok && len(text) < LineSize:
			found.faults = append(found.faults, fmt.Sprintf("line %d of audit.head is cut", found.places))
		case !ok:
			found.faults = append(found.faults, fmt.Sprintf("line %d of audit.head is garbled", found.places))
		case line.Number != found.places:
			found.faults = append(found.faults,
				fmt.Sprintf("line %d of audit.head has the number %d: lines were moved or removed", found.places, line.Number))
			found.Lines = append(found.Lines, line)
		default:
			found.Lines = append(found.Lines, line)
		}
	}
	return found, nil
}

// Newest returns the line with the highest row among those that the log must agree with; ok is false if there is
// none.
func (h *Heads) Newest() (newest HeadLine, ok bool) {
	for _, line := range h.Lines {
		if line.State == LineHead && (!ok || line.Seq >= newest.Seq) {
			newest, ok = line, true
		}
	}
	return newest, ok
}

// Unclaimed returns the newest line if the log has rows behind it. A process writes its line within milliseconds after
// a commit, so that a log that no process writes to has none, unless one was killed.
func (h *Heads) Unclaimed(newest int64) *HeadLine {
	if line, ok := h.Newest(); ok && newest > line.Seq {
		return &line
	}
	return nil
}

// unclaimed returns what is wrong with the rows behind h up to the one with the number newest.
func (h Head) unclaimed(newest int64) string {
	return fmt.Sprintf("rows %d to %d are behind row %d, which is the newest that audit.head has, and no session runs: "+
		"another program added them", h.Seq+1, newest, h.Seq)
}

// Inconsistency returns why audit.head cannot be what its writers wrote, or "". rows reports whether the log had any
// rows before the heads were read: the first writer of a home may begin meanwhile. Garbled lines are not among the
// reasons: they stay, and Verify lists them.
func (h *Heads) Inconsistency(rows bool) string {
	expected := h.Witness.Line.Number
	switch {
	case !h.exists && (rows || expected > 0):
		return FoundHeadMissing
	case h.exists && len(h.Lines) == 0 && (rows || expected > 0):
		return fmt.Sprintf("audit.head has no readable line, and had %d", max(expected, 1))
	case h.places < expected:
		return fmt.Sprintf("audit.head has %d lines, and had %d", h.places, expected)
	case len(h.Lines) > 0 && !h.Witness.exists:
		return "the witness of audit.head is missing"
	case len(h.Lines) > 0 && !h.Witness.Readable:
		return "the witness of audit.head is garbled"
	}
	return ""
}

// Reason returns the reason of the breach that inconsistency describes.
func (h *Heads) Reason() string {
	switch {
	case !h.exists:
		return ReasonHeadMissing
	case len(h.Lines) > 0 && h.places >= h.Witness.Line.Number:
		return ReasonWitnessChanged
	}
	return ReasonHeadChanged
}

// Expected returns the newest head that the log must have.
func (h *Heads) Expected() Head {
	newest, ok := h.Newest()
	switch {
	case h.Witness.Readable && h.Witness.Line.Seq >= newest.Seq:
		return h.Witness.Line.Head
	case !ok:
		return Head{Hash: ZeroHash}
	}
	return newest.Head
}
