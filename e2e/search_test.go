package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// searchBoxes looks for the secrets in all that this user's running boxes
// are: what the engine knows of them, every file that they see, and their
// processes' environment, arguments and memory. It must find the placeholder,
// or else it cannot find anything.
func (u *user) searchBoxes(placeholder string) {
	u.t.Helper()
	boxes := u.boxes()
	if len(boxes) != 2 {
		u.t.Fatalf("the boxes are %q, want one and its gateway", boxes)
	}
	found := map[string]bool{}
	buf := make([]byte, 1<<20)
	look := func(where string, r io.Reader) {
		for _, piece := range search(u.t, buf, where, r, secret[:16], modelKey[:16], placeholder) {
			found[where] = true
			if piece != placeholder {
				u.t.Errorf("%s holds a piece of a secret: %q", where, piece)
			}
		}
	}
	for _, box := range boxes {
		look("inspect", strings.NewReader(u.ask("inspect", box)))
		files := false
		top := map[string][]string{"podman": {"top", box, "hpid"}, "docker": {"top", box, "-eo", "pid"}}[u.engine]
		for pid := range strings.FieldsSeq(u.ask(top...)) {
			if _, err := strconv.Atoi(pid); err != nil {
				continue // the heading
			}
			if !files {
				files = u.files(look, pid)
			}
			for _, name := range []string{"environ", "cmdline"} {
				data, err := os.ReadFile("/proc/" + pid + "/" + name)
				if err == nil {
					look(name, bytes.NewReader(data))
				}
			}
			u.memory(look, pid)
		}
		if !files {
			u.t.Errorf("no file of %s could be read", box)
		}
	}
	for _, where := range []string{"inspect", "environ", "files", "memory"} {
		if !found[where] {
			u.t.Errorf("the placeholder is not in %s: the search finds nothing there", where)
		}
	}
}

// files looks at the files that a process sees, its image's and its mounts'
// alike, unless they are older than the person's home: those are of an image
// that was built before there was a secret. False when the process has ended.
func (u *user) files(look func(string, io.Reader), pid string) bool {
	u.t.Helper()
	root, err := os.OpenRoot("/proc/" + pid + "/root")
	if err != nil {
		return false
	}
	defer root.Close()
	home, err := os.Stat(filepath.Dir(u.home))
	if err != nil {
		u.t.Fatal(err)
	}
	since := home.ModTime()
	seen := 0
	err = fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return nil
		case name == "proc" || name == "sys" || name == "dev":
			return fs.SkipDir
		case !d.Type().IsRegular():
			return nil
		}
		seen++
		info, err := d.Info()
		if err != nil {
			return nil
		}
		if st, ok := info.Sys().(*syscall.Stat_t); ok && time.Unix(st.Ctim.Unix()).Before(since) {
			return nil
		}
		f, err := root.Open(name)
		if err != nil {
			return nil
		}
		defer f.Close()
		look("files", f)
		return nil
	})
	if err != nil {
		u.t.Errorf("walk the files of %s: %v", pid, err)
	}
	return seen > 0
}

// memory looks at all memory that a process may write to and has written to.
// A process that ended meanwhile, and a page that cannot be read, hold
// nothing.
func (u *user) memory(look func(string, io.Reader), pid string) {
	u.t.Helper()
	maps, err := os.ReadFile("/proc/" + pid + "/maps")
	if err != nil {
		return
	}
	mem, err := os.Open("/proc/" + pid + "/mem")
	if err != nil {
		u.t.Logf("the memory of %s cannot be read: %v", pid, err)
		return
	}
	defer mem.Close()
	pages, err := os.Open("/proc/" + pid + "/pagemap")
	if err != nil {
		u.t.Logf("the pages of %s cannot be read: %v", pid, err)
		return
	}
	defer pages.Close()
	for line := range strings.Lines(string(maps)) {
		var from, to int64
		var may string
		if _, err := fmt.Sscanf(line, "%x-%x %s", &from, &to, &may); err != nil || !strings.HasPrefix(may, "rw") {
			continue
		}
		for begin, end := range present(pages, from, to) {
			look("memory", io.NewSectionReader(mem, begin, end-begin))
		}
	}
}

// present are the parts of a range of addresses that are in memory or in swap,
// by a process's pagemap; see proc(5). Runtimes reserve much more than they use.
func present(pagemap io.ReaderAt, from, to int64) iter.Seq2[int64, int64] {
	page := int64(os.Getpagesize())
	return func(yield func(int64, int64) bool) {
		entries := make([]byte, 64<<10)
		run := int64(-1) // where the part begins that we are in
		for at := from; at < to; {
			n, _ := pagemap.ReadAt(entries[:min(int64(len(entries)), (to-at)/page*8)], at/page*8)
			if n < 8 {
				break
			}
			part := entries[:n/8*8]
			// The top two bits: in memory, in swap.
			if run < 0 && part[7]>>6 == 0 && bytes.Equal(part[8:], part[:len(part)-8]) {
				at += int64(len(part)) / 8 * page
				continue
			}
			for ; len(part) > 0; part = part[8:] {
				switch there := part[7]>>6 != 0; {
				case there && run < 0:
					run = at
				case !there && run >= 0:
					if !yield(run, at) {
						return
					}
					run = -1
				}
				at += page
			}
		}
		if run >= 0 {
			yield(run, to)
		}
	}
}

// search reads r to its end and returns the pieces that are in it, also where
// they span two reads.
func search(t *testing.T, buf []byte, where string, r io.Reader, pieces ...string) []string {
	t.Helper()
	const overlap = 64 // no piece is longer
	var found []string
	kept := 0
	for {
		n, err := io.ReadFull(r, buf[kept:])
		for _, piece := range pieces {
			if bytes.Contains(buf[:kept+n], []byte(piece)) && !slices.Contains(found, piece) {
				found = append(found, piece)
			}
		}
		if err != nil {
			if where != "memory" && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Errorf("read %s: %v", where, err)
			}
			return found
		}
		kept = copy(buf, buf[kept+n-overlap:kept+n])
	}
}
