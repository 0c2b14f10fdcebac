package hostfiles

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/ALRubinger/aileron/e2e/must"
)

// A large project is not opened once more for each of its files.
func TestADirectoryIsOpenedOnce(t *testing.T) {
	dir := t.TempDir()
	files := map[string]string{"deep/er/tool*": "x"}
	for i := range 20 {
		files[fmt.Sprintf("deep/er/%d.go", i)] = "package x\n"
	}
	write(t, dir, files)
	fd := must.Get(unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK))(t)
	events := os.NewFile(uintptr(fd), "inotify")
	defer events.Close()
	// With the ends too: the kernel makes one event of two that are the same and follow each other.
	must.Get(unix.InotifyAddWatch(fd, filepath.Join(dir, "deep"), unix.IN_OPEN|unix.IN_CLOSE))(t)
	if s := Take(t.Context(), dir); s.Incomplete || s.entries["deep/er/tool"].when != whenExecuted {
		t.Fatalf("Take = %+v", s)
	}
	raw := make([]byte, 64<<10)
	n := must.Get(events.Read(raw))(t)
	opened := 0
	for raw = raw[:n]; len(raw) > 0; {
		mask, name := binary.NativeEndian.Uint32(raw[4:]), binary.NativeEndian.Uint32(raw[12:])
		if raw = raw[unix.SizeofInotifyEvent+name:]; name == 0 && mask&unix.IN_OPEN != 0 {
			opened++
		}
	}
	if opened > 2 { // once for its entries, and once on the way to the file that can be executed
		t.Errorf("a directory above 21 files was opened %d times", opened)
	}
}
