package terminal

import (
	"bytes"
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
		var whole, pieces Modes
		whole.Scan([]byte(c.in))
		for i := range len(c.in) {
			pieces.Scan([]byte{c.in[i]})
		}
		if got := whole.Undo(); got != c.want {
			t.Errorf("%s: undone by %q, want %q", c.what, got, c.want)
		}
		if got := pieces.Undo(); got != c.want {
			t.Errorf("%s, byte by byte: undone by %q, want %q", c.what, got, c.want)
		}
	}
}

// A terminal to which a running program moves gets the modes that the program depends on, and they are undone in it.
func TestWhatAStreamSwitchesOnIsDoneAgain(t *testing.T) {
	for _, c := range []struct{ what, in, want string }{
		{"plain text", "hello", ""},
		{"a full-screen program", "\x1b[?1049h\x1b[>5u\x1b[?1000;1006h\x1b[?2004h\x1b[?25l\x1b[31mred",
			"\x1b[?1049h\x1b[>5u\x1b[?1000h\x1b[?1006h\x1b[?2004h\x1b[?25l"},
		{"what is off again", "\x1b[?1049h\x1b[?1000h\x1b[?1000l\x1b[?1049l", ""},
		{"synchronized output is of one drawing", "\x1b[?2026h\x1b[?2004h", "\x1b[?2004h"},
		{"keyboard flags that are set", "\x1b[=5;1u", "\x1b[=5;1u"},
		{"keyboard flags of a stack that is empty", "\x1b[>5u\x1b[<u", ""},
		{"keyboard flags that are none", "\x1b[>\x1b]11u", ""},
		{"application keys", "\x1b[?1h\x1b=\x1b[>4;2m", "\x1b[?1h\x1b=\x1b[>4;2m"},
	} {
		var program, other Modes
		program.Scan([]byte(c.in))
		if got := program.Redo(); got != c.want {
			t.Errorf("%s: done again by %q, want %q", c.what, got, c.want)
		}
		other.Scan([]byte(program.Redo()))
		if again := other.Redo(); again != c.want {
			t.Errorf("%s: a terminal that has it is at %q, want %q", c.what, again, c.want)
		}
	}
}

func TestAProgramThatAsksItsTerminalGetsAReply(t *testing.T) {
	for _, c := range []struct{ what, in, want string }{
		{"where the cursor is", "x\x1b[6ny", "\x1b[1;1R"},
		{"both forms of it", "\x1b[?6n\x1b[6n", "\x1b[?1;1R\x1b[1;1R"},
		{"whether it works, and what it is", "\x1b[5n\x1b[c\x1b[0c", "\x1b[0n\x1b[?62;22c\x1b[?62;22c"},
		{"what it cannot know", "\x1b[?u\x1b]11;?\x07\x1b[>c\x1b[>0q\x1b[14t", ""},
		{"more than it listens to", strings.Repeat("\x1b[6n", 1000), strings.Repeat("\x1b[1;1R", maxReplies/6)},
	} {
		var m Modes
		m.Scan([]byte(c.in))
		if got := string(m.Replies()); got != c.want {
			t.Errorf("%s: %q, want %q", c.what, got, c.want)
		}
		if again := m.Replies(); len(again) > 0 {
			t.Errorf("%s: the reply comes again: %q", c.what, again)
		}
	}
}

// Whatever a program switches on, what undoes it leaves nothing on, and the
// state stays small.
func FuzzModes(f *testing.F) {
	f.Add([]byte("\x1b[?1049h\x1b[>1u\x1b[31m\x1b]11;red\x07\x1b(0\x0e\x1b[4h\x1b[2;5r"))
	f.Add([]byte("\x1b[?1000;1006h\u009b?25l\x1b[=1u\x1bP"))
	f.Fuzz(func(t *testing.T, in []byte) {
		var m Modes
		m.Scan(in)
		undo := m.Undo()
		if len(undo) > 600 || cap(m.params) > 2*maxParams {
			t.Errorf("undone by %d bytes, with %d bytes of parameters", len(undo), cap(m.params))
		}
		m.Scan([]byte(undo))
		if left := m.Undo(); left != "" {
			t.Errorf("%q is undone by %q, which leaves %q", in, undo, left)
		}
	})
}

func TestATerminalsOutputBecomesPlainText(t *testing.T) {
	for _, c := range []struct{ what, in, want string }{
		{"text", "hello\r\nworld\r\n", "hello\nworld\n"},
		{"colours", "\x1b[1;31mred\x1b[0m plain\n", "red plain\n"},
		{"a title", "\x1b]0;title\x07text\x1b]8;;http://x\x1b\\link", "textlink"},
		{"a progress", "10%\r20%\r\ndone\n", "10%\n20%\ndone\n"},
		{"a screen", "\x1b[?1049h\x1b[2J\x1b[1;1Hone\x1b[2;1Htwo\x1b[Cthree", "one\ntwo three"},
		{"a sequence that is given up", "\x1b[12\x18text", "text"},
		{"a bell and other sets", "a\x07b\x0ec\x0fd\x1b(0e\x1b(B", "abcde"},
		{"other characters", "é 東\t\u009b31mx", "é 東\tx"},
	} {
		var whole, pieces bytes.Buffer
		_, _ = NewPlainWriter(&whole).Write([]byte(c.in))
		w := NewPlainWriter(&pieces)
		for i := range len(c.in) {
			_, _ = w.Write([]byte{c.in[i]})
		}
		if whole.String() != c.want || pieces.String() != c.want {
			t.Errorf("%s: %q and, byte by byte, %q; want %q", c.what, whole.String(), pieces.String(), c.want)
		}
	}
}
