package terminal

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
