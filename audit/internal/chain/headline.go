package chain

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
)

// LineSize is the size in bytes of one line of audit.head. It divides the size of a sector, so that neither SIGKILL
// nor a power cut leaves half a line.
const LineSize = 128

// lineState is what is known about a line of audit.head.
type lineState string

// The states of a line.
const (
	LineHead     lineState = "head" // the log had this row
	LineLost     lineState = "lost" // the log did not have this row, and no event reports it yet
	LineReported lineState = "told" // the log did not have this row, and audit.broken reports it
)

// HeadLine is one line of audit.head: the newest row that one writer committed. Only its own writer changes it, in
// place, while that runs. Afterwards it never changes, except for the state of a line that the log contradicts.
type HeadLine struct {
	Head
	Number int64 // its position in the file, from 1
	Writer string
	State  lineState
}

// append appends the line as it is stored.
func (h HeadLine) append(out []byte) []byte {
	return fmt.Appendf(out, "%020d %s %09d %-26s %s\n", h.Seq, h.Hash, h.Number, h.Writer, h.State)
}

// parseLine parses one stored line; ok is false for anything that append does not produce.
func parseLine(raw []byte) (h HeadLine, ok bool) {
	fields := strings.Fields(string(raw))
	if len(raw) != LineSize || len(fields) != 5 {
		return h, false
	}
	if h.Head, ok = ParseHead(fields[0], fields[1]); !ok {
		return h, false
	}
	number, err := strconv.ParseInt(fields[2], 10, 64)
	if err != nil {
		return h, false
	}
	h.Number, h.Writer, h.State = number, fields[3], lineState(fields[4])
	known := h.State == LineHead || h.State == LineLost || h.State == LineReported
	return h, known && bytes.Equal(h.append(nil), raw)
}

// ParseHead parses a sequence number and a hash.
func ParseHead(seq, hash string) (h Head, ok bool) {
	n, err := strconv.ParseInt(seq, 10, 64)
	if err != nil || n < 0 || len(hash) != len(ZeroHash) || strings.Trim(hash, "0123456789abcdef") != "" {
		return h, false
	}
	return Head{Seq: n, Hash: hash}, true
}
