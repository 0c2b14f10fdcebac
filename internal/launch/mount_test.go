package launch

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/internal/hostfiles"
	"github.com/ALRubinger/aileron/internal/session"
	"github.com/ALRubinger/aileron/sandbox"
	"github.com/ALRubinger/aileron/sandbox/engine"
	"github.com/ALRubinger/aileron/vault/keeper"
)

// mountables returns a user's directory with aileron's home, and a directory beside it with links to what is refused.
func mountables(t *testing.T) (user, home, work string) {
	t.Helper()
	root := must.Get(filepath.EvalSymlinks(t.TempDir()))(t)
	user, work = filepath.Join(root, "user"), filepath.Join(root, "work")
	home = filepath.Join(user, ".aileron")
	for _, dir := range []string{filepath.Join(home, "vault"), filepath.Join(user, "src"), filepath.Join(work, "lib")} {
		must.Do(t, os.MkdirAll(dir, 0o700))
	}
	write(t, filepath.Join(work, "file"), "")
	for name, to := range map[string]string{"to-home": user, "to-vault": filepath.Join(home, "vault"), "to-root": "/",
		"to-lib": "lib"} {
		must.Do(t, os.Symlink(to, filepath.Join(work, name)))
	}
	t.Setenv("HOME", user)
	t.Setenv("XDG_RUNTIME_DIR", "")
	return user, home, work
}

func TestAMountIsParsed(t *testing.T) {
	user, home, work := mountables(t)
	lib, file, src := filepath.Join(work, "lib"), filepath.Join(work, "file"), filepath.Join(user, "src")
	for text, want := range map[string]engine.Mount{
		lib:            {Source: lib, Target: lib},
		lib + ":ro":    {Source: lib, Target: lib, ReadOnly: true},
		lib + ":/lib2": {Source: lib, Target: "/lib2"},
		// Where the session has only files of its own among others, others have room.
		file + ":/usr/local/bin/tool:ro": {Source: file, Target: "/usr/local/bin/tool", ReadOnly: true},
		lib + ":/opt/tools":              {Source: lib, Target: "/opt/tools"},
		lib + ":/lib2/:ro":               {Source: lib, Target: "/lib2", ReadOnly: true},
		file + ":/opt/f:ro":              {Source: file, Target: "/opt/f", ReadOnly: true},
		src:                              {Source: src, Target: src},
		work + "/to-lib:/lib":            {Source: lib, Target: "/lib"},
	} {
		if got, err := ParseMount(text, home); err != nil || got != want {
			t.Errorf("ParseMount(%q) = %+v, %v, want %+v", text, got, err, want)
		}
	}
}

func TestAMountThatReachesMoreThanFilesIsRefused(t *testing.T) {
	user, home, work := mountables(t)
	socket := filepath.Join(work, "socket")
	l := must.Get(net.Listen("unix", socket))(t)
	defer l.Close()
	lib := filepath.Join(work, "lib")
	for text, want := range map[string]string{
		"":                               "not SRC[:DST][:ro]",
		":/x":                            "not SRC[:DST][:ro]",
		lib + ":":                        "not SRC[:DST][:ro]",
		lib + ":/a:/b":                   "not SRC[:DST][:ro]",
		lib + ":/a:rw":                   "not SRC[:DST][:ro]",
		lib + ":relative":                "not an absolute path",
		lib + ":/a/../proc":              "not an absolute path",
		work + "/nothing":                "no such file",
		socket + ":/s":                   "neither a directory nor a file",
		"/dev/null:/x":                   "neither a directory nor a file",
		user + ":/x":                     "your keys",
		filepath.Dir(user) + ":/x":       "your keys",
		home + ":/x":                     "the vault",
		home + "/vault:/x":               "the vault",
		work + "/to-home:/x":             "your keys",
		work + "/to-vault:/x":            "the vault",
		work + "/to-root:/x":             "is refused",
		"/:/x":                           "is refused",
		"/proc:/x":                       "the kernel's",
		"/proc/1:/x":                     "the kernel's",
		"/sys/kernel:/x":                 "the kernel's",
		"/dev/shm:/x":                    "devices",
		"/run:/x":                        "sockets",
		lib + ":/proc/x":                 "/proc is not yours",
		lib + ":/":                       "is not yours",
		lib + ":/etc/aileron":            "/etc is not yours",
		lib + ":/home/agent":             "is not yours",
		lib + ":/home/agent/workspace/x": "is not yours",
		lib + ":/opt":                    "/opt/aileron is not yours",
		lib + ":/opt/aileron/manifests":  "/opt/aileron is not yours",
		lib + ":/var/run/x":              "/var/run is not yours",
		lib + ":/var/lib/aileron/state":  "/var/lib/aileron is not yours",
		lib + ":/var/lib":                "/var/lib/aileron is not yours",
		lib + ":/sbin":                   "/sbin/docker-init is not yours",
		lib + ":/usr/local":              "/usr/local/bin is not yours",
		lib + ":/usr/local/bin":          "/usr/local/bin is not yours",
		lib + ":/usr/bin":                "/usr/bin is not yours",
	} {
		_, err := ParseMount(text, home)
		if err == nil || !strings.Contains(err.Error(), want) || hint.Of(err) == "" || strings.Contains(err.Error(), "\n") {
			t.Errorf("ParseMount(%q) = %v, want %q in one line, and a hint", text, err, want)
		}
	}
}

