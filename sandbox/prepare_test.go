package sandbox_test

import (
	"errors"
	"io/fs"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

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
		b, out, errs := box(t, idleGateway, "sh", "-c", "cat /etc/aileron/from; cat /etc/aileron/given; exit 4")
		s := specOf(t, e.Kind(), b)
		s.Limit = func(machine engine.Limits) engine.Limits {
			if machine.Memory < 1<<20 || machine.CPUs < 1 {
				t.Errorf("the machine has %v", machine)
			}
			return engine.Limits{Memory: 128 << 20}
		}
		p, err := sandbox.Prepare(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		if !p.Sealed || p.Unsealable != "" || p.Limits.Memory != 128<<20 || p.Engine.Kind() != e.Kind() {
			t.Errorf("sealed: %v %q, limits %v, engine %s", p.Sealed, p.Unsealable, p.Limits, p.Engine.Kind())
		}
		b.Unenforced = func(limits []string) { unenforced(t, limits) }
		b.Files = []sandbox.File{{Path: "/etc/aileron/given", Mode: 0o644, Data: []byte("given\n")}}
		b.Trust = func(image *sandbox.ImageFS) ([]sandbox.File, error) {
			release, err := fs.ReadFile(image, "etc/os-release")
			first, _, _ := strings.Cut(string(release), "\n")
			return []sandbox.File{{Path: "/etc/aileron/from", Mode: 0o644, Data: []byte(first + "\n")}}, err
		}
		code, err := p.Run(t.Context(), b.Uplink)
		if err != nil || code != 4 ||
			!strings.Contains(out.String(), "Debian") || !strings.HasSuffix(out.String(), "\ngiven\n") {
			t.Errorf("Run = %d, %v: %q %q", code, err, out, errs)
		}
	})
}

// What the caller finds in an image ends the run before anything is made of it.
func TestAnImageThatIsNotTrustedIsNotRun(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, e *sandbox.Engine) {
		b, out, _ := box(t, idleGateway, "echo", "ran")
		p, err := sandbox.Prepare(t.Context(), specOf(t, e.Kind(), b))
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		refused := errors.New("no room for a certificate")
		b.Trust = func(*sandbox.ImageFS) ([]sandbox.File, error) { return nil, refused }
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
		p, err := sandbox.Prepare(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		if p.Sealed || p.Unsealable != "" || p.Limits != (engine.Limits{}) {
			t.Errorf("sealed: %v %q, limits %v", p.Sealed, p.Unsealable, p.Limits)
		}
	})
}
