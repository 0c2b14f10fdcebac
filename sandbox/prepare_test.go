package sandbox_test

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/sandbox"
	"github.com/ALRubinger/aileron/sandbox/engine"
)

// specOf is a sandbox that runs a command in the project of b.
func specOf(t *testing.T, kind string, b sandbox.Box) sandbox.Spec {
	s := b.Spec
	s.Engine, s.Build, s.Progress, s.UplinkRoot = kind, "never", t.Output(), filepath.Dir(b.Sockets)
	s.Alive = func(string) bool { return true }
	s.Log = slog.New(slog.NewTextHandler(t.Output(), nil))
	return s
}

func TestASandboxIsPreparedAndThenRun(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, e *sandbox.Engine) {
		b, out, errs := box(t, idleGateway, "sh", "-c", "cat /etc/aileron/from; cat /etc/aileron/given; echo $FOUND; exit 4")
		s := specOf(t, e.Kind(), b)
		s.Limit = func(machine engine.Limits) engine.Limits {
			if machine.Memory < 1<<20 || machine.CPUs < 1 {
				t.Errorf("the machine has %v", machine)
			}
			return engine.Limits{Memory: 128 << 20}
		}
		p := must.Get(sandbox.Prepare(t.Context(), s))(t)
		defer p.Close()
		if !p.Sealed || p.Unsealable != "" || p.Limits.Memory != 128<<20 || p.Engine.Kind() != e.Kind() {
			t.Errorf("sealed: %v %q, limits %v, engine %s", p.Sealed, p.Unsealable, p.Limits, p.Engine.Kind())
		}
		b.Unenforced = func(limits []string) { unenforced(t, limits) }
		b.Files = []sandbox.File{{Path: "/etc/aileron/given", Mode: 0o644, Data: []byte("given\n")}}
		b.Trust = func(image *sandbox.ImageFS) ([]sandbox.File, []string, error) {
			release, err := fs.ReadFile(image, "etc/os-release")
			first, _, _ := strings.Cut(string(release), "\n")
			return []sandbox.File{{Path: "/etc/aileron/from", Mode: 0o644, Data: []byte(first + "\n")}}, []string{"FOUND=5"}, err
		}
		code, err := p.Run(t.Context(), b.Uplink)
		if err != nil || code != 4 ||
			!strings.Contains(out.String(), "Debian") || !strings.HasSuffix(out.String(), "\ngiven\n5\n") {
			t.Errorf("Run = %d, %v: %q %q", code, err, out, errs)
		}
	})
}

// What the caller finds in an image ends the run before anything is made of it.
func TestAnImageThatIsNotTrustedIsNotRun(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, e *sandbox.Engine) {
		b, out, _ := box(t, idleGateway, "echo", "ran")
		p := must.Get(sandbox.Prepare(t.Context(), specOf(t, e.Kind(), b)))(t)
		defer p.Close()
		refused := errors.New("no room for a certificate")
		b.Trust = func(*sandbox.ImageFS) ([]sandbox.File, []string, error) { return nil, nil, refused }
		if code, err := p.Run(t.Context(), b.Uplink); code != 1 || !errors.Is(err, refused) || out.Len() > 0 {
			t.Errorf("Run = %d, %v: %q", code, err, out)
		}
	})
}

// A sandbox without an uplink is not tried for its seal.
func TestASandboxWithoutAnUplinkIsNotSealed(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, e *sandbox.Engine) {
		b, _, _ := box(t, idleGateway, "true")
		s := specOf(t, e.Kind(), b)
		s.UplinkRoot = ""
		p := must.Get(sandbox.Prepare(t.Context(), s))(t)
		defer p.Close()
		if p.Sealed || p.Unsealable != "" || p.Limits != (engine.Limits{}) {
			t.Errorf("sealed: %v %q, limits %v", p.Sealed, p.Unsealable, p.Limits)
		}
	})
}

func TestAReadOnlySandboxWritesOnlyWhereItMay(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, e *sandbox.Engine) {
		for name, prepare := range map[string]func(project string) error{
			"as the project's owner":  func(dir string) error { return os.Chown(dir, 1234, 1234) },
			"as root":                 func(string) error { return nil },
			"as the image's own user": func(dir string) error { return os.Chmod(dir, 0o777) },
		} {
			t.Run(name, func(t *testing.T) {
				b, out, errs := box(t, idleGateway, "sh", "-c", `cat /etc/aileron/deep/note; cat /etc/ssl/certs/ca-certificates.crt
					for at in /etc /usr/local/bin /root / /tmp /var/tmp "$HOME" .; do
						touch "$at/mark" 2>/dev/null && echo "wrote $at"
					done
					printf '#!/bin/sh\necho ran %s\n' home > "$HOME/tool" && chmod +x "$HOME/tool" && "$HOME/tool"; rm -f mark`)
				b.ReadOnly = true
				b.Files = []sandbox.File{
					{Path: "/etc/aileron/deep/note", Mode: 0o644, Data: []byte("a note\n")},
					{Path: "/etc/ssl/certs/ca-certificates.crt", Mode: 0o644, Data: []byte("the bundle\n")},
				}
				if err := prepare(b.Dir); err != nil {
					t.Skip(err)
				}
				code, err := e.Run(t.Context(), b)
				want := "a note\nthe bundle\nwrote /tmp\nwrote /var/tmp\nwrote /home/agent\nwrote .\nran home\n"
				if err != nil || code != 0 || out.String() != want {
					t.Errorf("Run = %d, %v, %s\n%s\nwant\n%s", code, err, errs, out, want)
				}
			})
		}
	})
}

