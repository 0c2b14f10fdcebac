package faults

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/ALRubinger/aileron/e2e/harness"
	"github.com/ALRubinger/aileron/e2e/must"
)

// A killed aileron needs no cleanup by hand: its box goes by itself. This test
// and others after a kill are not parallel: each session that starts on the
// same engine removes what killed ones left, and what shall do so here is the
// warden.
func TestAKilledAileronsBoxEnds(t *testing.T) {
	places(t, func(t *testing.T, u *user) {
		r := u.start("sleep 600")
		// The whole process group, as a terminal or a supervisor would.
		must.Do(t, syscall.Kill(-r.cmd.Process.Pid, syscall.SIGKILL))
		r.end()
		harness.WaitFor(t, "the box ends", func() bool { return !r.box.lives() && !r.gateway.lives() })
		harness.WaitFor(t, "its containers go",
			func() bool { return !strings.Contains(u.left(), "container") && !strings.Contains(u.left(), "process") })
		if list := u.must("session", "list").out; !strings.Contains(list, "unclean") {
			t.Errorf("session list says %q, want an unclean end", list)
		}
		u.must(u.boxArgs("true")...)
		harness.WaitFor(t, "the directory goes with the next session",
			func() bool { u.must(u.boxArgs("true")...); return u.left() == "" })
		r.nothing()
		u.must("audit", "verify")
	})
}

// A removal that is under way when aileron is killed is not cut short: what is
// removed by half has no name that the next session would know it by.
func TestAKilledAileronsRemovalIsFinished(t *testing.T) {
	engines(t, func(t *testing.T, u *user) {
		const tries = 10
		var r *running
		for try := 0; ; try++ {
			r = u.start("mkdir /tmp/many; cd /tmp/many; i=0; while [ $i -lt 30000 ]; do : >$i; i=$((i+1)); done")
			harness.WaitFor(t, "the removal begins", func() bool { return !r.box.lives() })
			_ = r.cmd.Process.Signal(syscall.SIGKILL)
			if res := r.end(); res.code == -1 { // by the signal
				break
			}
			if try == tries {
				t.Fatalf("the removal was quicker than this test in %d tries", tries)
			}
			r.nothing()
			_ = os.Remove(filepath.Join(u.project, "up"))
		}
		harness.WaitFor(t, "its containers go",
			func() bool { return !strings.Contains(u.left(), "container") && !strings.Contains(u.left(), "process") })
		harness.WaitFor(t, "the directory goes with the next session",
			func() bool { u.must(u.boxArgs("true")...); return u.left() == "" })
		r.nothing()
	})
}

// Without a warden the box has lost its line all the same, and goes with the
// next session. That may be one of another suite, on the same engine, before
// the box has looked: then another is tried.
func TestTheNextSessionCleansUpAfterAKilledWarden(t *testing.T) {
	engines(t, func(t *testing.T, u *user) {
		const tries = 10
		for range tries {
			if u.cutLine() {
				return
			}
			t.Log("a session of another suite cleaned up before the box had looked")
			u = newUser(t, u.engine)
		}
		t.Errorf("in none of %d tries did the box find its line cut", tries)
	})
}

// cutLine kills a session and its warden, and requires that the box then
// reaches nothing, and that the next session cleans up. It reports whether the
// box lived long enough to try.
func (u *user) cutLine() (tried bool) {
	u.t.Helper()
	r := u.start(until("go") + "curl -sS --max-time 20 https://api.echo.example/echo; echo $? > code; mv code cut; " +
		"sleep 600")
	kill(u.t, r.child("warden"), syscall.SIGKILL)
	r.signal(syscall.SIGKILL)
	r.end()
	u.say("go")
	harness.WaitFor(u.t, "the box finds its line cut, or is removed",
		func() bool { return u.made("cut") || !r.box.lives() })
	code, err := os.ReadFile(filepath.Join(u.project, "cut"))
	if err == nil && string(code) == "0\n" || len(u.origin.Seen()) != 0 {
		u.t.Errorf("curl ended with %q, and the stub saw %d requests", code, len(u.origin.Seen()))
	}
	harness.WaitFor(u.t, "the next sessions clean up", func() bool { u.must(u.boxArgs("true")...); return u.left() == "" })
	r.nothing()
	return err == nil
}

func TestAKilledWardenIsNotMissedByTheSession(t *testing.T) {
	t.Parallel()
	places(t, func(t *testing.T, u *user) {
		r := u.start(until("go") + get + "; exit 7")
		kill(t, r.child("warden"), syscall.SIGKILL)
		u.say("go")
		if res := r.end(); res.code != 7 || len(u.origin.Seen()) != 1 {
			t.Errorf("exit %d with %d requests: %s", res.code, len(u.origin.Seen()), res.err)
		}
		r.nothing()
	})
}

// A stopped aileron is a living one: nothing removes its box, and it goes on
// where it was.
func TestAStoppedAileronGoesOn(t *testing.T) {
	t.Parallel()
	places(t, func(t *testing.T, u *user) {
		r := u.start(until("go") + get + "; exit 7")
		r.signal(syscall.SIGSTOP)
		u.say("go")
		u.must(u.boxArgs("true")...)
		u.must("sandbox", "prune", "--sandbox", u.engine)
		if !r.box.lives() || !r.gateway.lives() {
			t.Error("its box was taken away")
		}
		r.signal(syscall.SIGCONT)
		if res := r.end(); res.code != 7 || len(u.origin.Seen()) != 1 {
			t.Errorf("exit %d with %d requests: %s", res.code, len(u.origin.Seen()), res.err)
		}
		r.nothing()
	})
}

func TestADiskThatTakesNothingEndsTheStart(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(t *testing.T, home string){
		"full": func(t *testing.T, home string) {
			f, err := os.Create(filepath.Join(home, "fill"))
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			for err == nil {
				_, err = f.Write(make([]byte, 4096))
			}
		},
		"read-only": func(t *testing.T, home string) {
			must.Do(t, syscall.Mount("", home, "", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			engines(t, func(t *testing.T, u *user) {
				if os.Geteuid() != 0 {
					harness.Need(t, "root, to mount a small file system")
				}
				full := filepath.Join(filepath.Dir(u.home), "d")
				must.Do(t, os.Rename(u.home, full+".was"))
				must.Do(t, os.Mkdir(u.home, 0o700))
				if err := syscall.Mount("tmpfs", u.home, "tmpfs", 0, "size=4m,mode=700"); err != nil {
					harness.Need(t, "a small file system: "+err.Error())
				}
				t.Cleanup(func() {
					if err := syscall.Unmount(u.home, 0); err != nil {
						t.Errorf("something still uses the home: %v", err)
					}
				})
				spoil(t, u.home)
				r := u.run(u.boxArgs("true")...)
				if r.code != 1 || !isFailure(r.err) || !strings.Contains(r.err, "check the disk") {
					t.Errorf("exit %d: %q", r.code, r.err)
				}
				if dirs, _ := os.ReadDir(filepath.Join(u.home, "sessions")); len(dirs) > 0 {
					t.Errorf("left: %v", dirs)
				}
				for _, pid := range pids() {
					if line := args(pid); len(line) > 2 && line[2] == u.home {
						t.Errorf("left: %v", line)
					}
				}
			})
		})
	}
}
