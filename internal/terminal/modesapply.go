package terminal

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// privateMode is a mode of CSI ? … h, and whether it is on by default.
type privateMode struct {
	mode int
	def  bool
}

// privateModes are the modes that are undone, in this order. The alternate
// screen is undone apart.
func privateModes() []privateMode {
	var all []privateMode
	for _, mode := range []int{
		2026,                                              // synchronized output: first, or nothing else is seen
		9, 1000, 1001, 1002, 1003, 1005, 1006, 1015, 1016, // the mouse
		1004, 2004, 2031, 2048, 9001, 1, 66, // focus, paste, colour scheme, size and keys as input
		5, 6, 69, // reverse video, origin, margins
	} {
		all = append(all, privateMode{mode, false})
	}
	return append(all, privateMode{7, true}, privateMode{25, true}) // wrapping, the cursor
}

// apply acts on a control sequence with its final byte.
func (m *Modes) apply(final byte) {
	p := string(m.params)
	prefix := byte(0)
	if p != "" && p[0] >= '<' && p[0] <= '?' {
		prefix, p = p[0], p[1:]
	}
	switch {
	case prefix == '?' && (final == 'h' || final == 'l'):
		for number := range strings.SplitSeq(p, ";") {
			if mode, err := strconv.Atoi(number); err == nil {
				m.set(mode, final == 'h')
			}
		}
	case final == 'n' || final == 'c':
		m.reply(string(prefix), p, final)
	case final == 'u' && prefix != 0 && prefix != '?':
		m.keyboard(prefix, p)
	case prefix == '>' && final == 'm' && (p == "4" || strings.HasPrefix(p, "4;")):
		m.otherKey = p != "4" && p != "4;0"
	case prefix != 0:
	case final == 'h' || final == 'l':
		if slices.Contains(strings.Split(p, ";"), "4") {
			m.insert = final == 'h'
		}
	case final == 'm':
		m.styled = strings.Trim(p, "0") != ""
	case final == 'r':
		m.margins = p != "" && p != ";"
	case final == 'q' && strings.HasSuffix(p, " "):
		m.cursor = strings.Trim(p, "0 ") != ""
	case final == 'p' && p == "!": // a soft reset
		for _, mode := range []int{1, 6, 7, 25, 66, 69} {
			delete(m.private, mode)
		}
		m.keypad, m.insert, m.styled, m.drawing, m.shifted, m.margins = false, false, false, false, false, false
	}
}

// set notes a private mode, where it is known.
func (m *Modes) set(mode int, on bool) {
	if mode == 1049 || mode == 1047 || mode == 47 {
		m.alt = 0
		if on {
			m.alt = mode
		}
		return
	}
	for _, known := range privateModes() {
		if known.mode != mode {
			continue
		}
		if m.private == nil {
			m.private = map[int]bool{}
		}
		if m.private[mode] = true; on == known.def {
			delete(m.private, mode)
		}
	}
}

// keyboard follows the flags of the kitty keyboard protocol, of which each
// screen has a stack.
func (m *Modes) keyboard(prefix byte, p string) {
	screen := m.screen()
	switch prefix {
	case '>':
		m.pushed[screen] = min(m.pushed[screen]+1, 64)
		m.keyFlags[screen] = keyFlags(p)
	case '<':
		n, err := strconv.Atoi(p)
		if err != nil {
			n = 1
		}
		m.pushed[screen] = max(m.pushed[screen]-max(n, 1), 0)
	case '=':
		m.flags[screen] = p != "" && p != "0" && p != "0;1"
		m.keyFlags[screen] = keyFlags(p)
	}
}

// keyFlags returns the flags of a sequence that sets them, "" unless they are
// digits.
func keyFlags(p string) string {
	if len(p) > 4 || strings.Trim(p, "0123456789;") != "" {
		return ""
	}
	return p
}

func (m *Modes) screen() int {
	if m.alt != 0 {
		return 1
	}
	return 0
}

// colour notes a colour that is set, by OSC 10, 11 or 12, or set back.
func (m *Modes) colour() {
	number, value, _ := strings.Cut(string(m.params), ";")
	n, err := strconv.Atoi(number)
	switch {
	case err != nil:
	case n >= 10 && n <= 12 && value != "" && value[0] != '?':
		m.colours[n-10] = true
	case n >= 110 && n <= 112:
		m.colours[n-110] = false
	}
}

// Undo returns what switches off what is on, "" when nothing is.
func (m *Modes) Undo() string {
	var b strings.Builder
	if m.state != ground { // the terminal is in the middle of a sequence, or of a string
		b.WriteString("\x18\x1b\\")
	}
	for _, known := range privateModes() {
		if m.private[known.mode] {
			fmt.Fprintf(&b, "\x1b[?%d%c", known.mode, map[bool]byte{false: 'l', true: 'h'}[known.def])
		}
	}
	write := func(on bool, sequence string) {
		if on {
			b.WriteString(sequence)
		}
	}
	write(m.keypad, "\x1b>")
	write(m.insert, "\x1b[4l")
	write(m.otherKey, "\x1b[>4m")
	write(m.cursor, "\x1b[0 q")
	write(m.shifted, "\x0f")
	write(m.drawing, "\x1b(B")
	write(m.styled, "\x1b[0m")
	for i, set := range m.colours {
		write(set, fmt.Sprintf("\x1b]%d\x1b\\", 110+i))
	}
	if m.alt != 0 {
		b.WriteString(m.keys(1))
		fmt.Fprintf(&b, "\x1b[?%dl", m.alt)
	}
	b.WriteString(m.keys(0))
	write(m.margins, "\x1b7\x1b[r\x1b8") // which moves the cursor
	return b.String()
}

// keys undoes the keyboard flags of a screen.
func (m *Modes) keys(screen int) (undo string) {
	if n := m.pushed[screen]; n > 0 {
		undo = fmt.Sprintf("\x1b[<%du", n)
	}
	if m.flags[screen] {
		undo += "\x1b[=0u"
	}
	return undo
}
