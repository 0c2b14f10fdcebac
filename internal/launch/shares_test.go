package launch

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/internal/approvals"
	"github.com/ALRubinger/aileron/internal/filelock"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/proxy/approval"
)

// What is mounted into a sandbox lies where no other sandbox can put a link in its place.
func TestWhatAnotherSandboxCouldReplaceIsNotShared(t *testing.T) {
	repo := share{Sources: []string{"/r"}, Writable: []string{"/r"}, Held: []string{"/r/.git"}, Mounted: true}
	bare := share{Sources: []string{"/r"}, Writable: []string{"/r"}, Mounted: true}
	starting := share{Sources: []string{"/r/sub"}, Writable: []string{"/r/sub"}}
	begun := share{Sources: []string{"/r/sub"}, Writable: []string{"/r/sub"}, Mounted: true}
	worktree := share{Sources: []string{"/w", "/r/.git"}, Writable: []string{"/w", "/r/.git"}}
	reader := share{Sources: []string{"/w", "/r"}, Writable: []string{"/w"}, Mounted: true}
	for _, c := range []struct {
		why        string
		own, other share
		want       string // "": both may run
	}{
		{"two agents in one project", repo, repo, ""},
		{"projects beside each other", share{Sources: []string{"/rr"}, Writable: []string{"/rr"}}, repo, ""},
		{"below a project", begun, repo, "share /r/sub with the sandbox: that of session A may write to a directory above"},
		{"a mount from another project", share{Sources: []string{"/w", "/r/data"}, Writable: []string{"/w"}}, repo,
			"share /r/data with the sandbox"},
		{"a worktree beside its repository", worktree, repo, ""},
		{"two worktrees beside each other", worktree, worktree, ""},
		{"a worktree of a repository made in the other sandbox", worktree, bare, "share /r/.git with the sandbox"},
		{"below what is read-only there", begun, reader, ""},
		{"above a project", repo, begun, ""},
		{"above a project that is not mounted yet", repo, starting, "session A is about to start in it, in /r/sub"},
		{"above a repository that is not mounted yet", repo, worktree, ""},
	} {
		err := c.own.conflict(map[string]share{"A": c.other})
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s: %v", c.why, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || hint.Of(err) == ""):
			t.Errorf("%s: %v; want %q and a hint", c.why, err, c.want)
		}
	}
}

// What this host runs about a sandbox's requests is nothing that the sandbox, or another one, can replace.
func TestNoSandboxReplacesAProgramOfItsApprovals(t *testing.T) {
	root := must.Get(filepath.EvalSymlinks(t.TempDir()))(t)
	own, other := filepath.Join(root, "own"), filepath.Join(root, "other")
	must.Do(t, os.MkdirAll(own, 0o700))
	must.Do(t, os.MkdirAll(other, 0o700))
	others := map[string]share{"A": {Sources: []string{other}, Writable: []string{other}}}
	path := func(p approvals.Programs) string {
		out := filepath.Join(root, "path")
		told := approvals.NewNotifier(approvals.Notifier{Command: []string{"sh", "-c", "echo $PATH >" + out},
			Environ: p.Environ})
		told.Opened(approval.Question{})
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		go told.Run(ctx)
		var text []byte
		for until := time.Now().Add(must.Patience(time.Minute)); len(text) == 0 && time.Now().Before(until); {
			<-time.After(10 * time.Millisecond)
			text, _ = os.ReadFile(out)
		}
		return strings.TrimSpace(string(text))
	}
	p := approvals.Programs{Environ: approvals.NewEnviron([]string{"PATH=" + own + "/bin:" + other + ":/usr/bin:/bin"})}
	b := &sandboxed{Launcher: &Launcher{Programs: p}, shared: share{Sources: []string{own}, Writable: []string{own}}}
	must.Do(t, b.checkPrograms(others))
	if got := path(p); got != "/usr/bin:/bin" {
		t.Errorf("PATH is %s", got)
	}
	for _, dir := range []string{own, other} {
		b.Programs.Notify = []string{dir + "/tell"}
		if err := b.checkPrograms(others); err == nil || hint.Of(err) == "" {
			t.Errorf("a program in %s: %v", dir, err)
		}
	}
}

// The records of sessions that run are read, and of no others. One that is damaged could share anything.
func TestTheSharesOfRunningSessionsAreKnown(t *testing.T) {
	home := t.TempDir()
	makeRecord(t, home, "A", share{Sources: []string{"/r"}, Writable: []string{"/r"}}, true)
	makeRecord(t, home, "C", share{Sources: []string{"/gone"}, Writable: []string{"/gone"}}, false)
	others, err := otherShares(home, "B")
	if err != nil || len(others) != 1 || others["A"].Writable[0] != "/r" {
		t.Fatalf("%v, %v", others, err)
	}
	if others, err := otherShares(home, "A"); err != nil || len(others) != 0 {
		t.Errorf("its own: %v, %v", others, err)
	}
	must.Do(t, os.WriteFile(filepath.Join(home, "sessions/A", shareFile), []byte("{}"), 0o600))
	if _, err := otherShares(home, "B"); err == nil || !strings.Contains(err.Error(), "session A") {
		t.Errorf("a damaged record: %v", err)
	}
}

// makeRecord makes the directory of a session with its record.
func makeRecord(t *testing.T, home, id string, s share, runs bool) {
	t.Helper()
	dir := filepath.Join(home, "sessions", id)
	must.Do(t, os.MkdirAll(dir, 0o700))
	data := must.Get(json.Marshal(s))(t)
	must.Do(t, os.WriteFile(filepath.Join(dir, shareFile), data, 0o600))
	if runs {
		lock := must.Get(filelock.Locker{}.LockNew(filepath.Join(dir, "lock")))(t)
		t.Cleanup(func() { _ = lock.Close() })
	}
}

// No sandbox sees a capture: neither that of its session nor another one that runs.
func TestACaptureIsNotSharedWithASandbox(t *testing.T) {
	own, theirs, free := t.TempDir(), t.TempDir(), t.TempDir()
	share1 := share{Sources: []string{own, filepath.Join(own, "gone")}}
	others := map[string]share{"A": {Sources: []string{filepath.Join(free, "gone")}}, "B": {Sources: []string{theirs}}}
	link := filepath.Join(t.TempDir(), "link")
	must.Do(t, os.Symlink(free, link))
	for at, want := range map[string]string{
		"": "", free: "", own: "which the sandbox could read", theirs: "which the sandbox of session B could read",
		link: "was replaced meanwhile",
	} {
		path := at
		if at != "" {
			path = filepath.Join(at, "x.har")
			must.Do(t, os.WriteFile(path, nil, 0o600))
		}
		err := share1.checkCapture(path, others)
		if want == "" && err != nil || want != "" &&
			(err == nil || !strings.Contains(err.Error(), want) || hint.Of(err) == "") {
			t.Errorf("a capture in %q: %v, want %q and a hint", at, err, want)
		}
	}
}
