package native

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/ALRubinger/aileron/e2e/must"
)

// The group of a sandbox is made beside that of this process, in the file system of version 2 alone.
func TestTheControlGroupIsBesideThatOfThisProcess(t *testing.T) {
	root, own := t.TempDir(), filepath.Join(t.TempDir(), "cgroup")
	const scope = "0::/user.slice/user@7.service/app.slice/run-1.scope\n"
	write := func(at, text string) { must.Do(t, os.WriteFile(at, []byte(text), 0o644)) }
	for _, c := range []struct{ groups, want string }{
		{scope, "user.slice/user@7.service/app.slice"},
		{"4:memory:/a\n0::/a/b\n", "a"},
		{"0::/\n", ""}, // that of a container
		{"0::/../other.scope\n", ""},
		{"4:memory:/a\n", ""},
	} {
		write(own, c.groups)
		if got, err := cgroupParent(root, own); err == nil {
			t.Errorf("version 1: %q, want none", got)
		}
		write(filepath.Join(root, "cgroup.controllers"), "cpu memory pids\n")
		got, err := cgroupParent(root, own)
		if c.want == "" && err == nil || c.want != "" && got != filepath.Join(root, c.want) {
			t.Errorf("%q: %q, %v; want %q", c.groups, got, err, c.want)
		}
		must.Do(t, os.Remove(filepath.Join(root, "cgroup.controllers")))
	}
}

// A limit whose controller is not delegated has no file: it is named, and all others are written as the kernel takes
// them. The files are a directory's here, and not the kernel's.
func TestLimitsAreWrittenWhereTheirControllersAre(t *testing.T) {
	for _, c := range []struct {
		files      string
		want       map[string]string
		unenforced string
	}{
		{"memory.max memory.swap.max cpu.max pids.max", map[string]string{"memory.max": "1073741824",
			"memory.swap.max": "0", "cpu.max": "150000 100000", "pids.max": "4096"}, ""},
		{"memory.max pids.max", map[string]string{"memory.max": "1073741824", "pids.max": "4096"}, "cpus"},
		{"cpu.max", map[string]string{"cpu.max": "150000 100000"}, "memory"},
		{"", map[string]string{}, "memory cpus"},
	} {
		g := &cgroup{path: t.TempDir()}
		for _, name := range strings.Fields(c.files) {
			must.Do(t, os.WriteFile(filepath.Join(g.path, name), nil, 0o644))
		}
		unenforced := g.limit(Config{Memory: 1 << 30, CPUs: 1.5, Processes: 4096})
		if got := strings.Join(unenforced, " "); got != c.unenforced {
			t.Errorf("with %q: not enforced are %q, want %q", c.files, got, c.unenforced)
		}
		got := map[string]string{}
		for _, e := range must.Get(os.ReadDir(g.path))(t) {
			got[e.Name()] = string(must.Get(os.ReadFile(filepath.Join(g.path, e.Name())))(t))
		}
		if !maps.Equal(got, c.want) {
			t.Errorf("with %q: written is %q, want %q", c.files, got, c.want)
		}
	}
	g := &cgroup{path: t.TempDir()}
	for text, want := range map[string]bool{"": false, "oom 1\noom_kill 0\n": false, "oom 1\noom_kill 2\n": true} {
		must.Do(t, os.WriteFile(filepath.Join(g.path, "memory.events"), []byte(text), 0o644))
		if got := g.outOfMemory(); got != want {
			t.Errorf("memory.events %q: out of memory is %v, want %v", text, got, want)
		}
	}
}

// A group is made beside that of this process, a process begins in it, and it is removed.
func TestAControlGroupIsMadeAndRemoved(t *testing.T) {
	const unified = "/sys/fs/cgroup/unified" // version 2 beside version 1 has no controllers
	parent := cgroupRoot
	if _, err := os.Stat(filepath.Join(parent, "cgroup.controllers")); err != nil {
		parent = unified
	}
	if unix.Access(parent, unix.W_OK) != nil {
		t.Skip("this user may make no control groups of version 2 here")
	}
	g, unenforced := makeCgroupIn(parent, Config{Session: fmt.Sprint("test-", os.Getpid()), Memory: 1 << 30, CPUs: 1}, nil)
	if g == nil {
		t.Fatal("no group was made")
	}
	if parent == unified && len(unenforced) != 2 {
		t.Errorf("%q are not enforced, want memory and cpus, of which there is no controller", unenforced)
	}
	g.remove()
	if _, err := os.Stat(g.path); !os.IsNotExist(err) {
		t.Errorf("%s is left: %v", g.path, err)
	}
}
