package chain

import (
	"errors"
	"slices"
)

// MaxKept bounds the lines that one writer keeps: audit.head must not grow without limit if something removes every
// row again and again.
const MaxKept = 256

// ErrTooManyBreaches is returned when the log loses its rows again and again.
var ErrTooManyBreaches = errors.New("the log was changed too often under this process")

// Keep permanently records the heads that the log contradicts, in the lines that have them or in new ones. This
// writer continues with a new line.
func (h *HeadFile) Keep(found []Breach) error {
	if h.kept += len(found); h.kept > MaxKept {
		return ErrTooManyBreaches
	}
	return h.locked(func() error {
		if err := h.makeWitness(); err != nil {
			return err
		}
		if h.Line.Number > 0 && h.holds(h.Line) {
			lost := h.Line
			lost.Head, lost.State = h.next, LineLost
			if err := h.keepLine(lost); err != nil {
				return err
			}
		}
		h.Line, h.Behind = HeadLine{}, false
		for _, b := range found {
			if err := h.keepLine(h.lineOf(b)); err != nil {
				return err
			}
		}
		return nil
	})
}

// lineOf returns the line that records b: the one that already has the head, or a new one.
func (h *HeadFile) lineOf(b Breach) HeadLine {
	if b.Line.Number > 0 && h.holds(b.Line) {
		b.Line.State = LineLost
		return b.Line
	}
	return HeadLine{Head: b.Expected, Writer: h.Writer, State: LineLost}
}

// keepLine writes a line as lost, unless its head is recorded already.
func (h *HeadFile) keepLine(line HeadLine) (err error) {
	same := func(l HeadLine) bool { return l.Seq == line.Seq && l.Hash == line.Hash }
	switch {
	case line.Number > 0:
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

// MarkReported marks the lines of keep, because the event that reports them is committed. If it fails, the next Open
// reports them again.
func (h *HeadFile) MarkReported() {
	lost := h.lost
	h.lost = nil
	_ = h.locked(func() error {
		for _, line := range lost {
			if h.holds(line) {
				line.State = LineReported
				_ = h.writeLine(line)
			}
		}
		return nil
	})
}