// projectWithLinks returns a project with a repository, files, and links out of it, and aileron's home.
func projectWithLinks(t *testing.T) (dir, home string) {
	t.Helper()
	user, home, work := mountables(t)
	dir = filepath.Join(work, "project")
	for _, sub := range []string{".git/hooks", "data/.git/hooks", "cache", "run"} {
		must.Do(t, os.MkdirAll(filepath.Join(dir, sub), 0o700))
	}
	write(t, filepath.Join(dir, "data", "file"), "")
	for name, to := range map[string]string{"out": "../lib", "to-home": user, "to-vault": filepath.Join(home, "vault"),
		"to-root": "/", "to-proc": "/proc", "to-git": ".git", "to-data": "data", "loop": "loop"} {
		must.Do(t, os.Symlink(to, filepath.Join(dir, name)))
	}
	return dir, home
}

func TestAMountOfAProjectsFileIsInTheProject(t *testing.T) {
	dir, home := projectWithLinks(t)
	t.Chdir(t.TempDir()) // its sources are relative to the project, wherever aileron is started
	data := filepath.Join(dir, "data")
	for text, want := range map[string]engine.Mount{
		"data:/srv/data":            {Source: data, Target: "/srv/data"},
		"./data/:/srv/data:ro":      {Source: data, Target: "/srv/data", ReadOnly: true},
		"data/file:/opt/file":       {Source: filepath.Join(data, "file"), Target: "/opt/file"},
		"to-data:/srv/data":         {Source: data, Target: "/srv/data"},
		"cache/../data:/srv/data":   {Source: data, Target: "/srv/data"},
		dir + "/data:/srv/data":     {Source: data, Target: "/srv/data"},
		".git:/srv/git:ro":          {Source: filepath.Join(dir, ".git"), Target: "/srv/git", ReadOnly: true},
		".:/srv/project:ro":         {Source: dir, Target: "/srv/project", ReadOnly: true},
		"cache:/home/agent/.m2:ro":  {Source: filepath.Join(dir, "cache"), Target: "/home/agent/.m2", ReadOnly: true},
		"cache:/home/agent/.cache/": {Source: filepath.Join(dir, "cache"), Target: "/home/agent/.cache"},
	} {
		if got, err := ParseProjectMount(text, dir, home); err != nil || got != want {
			t.Errorf("ParseProjectMount(%q) = %+v, %v, want %+v", text, got, err, want)
		}
	}
}

func TestAMountOfAProjectsFileReachesNothingElse(t *testing.T) {
	dir, home := projectWithLinks(t)
	l := must.Get(net.Listen("unix", filepath.Join(dir, "run", "socket")))(t)
	defer l.Close()
	for text, want := range map[string]string{
		"data":                    "it names no place in the sandbox",
		"data:ro":                 "it names no place in the sandbox",
		"data:/a:rw":              "not SRC[:DST][:ro]",
		"../lib:/lib":             "is not in the project",
		"out:/lib":                "is not in the project",
		"cache/../../lib:/lib":    "is not in the project",
		"..:/x":                   "is not in the project",
		"/usr:/x:ro":              "is not in the project",
		"/:/x":                    "is refused",
		"/proc:/x":                "the kernel's",
		"to-root:/x":              "is refused",
		"to-proc:/x":              "the kernel's",
		"to-home:/x":              "your keys",
		"to-vault:/x":             "the vault",
		home + ":/x":              "the vault",
		"~:/x":                    "no such file",
		"$HOME:/x":                "no such file",
		"nothing:/x":              "no such file",
		"loop:/x":                 "too many links",
		"run/socket:/x":           "neither a directory nor a file",
		".:/x":                    "git's hooks",
		".git:/x":                 "git's hooks",
		".git/hooks:/x":           "git's hooks",
		"to-git:/x":               "git's hooks",
		"to-git/hooks:/x":         "git's hooks",
		"data:/":                  "is not yours",
		"data:/etc/aileron/proxy": "/etc is not yours",
		"data:/home/agent":        "is not yours",
		"data:/run/x":             "/run is not yours",
	} {
		_, err := ParseProjectMount(text, dir, home)
		if err == nil || !strings.Contains(err.Error(), want) || hint.Of(err) == "" || strings.Contains(err.Error(), "\n") {
			t.Errorf("ParseProjectMount(%q) = %v, want %q in one line, and a hint", text, err, want)
		}
	}
}

