package launch

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/sandbox"
	"github.com/ALRubinger/aileron/sandbox/engine"
)

// A native sandbox gets the directories of its command's program. What a sandbox may write to chooses none of them.
func TestWhatASandboxWritesLeadsToNoProgramOfTheHost(t *testing.T) {
	home := t.TempDir()
	dir := must.Get(filepath.EvalSymlinks(must.OpenDir(t)))(t)
	in := func(name string) string { return filepath.Join(dir, name) }
	program := func(at, text string) {
		t.Helper()
		must.Do(t, os.MkdirAll(filepath.Dir(in(at)), 0o755))
		must.Do(t, os.WriteFile(in(at), []byte(text), 0o755))
	}
	link := func(at, to string) {
		t.Helper()
		must.Do(t, os.MkdirAll(filepath.Dir(in(at)), 0o755))
		must.Do(t, os.Symlink(to, in(at)))
	}
	program("private/agent", "")
	program("own/agent", "")
	program("script/agent", "#!/usr/bin/env interp\n")
	program("runtime/interp", "")
	for _, writable := range []string{"project", "data", "other"} {
		link(writable+"/bin/agent", in("private/agent"))
		link(writable+"/bin/interp", in("private/agent"))
		link(writable+"/dir", in("private"))
	}
	program("project/script/agent", "#!/usr/bin/env interp\n")
	link("link", in("project/bin"))
	link("by/agent", in("project/bin/agent"))
	link("bydir/agent", "../project/dir/agent")
	link("mine/agent", in("private/agent"))
	makeRecord(t, home, "A", share{Sources: []string{in("other")}, Writable: []string{in("other")}}, true)
	for _, c := range []struct{ why, path, want string }{
		{"a program of the host", "own", "own"},
		{"a link of the host's", "mine", "mine private"},
		{"a link in the project", "project/bin", ""},
		{"a link in a mount", "data/bin", ""},
		{"a link in the project of another session", "other/bin", ""},
		{"a link in what the sandbox only reads", "fixed/bin", "fixed/bin private"},
		{"a link to a link in the project", "by", "by"},
		{"a link to a directory of the project", "bydir", "bydir"},
		{"a directory of the PATH that is a link", "link", ""},
		{"a directory of the PATH that is a link in the project", "project/dir", ""},
		{"a script of the project", "project/script:runtime", ""},
		{"an interpreter in the project", "script:project/bin", "script"},
		{"another interpreter", "script:project/bin:runtime", "script runtime"},
		{"another program", "project/bin:own", "own"},
	} {
		if c.path == "fixed/bin" {
			link(c.path+"/agent", in("private/agent"))
		}
		var path []string
		for _, d := range filepath.SplitList(c.path) {
			path = append(path, in(d))
		}
		t.Setenv("PATH", strings.Join(path, ":"))
		var want []engine.Mount
		for _, d := range strings.Fields(c.want) {
			want = append(want, engine.Mount{Source: in(d), Target: in(d), ReadOnly: true})
		}
		given := []engine.Mount{{Source: in("data"), Target: "/data"},
			{Source: in("fixed"), Target: "/fixed", ReadOnly: true}}
		b := &sandboxed{Launcher: &Launcher{Home: home, Infof: t.Logf}, dir: in("project"), mounts: slices.Clone(given),
			Sandbox: Sandbox{Command: []string{"agent"}}}
		b.Engine = sandbox.Native
		if err := b.useHostPrograms(); err != nil || !slices.Equal(b.mounts[len(given):], want) {
			t.Errorf("%s: %+v, %v; want %q", c.why, b.mounts[len(given):], err, c.want)
		}
	}
}

// The states of one project, or of all of a home, are removed: none of another home, and none that a sandbox has.
func TestKeptStatesOfNativeSandboxesAreRemoved(t *testing.T) {
	root := must.Get(filepath.EvalSymlinks(t.TempDir()))(t)
	t.Setenv("XDG_STATE_HOME", root)
	home := t.TempDir()
	made := map[string]string{}
	for name, s := range map[string]sandbox.State{
		"a": {Home: home, Project: "/a", Program: "codex"}, "b": {Home: home, Project: "/b", Program: "codex"},
		"b2": {Home: home, Project: "/b", Program: "claude"}, "other": {Home: "/other", Project: "/a", Program: "codex"},
	} {
		spec := sandbox.Spec{Engine: sandbox.Native, Dir: t.TempDir(), State: s}
		p := must.Get(sandbox.Prepare(t.Context(), spec))(t)
		made[name] = must.Get(p.NativeState())(t)
		must.Do(t, os.WriteFile(filepath.Join(made[name], "file"), nil, 0o400))
	}
	left := func() (names []string) {
		for name, dir := range made {
			if _, err := os.Stat(dir); err == nil {
				names = append(names, name)
			}
		}
		return slices.Sorted(slices.Values(names))
	}
	remove := func(project string, want int, wantErr string, wantLeft ...string) {
		t.Helper()
		n, err := Pruning{Home: home, Kind: sandbox.Native}.States(t.Context(), project)
		if n != want || !slices.Equal(left(), wantLeft) ||
			(err == nil) != (wantErr == "") || err != nil && !strings.Contains(err.Error(), wantErr) {
			t.Errorf("of %q: %d are removed, %v, and %q are left; want %d, %q, %q", project, n, err, left(), want, wantErr,
				wantLeft)
		}
	}
	remove("/none", 0, "", "a", "b", "b2", "other")
	remove("/a", 1, "", "b", "b2", "other")
	makeRecord(t, home, "A", share{Sources: []string{"/p", made["b"]}, Writable: []string{"/p", made["b"]}}, true)
	remove("", 1, "remove the state "+made["b"]+": a sandbox uses it", "b", "other")
	must.Do(t, os.RemoveAll(filepath.Join(home, "sessions")))
	remove("", 1, "", "other")
	if dirs := must.Get(filepath.Glob(filepath.Join(root, "aileron-native", "*")))(t); len(dirs) != 1 {
		t.Errorf("%q are left, want that of the other home", dirs)
	}
}

// What a native sandbox keeps is a directory of this host, whose path may have links, and to which it may write.
func TestTheStateOfANativeSandboxIsShared(t *testing.T) {
	dir := must.Get(filepath.EvalSymlinks(t.TempDir()))(t)
	must.Do(t, os.Mkdir(filepath.Join(dir, "real"), 0o700))
	must.Do(t, os.Mkdir(filepath.Join(dir, "project"), 0o700))
	must.Do(t, os.Symlink("real", filepath.Join(dir, "link")))
	t.Setenv("XDG_STATE_HOME", filepath.Join(dir, "link"))
	spec := sandbox.Spec{Engine: sandbox.Native, Dir: filepath.Join(dir, "project")}
	for _, program := range []string{"", "agent"} {
		spec.State.Program = program
		b := &sandboxed{dir: spec.Dir, prepared: must.Get(sandbox.Prepare(t.Context(), spec))(t)}
		got := must.Get(b.shares())(t)
		b.prepared.Close()
		want := []string{spec.Dir}
		if program != "" {
			kept := must.Get(filepath.Glob(filepath.Join(dir, "real", "aileron-native", "*", "*", "*")))(t)
			if want = append(want, kept...); len(kept) != 1 {
				t.Fatalf("%q is kept", kept)
			}
		}
		if !slices.Equal(got.Sources, want) || !slices.Equal(got.Writable, want) {
			t.Errorf("%q: it is shared %+v, want %q", program, got, want)
		}
	}
}
