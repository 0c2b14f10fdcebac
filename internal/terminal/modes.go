package terminal

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Modes follows what a program's output switches on in a terminal, so that it
// can be undone when the program cannot do it itself. It reads a stream in any
// pieces, keeps a bounded state, and changes nothing of the stream. The zero
// value is a terminal on which nothing is switched on.
type Modes struct {
	private  map[int]bool // the known private modes that are not as they are by default
	alt      int          // the mode that switched to the alternate screen; 0: the normal one
	pushed   [2]int       // keyboard flags on the stacks of the normal and the alternate screen
	flags    [2]bool      // keyboard flags were set without a push
	keyFlags [2]string    // the keyboard flags that were set last, short and of digits; "": none are known
	keypad   bool         // sends application codes
	insert   bool         // characters are inserted
	styled   bool         // colours or attributes
	drawing  bool         // letters are line drawing characters
	shifted  bool         // the second character set is selected
	margins  bool         // only a part of the screen scrolls
	cursor   bool         // the cursor has another shape
	otherKey bool         // xterm's modifyOtherKeys
	colours  [3]bool      // of text, background and cursor

	replies []byte // to the questions that no one has answered
	letters int    // see Letters

	state  state
	params []byte // of the sequence that is being read
	seen   bool   // a sequence began since the reader last looked
	c2     bool   // the last byte may be the first of a C1 control in UTF-8
}

// state is where the parser of escape sequences stands.
type state uint8

const (
	ground   state = iota
	escape         // after ESC
	charset        // after ESC (
	other          // after ESC and another intermediate byte
	sequence       // after CSI
	osc            // after OSC
	text           // in a string of another kind
)

// maxParams bounds what is kept of a sequence. What is longer is ignored.
const maxParams = 256

// Scan reads a piece of the stream.
func (m *Modes) Scan(p []byte) {
	for _, b := range p {
		c2 := m.c2
		m.c2 = b == 0xc2
		switch {
		case c2 && b >= 0x80 && b < 0xa0: // C1, as UTF-8 has it: ESC and a letter
			m.control(b)
		case b == 0x1b:
			m.seen = true
			m.end() // ST follows, or something that ends a string as well
			m.state = escape
		case b == 0x18, b == 0x1a: // CAN, SUB
			m.state = ground
		case m.state == osc && b == 0x07:
			m.end()
		default:
			m.seen = m.seen || m.state != ground
			m.step(b)
		}
	}
}

// Letters returns how many Latin letters the stream has put on the screen. A program that draws its screen writes many
// of them, and one that moves a picture or counts seconds few.
func (m *Modes) Letters() int { return m.letters }

// control acts on a C1 control.
func (m *Modes) control(b byte) {
	m.seen = true
	m.end()
	m.state = escape
	m.step(b - 0x40)
}

// end leaves a string, or a sequence.
func (m *Modes) end() {
	if m.state == osc {
		m.colour()
	}
	m.state = ground
}

// step reads a byte where it means no end.
func (m *Modes) step(b byte) {
	switch m.state {
	case ground:
		switch {
		case b == 0x0e || b == 0x0f: // SO, SI
			m.shifted, m.seen = b == 0x0e, true
		case b >= 'a' && b <= 'z', b >= 'A' && b <= 'Z':
			m.letters++
		}
	case escape:
		m.escaped(b)
	case charset:
		m.drawing, m.state = b == '0', ground
	case other:
		if b >= 0x30 {
			m.state = ground
		}
	case sequence:
		switch {
		case b >= 0x40 && b < 0x7f:
			m.state = ground
			m.apply(b)
		case b >= 0x20:
			m.keep(b)
		}
	case osc:
		m.keep(b)
	case text:
	}
}

// keep adds to the parameters; a sequence that is too long has none that are
// known.
func (m *Modes) keep(b byte) {
	switch {
	case len(m.params) < maxParams:
		m.params = append(m.params, b)
	case m.state == sequence:
		m.params[0] = '!'
	}
}

// escaped reads the byte after ESC.
func (m *Modes) escaped(b byte) {
	m.state, m.params = ground, m.params[:0]
	switch b {
	case '[':
		m.state = sequence
	case ']':
		m.state = osc
	case 'P', 'X', '^', '_':
		m.state = text
	case '(':
		m.state = charset
	case '=':
		m.keypad = true
	case '>':
		m.keypad = false
	case 'c': // a full reset
		*m = Modes{params: m.params}
	default:
		if b >= 0x20 && b < 0x30 {
			m.state = other
		}
	}
}

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

// maxReplies bounds what a terminal has to say to a program that asks and does not
// listen.
const maxReplies = 256

// Replies returns what a terminal responds to the questions of the output that was
// scanned since the last call. Programs wait for it, and some end without it, so a
// program that no terminal is attached to gets the replies of a plain one whose cursor
// is in the first place.
func (m *Modes) Replies() []byte {
	r := m.replies
	m.replies = nil
	return r
}

// reply notes the reply to a question for the state or the kind of the terminal, with
// the control sequences of ECMA-48 (DSR) and of the VT220 (DA).
func (m *Modes) reply(prefix, p string, final byte) {
	text := ""
	switch prefix + p + string(final) {
	case "\x005n":
		text = "\x1b[0n" // it works
	case "\x006n":
		text = "\x1b[1;1R" // the cursor
	case "?6n":
		text = "\x1b[?1;1R"
	case "\x00c", "\x000c":
		text = "\x1b[?62;22c" // a VT220 with colours
	}
	if len(m.replies)+len(text) <= maxReplies {
		m.replies = append(m.replies, text...)
	}
}
