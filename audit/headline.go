package audit

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
)

// lineSize is the size in bytes of one line of audit.head. It divides the size of a sector, so that neither SIGKILL
// nor a power cut leaves half a line.
const lineSize = 128

// lineState is what is known about a line of audit.head.
type lineState string

// The states of a line.
const (
	lineHead     lineState = "head" // the log had this row
	lineLost     lineState = "lost" // the log did not have this row, and no event reports it yet
	lineReported lineState = "told" // the log did not have this row, and audit.broken reports it
)

// headLine is one line of audit.head: the newest row that one writer committed. Only its own writer changes it, in
// place, while that runs. Afterwards it never changes, except for the state of a line that the log contradicts.
type headLine struct {
	head
	number int64 // its position in the file, from 1
	writer string
	state  lineState
}

// append appends the line as it is stored.
func (h headLine) append(out []byte) []byte {
	return fmt.Appendf(out, "%020d %s %09d %-26s %s\n", h.seq, h.hash, h.number, h.writer, h.state)
}

// parseLine parses one stored line; ok is false for anything that append does not produce.
func parseLine(raw []byte) (h headLine, ok bool) {
	fields := strings.Fields(string(raw))
	if len(raw) != lineSize || len(fields) != 5 {
		return h, false
	}
	if h.head, ok = parseHead(fields[0], fields[1]); !ok {
		return h, false
	}
	number, err := strconv.ParseInt(fields[2], 10, 64)
	if err != nil {
		return h, false
	}
	h.number, h.writer, h.state = number, fields[3], lineState(fields[4])
	known := h.state == lineHead || h.state == lineLost || h.state == lineReported
	return h, known && bytes.Equal(h.append(nil), raw)
}

// parseHead parses a sequence number and a hash.
func parseHead(seq, hash string) (h head, ok bool) {
	n, err := strconv.ParseInt(seq, 10, 64)
	if err != nil || n < 0 || len(hash) != len(zeroHash) || strings.Trim(hash, "0123456789abcdef") != "" {
		return h, false
	}
	return head{seq: n, hash: hash}, true
}
