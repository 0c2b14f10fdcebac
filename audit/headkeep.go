package audit

import (
	"errors"
	"slices"
)

// maxKept bounds the lines that one writer keeps: audit.head must not grow without limit if something removes every
// row again and again.
const maxKept = 256

// errTooManyBreaches is returned when the log loses its rows again and again.
var errTooManyBreaches = errors.New("the log was changed too often under this process")

// keep permanently records the heads that the log contradicts, in the lines that have them or in new ones. This
// writer continues with a new line.
func (h *headFile) keep(found []breach) error {
	if h.kept += len(found); h.kept > maxKept {
		return errTooManyBreaches
	}
	return h.locked(func() error {
		if err := h.makeWitness(); err != nil {
			return err
		}
		if h.line.number > 0 && h.holds(h.line) {
			lost := h.line
			lost.head, lost.state = h.next, lineLost
			if err := h.keepLine(lost); err != nil {
				return err
			}
		}
		h.line, h.behind = headLine{}, false
		for _, b := range found {
			if err := h.keepLine(h.lineOf(b)); err != nil {
				return err
			}
		}
		return nil
	})
}

// lineOf returns the line that records b: the one that already has the head, or a new one.
func (h *headFile) lineOf(b breach) headLine {
	if b.line.number > 0 && h.holds(b.line) {
		b.line.state = lineLost
		return b.line
	}
	return headLine{head: b.expected, writer: h.writer, state: lineLost}
}

// keepLine writes a line as lost, unless its head is recorded already.
func (h *headFile) keepLine(line headLine) (err error) {
	same := func(l headLine) bool { return l.seq == line.seq && l.hash == line.hash }
	switch {
	case line.number > 0:
		err = h.writeLine(line)
	case slices.ContainsFunc(h.lost, same):
		return nil
	default:
		line, err = h.appendLine(line)
	}
	if err == nil {
		h.lost = append(h.lost, line)
	}
	return err
}

// markReported marks the lines of keep, because the event that reports them is committed. If it fails, the next Open
// reports them again.
func (h *headFile) markReported() {
	lost := h.lost
	h.lost = nil
	_ = h.locked(func() error {
		for _, line := range lost {
			if h.holds(line) {
				line.state = lineReported
				_ = h.writeLine(line)
			}
		}
		return nil
	})
}
