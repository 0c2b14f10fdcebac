package terminal

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
		if b == 0x0e || b == 0x0f { // SO, SI
			m.shifted, m.seen = b == 0x0e, true
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
