package homes

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/ALRubinger/aileron/e2e/harness"
	"github.com/ALRubinger/aileron/e2e/must"
)

// mounted moves the home of u onto a file system of its own.
func (u *user) mounted(options string) {
	u.t.Helper()
	was := u.home
	u.home = filepath.Join(filepath.Dir(was), "m")
	must.Do(u.t, os.Mkdir(u.home, 0o700))
	if err := syscall.Mount("tmpfs", u.home, "tmpfs", 0, options+",mode=700"); err != nil {
		harness.Need(u.t, "a small file system: "+err.Error())
	}
	home := u.home
	u.t.Cleanup(func() { _ = syscall.Unmount(home, syscall.MNT_DETACH) })
	harness.Copy(u.t, was+"/.", u.home)
}

// changesOf is every command that changes what is in force, with u's own files.
func (u *user) changesOf() [][]string {
	u.t.Helper()
	fresh := filepath.Join(u.t.TempDir(), "fresh")
	must.Do(u.t, os.WriteFile(fresh, []byte("another long passphrase"), 0o600))
	return [][]string{
		{"connector", "install", "../../examples/connectors/github", "--yes"},
		{"connector", "remove", echoFQN},
		{"binding", "setup", echoFQN, "--identity", "home", "--secret-stdin"},
		{"binding", "rebind", echoWork, "--secret-stdin"},
		{"binding", "revoke", echoWork, "--yes"},
		{"vault", "lock"},
		{"vault", "unlock"},
		{"vault", "passwd", "--new-passphrase-file", fresh},
	}
}

// force is what is in force, byte for byte.
func (u *user) force() string {
	u.t.Helper()
	var all strings.Builder
	for _, dir := range []string{"store/connectors", "vault"} {
		err := filepath.WalkDir(filepath.Join(u.home, dir), func(path string, d os.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			data, err := os.ReadFile(path)
			all.WriteString(path + " " + string(data) + "\n")
			return err
		})
		if err != nil {
			u.t.Fatal(err)
		}
	}
	return all.String()
}

// refused runs what must change nothing, and fail with an error and its hint.
func (u *user) refused(args []string, wants ...string) {
	u.t.Helper()
	before := u.force()
	r := u.run(args...)
	last := r.err[max(strings.LastIndex(r.err, "\naileron: ")+1, 0):]
	if r.code != 1 || !strings.HasPrefix(last, "aileron: ") {
		u.t.Errorf("%q: exit %d: %s", args, r.code, r.err)
	}
	for _, want := range wants {
		if !strings.Contains(last, want) {
			u.t.Errorf("%q does not say %q: %s", args, want, last)
		}
	}
	if now := u.force(); now != before {
		u.t.Errorf("%q changed what is in force:\n%s\nwas\n%s", args, now, before)
	}
}

func TestAFullHomeLosesNothing(t *testing.T) {
	u := newUser(t)
	u.mounted("size=1m")
	fill := filepath.Join(u.home, "fill")
	f, err := os.Create(fill)
	if err != nil {
		t.Fatal(err)
	}
	for err == nil {
		_, err = f.Write(make([]byte, 4096))
	}
	must.Do(t, f.Close())
	prune := []string{"audit", "prune", "--before", "0s", "--yes"}
	for _, args := range append(u.changesOf(), []string{"run", "--", "true"}, prune) {
		want := "disk"
		if args[0] == "connector" && args[1] == "install" { // its files are written before its intent is
			want = "no space left on device; hint: free some space"
		}
		u.refused(args, want)
	}
	for _, args := range [][]string{{"connector", "list"}, {"connector", "verify"}, {"binding", "list"},
		{"vault", "status"}} {
		u.must(args...)
	}
	must.Do(t, os.Remove(fill))
	u.must("run", "--", "true")
	u.must("audit", "verify")
	for _, args := range u.changesOf()[2:7] {
		u.must(args...)
	}
	u.must("audit", "verify")
}

func TestAReadOnlyHomeIsReadAndNotChanged(t *testing.T) {
	u := newUser(t)
	u.mounted("size=16m")
	must.Do(t, syscall.Mount("", u.home, "", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""))
	for _, args := range append(u.changesOf(), []string{"run", "--", "true"}) {
		u.refused(args)
	}
	for _, args := range [][]string{
		{"connector", "list"}, {"connector", "verify"}, {"binding", "list"}, {"binding", "inspect", echoWork},
		{"vault", "status"},
		{"spec", "match", "GET", "https://api.echo.example/echo"}, {"session", "list"}, {"audit", "verify"},
	} {
		if r := u.must(args...); r.err != "" && args[0] != "session" {
			t.Errorf("%q says %s", args, r.err)
		}
	}
	if out := u.must("audit", "list").out; !strings.Contains(out, "binding.created") {
		t.Errorf("audit list: %s", out)
	}
	must.Do(t, syscall.Mount("", u.home, "", syscall.MS_REMOUNT, ""))
	u.must("vault", "lock")
	u.must("audit", "verify")
}

// The home goes away under a session: by a rename, or with the file system that
// it is on. No credential leaves, the session reports it once, and ends as ever.
func TestASessionWhoseHomeVanishesSendsNoCredential(t *testing.T) {
	for name, c := range map[string]struct {
		reason string
		away   func(u *user) (back func() error)
	}{
		"renamed": {"audit_unavailable", func(u *user) func() error {
			must.Do(u.t, os.Rename(u.home, u.home+".away"))
			return func() error { return os.Rename(u.home+".away", u.home) }
		}},
		"unmounted": {"home_missing", func(u *user) func() error {
			must.Do(u.t, syscall.Unmount(u.home, syscall.MNT_DETACH))
			return nil
		}},
		"replaced": {"home_missing", func(u *user) func() error {
			must.Do(u.t, os.Rename(u.home, u.home+".away"))
			must.Do(u.t, os.Mkdir(u.home, 0o700))
			return nil
		}},
	} {
		t.Run(name, func(t *testing.T) {
			u := newUser(t)
			if name == "unmounted" {
				u.mounted("size=16m")
			}
			s := u.serve("")
			s.until("")
			back := c.away(u)
			s.until(c.reason, "", "audit_unavailable", "home_missing")
			missing := "the home is missing; requests that need a connector are refused"
			harness.WaitFor(t, "the session says it", func() bool { return strings.Contains(s.errs.String(), missing) })
			sent := len(s.origin.Seen())
			for range 20 {
				if got := s.reason(); got != c.reason {
					t.Errorf("the reason is %q, want %q", got, c.reason)
				}
			}
			if said := s.errs.String(); strings.Count(said, missing) != 1 {
				t.Errorf("stderr: %s", said)
			}
			if now := len(s.origin.Seen()); now != sent {
				t.Errorf("%d requests were sent", now-sent)
			}
			if back != nil {
				must.Do(t, back())
				s.until("", "audit_unavailable", "home_missing")
			}
			if code := s.stop(); code != 0 {
				t.Errorf("exit %d\n%s", code, s.errs)
			}
		})
	}
}
