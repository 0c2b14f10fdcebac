package terminal

import (
	"fmt"
	"strings"
)

// Redo returns what switches on, in a terminal on which nothing is, what a program
// depends on: the alternate screen, and what the terminal sends as input. What a
// program draws, with its colours, is not among it.
func (m *Modes) Redo() string {
	var b strings.Builder
	if m.alt != 0 {
		fmt.Fprintf(&b, "\x1b[?%dh", m.alt)
	}
	if flags := m.keyFlags[m.screen()]; flags != "" {
		if m.pushed[m.screen()] > 0 {
			fmt.Fprintf(&b, "\x1b[>%su", flags)
		} else if m.flags[m.screen()] {
			fmt.Fprintf(&b, "\x1b[=%su", flags)
		}
	}
	for _, known := range privateModes() {
		if m.private[known.mode] && known.mode != 2026 { // synchronized output is of one drawing
			fmt.Fprintf(&b, "\x1b[?%d%c", known.mode, map[bool]byte{false: 'h', true: 'l'}[known.def])
		}
	}
	if m.keypad {
		b.WriteString("\x1b=")
	}
	if m.otherKey {
		b.WriteString("\x1b[>4;2m")
	}
	return b.String()
}
