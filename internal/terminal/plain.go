package terminal

import "io"

// PlainWriter makes plain text of what a program has written to a terminal: escape
// sequences are left out, and lines that overwrite each other follow each other. What
// a full-screen program draws is readable, but not in its place. Control characters
// remain.
type PlainWriter struct {
	to    io.Writer
	modes Modes // whose parser is used
	cr    bool  // the last character returned to the beginning of the line
	blank bool  // the line is empty
	c2    bool  // the last byte may be the first of a C1 control in UTF-8
}

// NewPlainWriter returns a writer of plain text to another.
func NewPlainWriter(to io.Writer) *PlainWriter { return &PlainWriter{to: to, blank: true} }

// Write implements io.Writer.
func (w *PlainWriter) Write(p []byte) (int, error) {
	out := make([]byte, 0, len(p))
	newLine := func() {
		if !w.blank {
			out, w.blank = append(out, '\n'), true
		}
	}
	for _, b := range p {
		was, c2 := w.modes.state, w.c2
		w.modes.Scan([]byte{b})
		if w.c2 = was == ground && b == 0xc2; w.c2 { // perhaps half of a C1 control
			continue
		}
		if c2 && was == ground && w.modes.state == ground {
			out, w.blank = append(out, 0xc2), false
		}
		switch {
		case was == sequence && w.modes.state == ground && b != 0x18 && b != 0x1a:
			switch b {
			case 'H', 'f', 'E', 'F', 'd', 'A', 'B': // another place
				newLine()
			case 'C', 'G': // further to the right
				out = append(out, ' ')
			}
			continue
		case was != ground || w.modes.state != ground:
			continue
		}
		if w.cr && b != '\n' && b != '\r' {
			newLine()
		}
		if w.cr = b == '\r'; w.cr || b == 0x07 || b == 0x0e || b == 0x0f {
			continue
		}
		out, w.blank = append(out, b), b == '\n'
	}
	_, err := w.to.Write(out)
	return len(p), err
}
