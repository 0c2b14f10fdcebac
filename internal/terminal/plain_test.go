package terminal

import (
	"bytes"
	"testing"
)

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
