package mcpserver

import (
	"slices"
	"strings"
	"testing"
)

// Only what cannot be written is given back: the rest is not in the file.
func TestOnlyPagesOfTheProgramsFileAreGivenBack(t *testing.T) {
	const maps = `00400000-01a2b000 r-xp 00000000 08:01 1234567                            /usr/bin/ail eron
01a2b000-02c00000 r--p 0162b000 08:01 1234567                            /usr/bin/ail eron
02c00000-02d00000 rw-p 02800000 08:01 1234567                            /usr/bin/ail eron
02d00000-02e00000 r--p 00000000 00:00 0                                  /usr/bin/ail eron
02e00000-02f00000 r-xs 00000000 08:01 1234567                            /usr/bin/ail eron
c000000000-c000400000 rw-p 00000000 00:00 0
7f0000000000-7f0000001000 r-xp 00000000 08:01 99                         /lib/x86_64-linux-gnu/libc.so.6
7f0000002000-7f0000003000 r-xp 00000000 08:01 98                         /other/usr/bin/ail eron
garbage
7ffc00000000-7ffc00001000 r-xp 00000000 00:00 0                          [vdso]
`
	want := [][2]uintptr{{0x400000, 0x1a2b000}, {0x1a2b000, 0x2c00000}}
	if got := programMaps(strings.NewReader(maps), "/usr/bin/ail eron"); !slices.Equal(got, want) {
		t.Errorf("programMaps = %x, want %x", got, want)
	}
	shrink() // of this process, which goes on
}
