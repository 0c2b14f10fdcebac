package imagefs

import (
	"errors"
	"io/fs"
	"slices"
	"strings"
	"testing"
)

// Whatever links an image has, a name that resolves leads to a path inside the
// image, in the form of io/fs, that is free of links: it leads to itself.
func FuzzResolve(f *testing.F) {
	f.Add("etc/a\netc/b -> ../a\nusr -> /etc", "usr/b")
	f.Add("etc/ssl/certs -> ../../../../pki\npki", "etc/ssl/certs/x")
	f.Add("etc/a -> b\netc/b -> a", "etc/a/../b")
	f.Add("etc/a -> a/a/a/a\nx -> .\ny -> ..", "y/x/y/etc/a")
	f.Add("etc -> /\netc/etc", "etc/etc/etc")
	f.Fuzz(func(t *testing.T, links, name string) {
		etc := Tree{nodes: map[string]Node{}}
		outside := map[string]Node{}
		for line := range strings.SplitSeq(links, "\n") {
			at, target, isLink := strings.Cut(line, " -> ")
			node := Node{Mode: fs.ModeDir | 0o755}
			if isLink {
				node = Node{Mode: fs.ModeSymlink | 0o777, Link: target}
			}
			if below(at, Etc) {
				etc.nodes[at] = node
			}
			outside[at] = node
		}
		lstat := func(name string) (Node, error) {
			if n, ok := outside[name]; ok {
				return n, nil
			}
			return Node{}, fs.ErrNotExist
		}
		image := New(etc, Source{Lstat: lstat})
		place, err := Resolve(image, name)
		if err != nil {
			if place.Path != "" || place.Exists() {
				t.Fatalf("Resolve(%q) = %+v with the error %v", name, place, err)
			}
			return
		}
		if !fs.ValidPath(place.Path) {
			t.Fatalf("Resolve(%q) leads to %q, which is no path of io/fs", name, place.Path)
		}
		again, err := Resolve(image, place.Path)
		if err != nil || again.Path != place.Path || again.Exists() != place.Exists() {
			t.Errorf("Resolve(%q) leads to %+v, and that to %+v, %v", name, place, again, err)
		}
		if place.Exists() && place.Info.Mode()&fs.ModeSymlink != 0 {
			t.Errorf("Resolve(%q) leads to the link %s", name, place.Path)
		}
		for _, dir := range place.Missing {
			if _, err := image.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("Resolve(%q): %s is missing, but Stat returns %v", name, dir, err)
			}
		}
		outermostFirst := slices.IsSortedFunc(place.Missing, func(a, b string) int { return len(a) - len(b) })
		if !outermostFirst && !strings.Contains(links, "..") {
			t.Errorf("Resolve(%q): missing %q, want the outermost first", name, place.Missing)
		}
	})
}
