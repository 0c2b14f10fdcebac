package audit

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// maxHeads is the number of bytes that are read of audit.head: half a million writers.
const maxHeads = 64 << 20

// heads is the content of audit.head and the witness at one moment.
type heads struct {
	exists  bool
	places  int64      // how many lines the file has, readable or not
	lines   []headLine // the readable ones, in the file's order
	faults  []string   // what is wrong with the others, one sentence each
	witness witness
}

// readHeads reads audit.head and the witness while no writer changes them.
func readHeads(path, witnessPath string) (found heads, err error) {
	// Read the witness before looking for audit.head: if it counts lines and audit.head is missing afterwards, the home
	// is not a new one.
	before, err := readWitness(witnessPath)
	if err != nil {
		return found, err
	}
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return heads{witness: before}, nil
	}
	if err != nil {
		return found, fmt.Errorf("read audit.head: %w", err)
	}
	defer f.Close()
	if err := flock(f, unix.LOCK_SH, busyTimeout); err != nil {
		return found, fmt.Errorf("lock audit.head: %w", err)
	}
	if found, err = parseHeads(io.LimitReader(f, maxHeads+1)); err != nil {
		return found, fmt.Errorf("read audit.head: %w", err)
	}
	found.witness, err = readWitness(witnessPath)
	return found, err
}

// parseHeads parses every line of audit.head.
func parseHeads(from io.Reader) (heads, error) {
	found := heads{exists: true}
	raw, err := io.ReadAll(from)
	if err != nil {
		return found, err
	}
	if len(raw) > maxHeads {
		found.faults = append(found.faults, fmt.Sprintf("audit.head is larger than %d bytes", maxHeads))
	}
	for len(raw) > 0 {
		found.places++
		text := raw[:min(lineSize, len(raw))]
		raw = raw[len(text):]
		line, ok := parseLine(text)
		switch {
		case !ok && len(text) < lineSize:
			found.faults = append(found.faults, fmt.Sprintf("line %d of audit.head is cut", found.places))
		case !ok:
			found.faults = append(found.faults, fmt.Sprintf("line %d of audit.head is garbled", found.places))
		case line.number != found.places:
			found.faults = append(found.faults,
				fmt.Sprintf("line %d of audit.head has the number %d: lines were moved or removed", found.places, line.number))
			found.lines = append(found.lines, line)
		default:
			found.lines = append(found.lines, line)
		}
	}
	return found, nil
}

// newest returns the line with the highest row among those that the log must agree with; ok is false if there is
// none.
func (h *heads) newest() (newest headLine, ok bool) {
	for _, line := range h.lines {
		if line.state == lineHead && (!ok || line.seq >= newest.seq) {
			newest, ok = line, true
		}
	}
	return newest, ok
}

// inconsistency returns why audit.head cannot be what its writers wrote, or "". rows reports whether the log had any
// rows before the heads were read: the first writer of a home may begin meanwhile. Garbled lines are not among the
// reasons: they stay, and Verify lists them.
func (h *heads) inconsistency(rows bool) string {
	expected := h.witness.line.number
	switch {
	case !h.exists && (rows || expected > 0):
		return foundHeadMissing
	case h.exists && len(h.lines) == 0 && (rows || expected > 0):
		return fmt.Sprintf("audit.head has no readable line, and had %d", max(expected, 1))
	case h.places < expected:
		return fmt.Sprintf("audit.head has %d lines, and had %d", h.places, expected)
	case len(h.lines) > 0 && !h.witness.exists:
		return "the witness of audit.head is missing"
	case len(h.lines) > 0 && !h.witness.readable:
		return "the witness of audit.head is garbled"
	}
	return ""
}

// reason returns the reason of the breach that inconsistency describes.
func (h *heads) reason() string {
	switch {
	case !h.exists:
		return reasonHeadMissing
	case len(h.lines) > 0 && h.places >= h.witness.line.number:
		return reasonWitnessChanged
	}
	return reasonHeadChanged
}

// expected returns the newest head that the log must have.
func (h *heads) expected() head {
	newest, ok := h.newest()
	switch {
	case h.witness.readable && h.witness.line.seq >= newest.seq:
		return h.witness.line.head
	case !ok:
		return head{hash: zeroHash}
	}
	return newest.head
}