// An image's own AILERON_UNATTENDED has no effect: the session sets it in each sandbox.
func TestEverySandboxIsToldWhetherItIsUnattended(t *testing.T) {
	for unattended, want := range map[bool]string{true: "AILERON_UNATTENDED=1", false: "AILERON_UNATTENDED=0"} {
		m := mediation{kind: unmediated}
		env := m.environment(new(session.Session), "podman", sandbox.Image{}, unattended)
		if !slices.Contains(env, want) {
			t.Errorf("the variables are %q, want %s", env, want)
		}
	}
}

func TestAVariableOfTheSessionIsRefused(t *testing.T) {
	for _, text := range []string{"", "=x", "CI", "1A=b", "A B=c", "A-B=c", "A=\x00",
		"A=" + strings.Repeat("x", maxVariable),
		"AILERON_TOKEN=x", "AILERON_UNATTENDED=1", "HTTPS_PROXY=x",
		"https_proxy=x", "NO_PROXY=*", "SSL_CERT_FILE=/x", "NODE_EXTRA_CA_CERTS=/x"} {
		if err := CheckVariable(text); err == nil || hint.Of(err) == "" {
			t.Errorf("CheckVariable(%.20q) = %v", text, err)
		}
	}
	if err := CheckVariable("a-secret-without-a-name"); err == nil || strings.Contains(err.Error(), "a-secret") {
		t.Errorf("the error has the value: %v", err)
	}
	for _, text := range []string{"CI=1", "A=", "_x=a=b c", "DATABASE_URL=postgres://localhost/x"} {
		if err := CheckVariable(text); err != nil {
			t.Errorf("CheckVariable(%q) = %v", text, err)
		}
	}
}

// A sandbox whose project contains the runtime directory must not reach the process that holds the vault's key.
func TestAProjectHidesTheSocketOfTheVaultsKey(t *testing.T) {
	base := must.Get(filepath.EvalSymlinks(t.TempDir()))(t)
	run, home := filepath.Join(base, "run"), filepath.Join(base, "home")
	for _, dir := range []string{run, home} {
		must.Do(t, os.Mkdir(dir, 0o700))
	}
	t.Setenv("XDG_RUNTIME_DIR", run)
	for _, project := range []string{base, run} {
		dir, mask, err := Project(project, home)
		if err != nil || dir != project || !slices.Contains(mask, keeper.Dir(home)) {
			t.Errorf("the project %s hides %q, %v; want %s too", project, mask, err, keeper.Dir(home))
		}
		if info, err := os.Stat(keeper.Dir(home)); err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("the mask has no directory of its own: %v, %v", info, err)
		}
	}
	if _, _, err := Project(keeper.Dir(home), home); err == nil {
		t.Error("the directory of the socket is a project")
	}
	if _, mask, err := Project(t.TempDir(), home); err != nil || len(mask) != 0 {
		t.Errorf("a project elsewhere hides %q, %v", mask, err)
	}
	// Without a runtime directory the socket is in the home, which is hidden as a whole.
	t.Setenv("XDG_RUNTIME_DIR", filepath.Join(base, "none"))
	if keeper.Dir(home) == filepath.Join(home, "run") {
		if _, mask, err := Project(base, home); err != nil || !slices.Equal(mask, []string{home}) {
			t.Errorf("the project hides %q, %v; want %s", mask, err, home)
		}
	}
}

// The settings of a worktree's repository run programs of the host as those of a project do.
func TestTheCommonDirectoryOfAWorktreeIsProtectedToo(t *testing.T) {
	dir, common := t.TempDir(), t.TempDir()
	for at, text := range map[string]string{
		filepath.Join(dir, ".git"): "gitdir: x\n", filepath.Join(dir, "Makefile"): "x",
		filepath.Join(common, "config"): "[core]\n\tbare = false\n", filepath.Join(common, "hooks/pre-push"): "x",
		filepath.Join(common, "worktrees/w/HEAD"):            "x",
		filepath.Join(common, "worktrees/w/config.worktree"): "[core]\n\tbare = false\n",
	} {
		must.Do(t, os.MkdirAll(filepath.Dir(at), 0o755))
		must.Do(t, os.WriteFile(at, []byte(text), 0o644))
	}
	w := watchHostFiles(t.Context(), dir, common)
	w.wait()
	for all, want := range map[bool]string{
		false: ".git " + common + "/hooks", // the file of a worktree could be replaced by a directory
		true: strings.Join([]string{".git", "Makefile", common + "/hooks", common + "/config",
			common + "/worktrees/w/config.worktree"}, " "),
	} {
		covers := must.Get(w.cover(filepath.Join(t.TempDir(), "c"), all, nil))(t)
		var got []string
		for _, c := range covers {
			got = append(got, c.Path)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("with all %v: %v, want %s", all, got, want)
		}
	}
}