func TestAnUnsealedSandboxHasNoGateway(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, e *sandbox.Engine) {
		b, out, errs := box(t, "exit 9\n", "sh", "-c",
			"cat /etc/hosts; ls /run/aileron /aileron 2>/dev/null; grep CapEff /proc/self/status")
		b.Unsealed = true
		code, err := e.Run(t.Context(), b)
		if err != nil && strings.Contains(err.Error(), "host-gateway") {
			t.Skip("this daemon has no bridge, so no address for the alias; TestABoxThatCannotBeSealedSaysSo has one")
		}
		if err != nil || code != 0 || !strings.Contains(out.String(), e.HostAlias()) ||
			!strings.Contains(out.String(), "CapEff:\t0000000000000000") {
			t.Errorf("Run = %d, %v, %s with %q; want the alias and no capability", code, err, errs, out)
		}
	})
}

// The next sandbox has what a sandbox left in its state, as every kind of user.
func TestAStateOutlivesItsSandbox(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, e *sandbox.Engine) {
		home := t.TempDir()
		defer func() {
			if n, err := e.RemoveStates(t.Context(), sandbox.State{Home: home}); n == 0 || err != nil {
				t.Errorf("RemoveStates = %d, %v", n, err)
			}
		}()
		for name, prepare := range map[string]func(project string) error{
			"as the project's owner":  func(dir string) error { return os.Chown(dir, 1234, 1234) },
			"as root":                 func(string) error { return nil },
			"as the image's own user": func(dir string) error { return os.Chmod(dir, 0o777) },
		} {
			t.Run(name, func(t *testing.T) {
				var project string
				for i, want := range []string{"x\n", "xx\n", "xxx\n"} {
					b, out, errs := box(t, idleGateway, "sh", "-c",
						"printf x >>"+sandbox.StateDir+"/f && cat "+sandbox.StateDir+"/f && echo")
					if project == "" {
						project = b.Dir
					}
					b.State, b.ReadOnly = sandbox.State{Home: home, Project: project, Program: "p"}, i == 1
					if err := prepare(b.Dir); err != nil {
						t.Skip(err)
					}
					code, err := e.Run(t.Context(), b)
					if err != nil || code != 0 || out.String() != want {
						t.Errorf("Run = %d, %v, %s\n%s\nwant %s", code, err, errs, out, want)
					}
				}
			})
		}
	})
}

// A sandbox whose user is root may replace the directory of its state. The next one neither starts nor has its engine
// follow what is there, and the error names the command that removes it.
func TestAReplacedStateIsRefused(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, e *sandbox.Engine) {
		home := t.TempDir()
		defer func() { _, _ = e.RemoveStates(t.Context(), sandbox.State{Home: home}) }()
		for name, replace := range map[string]string{
			"a link to a directory": "ln -s ../../.." + sandbox.Workspace + " state",
			"a link to nothing":     "ln -s /nowhere state",
			"a link to itself":      "ln -s state state",
			"a file":                "echo >state",
			"a pipe":                "mkfifo state",
			"a setuid file":         "cp /bin/sh state && chmod 4755 state",
		} {
			t.Run(name, func(t *testing.T) {
				first, _, errs := box(t, idleGateway, "sh", "-c",
					"cd "+filepath.Dir(sandbox.StateDir)+" && mv state was && "+replace)
				first.State = sandbox.State{Home: home, Project: first.Dir, Program: "p"}
				must.Do(t, os.Chmod(first.Dir, 0o755))
				if code, err := e.Run(t.Context(), first); err != nil || code != 0 {
					t.Fatalf("Run = %d, %v, %s", code, err, errs)
				}
				next, out, _ := box(t, idleGateway, "echo", "ran")
				next.Dir, next.State = first.Dir, first.State
				_, err := e.Run(t.Context(), next)
				if err == nil || !strings.HasPrefix(err.Error(), "make the state of p the user's: ") ||
					strings.Contains(err.Error(), "copier.request") ||
					!strings.Contains(hint.Of(err), "aileron sandbox prune --state --dir "+first.Dir) {
					t.Errorf("Run = %v, hint %q; want that the state was replaced", err, hint.Of(err))
				}
				if out.Len() > 0 {
					t.Errorf("the command ran: %s", out)
				}
				if info, err := os.Stat(first.Dir); err != nil || info.Mode().Perm() != 0o755 {
					t.Errorf("the project is %v, %v", info, err)
				}
			})
		}
	})
}

// A volume may lead to any place of the host if another made it.
func TestAVolumeOfAnotherIsNoState(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, e *sandbox.Engine) {
		name := "aileron-test-foreign"
		must.Do(t, e.EnsureVolume(t.Context(), name, map[string]string{"aileron.test": "a"}))
		defer func() { _ = e.RemoveVolume(t.Context(), name) }()
		err := e.EnsureVolume(t.Context(), name, map[string]string{"aileron.test": "b"})
		if !errors.Is(err, engine.ErrForeign) {
			t.Errorf("EnsureVolume = %v, want ErrForeign", err)
		}
	})
}
