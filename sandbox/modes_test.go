package sandbox

import (
	"strings"
	"testing"
)

func TestWhatAStreamSwitchesOnIsUndone(t *testing.T) {
	for _, c := range []struct{ what, in, want string }{
		{"plain text", "hello \x1b[H\x1b[2J\x1b[10;3Hworld é 東\r\n", ""},
		{"the alternate screen", "\x1b[?1049h", "\x1b[?1049l"},
		{"and back", "\x1b[?1049h\x1b[?25l...\x1b[?25h\x1b[?1049l", ""},
		{"older alternate screens", "\x1b[?47h", "\x1b[?47l"},
		{"several at once", "\x1b[?1000;1002;1006h", "\x1b[?1000l\x1b[?1002l\x1b[?1006l"},
		{"some of them off again", "\x1b[?1000;1002;1006h\x1b[?1002;1006l", "\x1b[?1000l"},
		{"a hidden cursor", "\x1b[?25l", "\x1b[?25h"},
		{"no wrapping", "\x1b[?7l", "\x1b[?7h"},
		{"synchronized output comes first", "\x1b[?1004h\x1b[?2004h\x1b[?2026h", "\x1b[?2026l\x1b[?1004l\x1b[?2004l"},
		{"a mode that is not known", "\x1b[?31337h\x1b[?h\x1b[?xh", ""},
		{"application keys", "\x1b[?1h\x1b=", "\x1b[?1l\x1b>"},
		{"colours", "\x1b[1;31mred", "\x1b[0m"},
		{"colours, reset", "\x1b[1;31mred\x1b[m \x1b[32mgreen\x1b[0m", ""},
		{"the keyboard's stacks are the screens'",
			"\x1b[>1u\x1b[?1049h\x1b[>5u\x1b[>7u\x1b[<u", "\x1b[<1u\x1b[?1049l\x1b[<1u"},
		{"keyboard flags", "\x1b[=5;1u", "\x1b[=0u"},
		{"a query of them", "\x1b[?u\x1b[u", ""},
		{"other keys", "\x1b[>4;2m", "\x1b[>4m"},
		{"a scroll region", "\x1b[3;20r", "\x1b7\x1b[r\x1b8"},
		{"a cursor's shape", "\x1b[5 q", "\x1b[0 q"},
		{"line drawing", "\x1b(0lqk", "\x1b(B"},
		{"the second character set", "\x1b)0\x0elqk", "\x0f"},
		{"its end", "\x1b(0lqk\x1b(B\x0e\x0f", ""},
		{"the background's colour", "\x1b]11;#202020\x07", "\x1b]111\x1b\\"},
		{"a query of it, and a title", "\x1b]11;?\x1b\\\x1b]0;?1049h\x07", ""},
		{"a colour that is set back", "\x1b]12;red\x1b\\\x1b]112\x07", ""},
		{"C1 controls in UTF-8", "\u009b?1049h\u009d11;red\u009c", "\x1b]111\x1b\\\x1b[?1049l"},
		{"strings that look like sequences", "\x1bP?1049h\x1b\\\x1b_[?1049h\x1b\\", ""},
		{"a line feed inside a sequence", "\x1b[?10\n49h", "\x1b[?1049l"},
		{"a sequence that is given up", "\x1b[?1049\x18h\x1b[?104\x1b[?25l", "\x1b[?25h"},
		{"a full reset", "\x1b[?1049h\x1b[?1000h\x1b=\x1bc", ""},
		{"a soft reset leaves the mouse", "\x1b[?1000h\x1b[?25l\x1b[31m\x1b=\x1b[!p", "\x1b[?1000l"},
		{"a stream that is cut in a sequence", "\x1b[?1049h\x1b[31;", "\x18\x1b\\\x1b[?1049l"},
		{"a stream that is cut in a string", "\x1b]0;title", "\x18\x1b\\"},
		{"a sequence without an end", "\x1b[?1049;" + strings.Repeat("1;", 10_000) + "h", ""},
		{"a string without an end", "\x1b]11;" + strings.Repeat("x", 10_000) + "\x07", "\x1b]111\x1b\\"},
	} {
		var whole, pieces modes
		whole.scan([]byte(c.in))
		for i := range len(c.in) {
			pieces.scan([]byte{c.in[i]})
		}
		if got := whole.undo(); got != c.want {
			t.Errorf("%s: undone by %q, want %q", c.what, got, c.want)
		}
		if got := pieces.undo(); got != c.want {
			t.Errorf("%s, byte by byte: undone by %q, want %q", c.what, got, c.want)
		}
	}
}

// Whatever a program switches on, what undoes it leaves nothing on, and the
// state stays small.
func FuzzModes(f *testing.F) {
	f.Add([]byte("\x1b[?1049h\x1b[>1u\x1b[31m\x1b]11;red\x07\x1b(0\x0e\x1b[4h\x1b[2;5r"))
	f.Add([]byte("\x1b[?1000;1006h\u009b?25l\x1b[=1u\x1bP"))
	f.Fuzz(func(t *testing.T, in []byte) {
		var m modes
		m.scan(in)
		undo := m.undo()
		if len(undo) > 600 || cap(m.params) > 2*maxParams {
			t.Errorf("undone by %d bytes, with %d bytes of parameters", len(undo), cap(m.params))
		}
		m.scan([]byte(undo))
		if left := m.undo(); left != "" {
			t.Errorf("%q is undone by %q, which leaves %q", in, undo, left)
		}
	})
}