// A sandbox that could rename .git, or make the hooks that are not there, would need no hook that it can write to.
func TestGitsHooksCannotBeReplacedNorMade(t *testing.T) {
	dir, to := t.TempDir(), filepath.Join(t.TempDir(), "c")
	hooks := filepath.Join(dir, ".git/hooks")
	must.Do(t, os.Mkdir(filepath.Dir(hooks), 0o755))
	w := watchHostFiles(t.Context(), dir)
	w.wait()
	git := sandbox.Cover{Source: filepath.Join(dir, ".git"), Path: ".git", Held: true}
	covers, err := w.cover(to, false, []sandbox.Cover{git})
	want := []sandbox.Cover{git, {Source: to + "-no-hooks", Path: ".git/hooks"}}
	if err != nil || !slices.Equal(covers, want) {
		t.Fatalf("%v, %v; want %v", covers, err, want)
	}
	if entries, err := os.ReadDir(to + "-no-hooks"); err != nil || len(entries) > 0 {
		t.Errorf("%v, %v", entries, err)
	}
	// The engine makes the mount point.
	must.Do(t, os.Mkdir(hooks, 0o755))
	w.removeMade()
	if _, err := os.Lstat(hooks); err == nil {
		t.Error("the directory that the engine made is left")
	}
	must.Do(t, os.MkdirAll(filepath.Join(hooks, "the-persons-own"), 0o755))
	if w.removeMade(); len(hostfiles.HookDirs(dir)) != 1 {
		t.Error("hooks that a person made meanwhile are removed")
	}
}

// A file system of the project that does not respond holds neither the start nor the end, and the report says so.
func TestAProjectThatDoesNotRespondIsNotWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		responds := make(chan struct{})
		began := time.Now()
		s := look(t.Context(), func(context.Context) hostfiles.Snapshot {
			<-responds
			return hostfiles.Snapshot{}
		})()
		if took := time.Since(began); !s.Incomplete || took != hostWatchTime+hostWatchGrace {
			t.Errorf("incomplete %v after %v", s.Incomplete, took)
		}
		close(responds)
	})
}

// A sandbox's removal takes a while: the project is looked at as the command has left it.
func TestTheLookAtTheEndIsTakenOnce(t *testing.T) {
	dir := t.TempDir()
	w := watchHostFiles(t.Context(), dir)
	w.wait()
	must.Do(t, os.WriteFile(filepath.Join(dir, ".envrc"), []byte("x"), 0o644))
	w.ended(t.Context())
	w.after()
	must.Do(t, os.WriteFile(filepath.Join(dir, "Makefile"), []byte("x"), 0o644))
	w.ended(t.Context())
	if got := w.changes(t.Context(), true); len(got) != 1 || got[0].Path != ".envrc" {
		t.Errorf("the changes: %+v", got)
	}
}

// What decides about sandboxes, or would be believed by the next one, is no project.
func TestNoPartOfTheHomeIsAProject(t *testing.T) {
	home := t.TempDir()
	for _, part := range []string{
		"", "cache/images", "consents", "detached", "run", "sessions", "store", "trust", "vault/bindings",
	} {
		dir := filepath.Join(home, part)
		must.Do(t, os.MkdirAll(dir, 0o700))
		if _, _, err := Project(dir, home); err == nil {
			t.Errorf("%q of the home is a project", part)
		}
	}
}

// A project is at its own path, so what a mount puts there is the project already, or would change it on the host.
func TestAMountInTheProjectIsFittedToIt(t *testing.T) {
	dir := "/srv/src/project"
	lib := engine.Mount{Source: "/srv/src/lib", Target: "/lib"}
	b := &sandboxed{dir: dir, mounts: []engine.Mount{lib, {Source: dir + "/data", Target: dir + "/data"},
		{Source: dir + "/fixed", Target: dir + "/fixed", ReadOnly: true}}}
	if err := b.fitMounts(); err != nil || !slices.Equal(b.mounts, []engine.Mount{lib}) ||
		!slices.Equal(b.covered, []sandbox.Cover{{Source: dir + "/fixed", Path: "fixed", Own: true}}) {
		t.Errorf("the mounts %+v, the covers %+v, %v", b.mounts, b.covered, err)
	}
	for _, m := range []engine.Mount{{Source: "/srv/src/lib", Target: dir + "/lib"}, {Source: "/srv/src/lib", Target: dir},
		{Source: dir, Target: dir, ReadOnly: true}} {
		b := &sandboxed{dir: dir, mounts: []engine.Mount{m}}
		if err := b.fitMounts(); err == nil || hint.Of(err) == "" {
			t.Errorf("%+v: %v", m, err)
		}
	}
}
