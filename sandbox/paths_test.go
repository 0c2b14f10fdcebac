package sandbox_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/e2e/harness"
	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/sandbox"
	"github.com/ALRubinger/aileron/sandbox/engine"
)

// A project's path may be that of an archive or a repository.
func TestAProjectsPathIsNothingButAPath(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, e *sandbox.Engine) {
		for name, refused := range map[string]bool{
			"with spaces and 'quotes'": false, "a,b": false, `a"b`: false, "a:b": false,
			"x,source=/etc": false, "x,readonly=false,source=/etc": false,
			"a,b:c": true, "a\nb": e.Kind() == "podman",
		} {
			b, out, errs := box(t, idleGateway, "ls")
			b.Dir = filepath.Join(b.Dir, name)
			must.Do(t, os.MkdirAll(b.Dir, 0o755))
			must.Do(t, os.WriteFile(filepath.Join(b.Dir, "mine"), nil, 0o600))
			code, err := e.Run(t.Context(), b)
			switch {
			case refused && e.Kind() == "podman":
				if err == nil || !strings.Contains(err.Error(), "rename") || out.Len() > 0 {
					t.Errorf("%q: Run = %d, %v with %q; want a refusal with a remedy", name, code, err, out)
				}
			case err != nil || out.String() != "mine\n":
				t.Errorf("%q: Run = %d, %v, %s with %q; want its own file", name, code, err, errs, out)
			}
		}
	})
}

func TestAnImagesRootGroupIsNoObstacle(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, e *sandbox.Engine) {
		ref := derived(t, e, "rootgroup", "USER root:root")
		for _, readOnly := range []bool{false, true} {
			b, out, errs := box(t, idleGateway, "sh", "-c", "id -u; touch $HOME/mark && echo wrote")
			b.Image, b.ReadOnly = ref, readOnly
			if code, err := e.Run(t.Context(), b); err != nil || code != 0 || out.String() != "0\nwrote\n" {
				t.Errorf("Run = %d, %v, %s with %q", code, err, errs, out)
			}
		}
	})
}

func TestAProjectsPathIsTextOrIsRefused(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, e *sandbox.Engine) {
		b, out, _ := box(t, idleGateway, "ls")
		b.Dir = filepath.Join(b.Dir, "in\xffvalid")
		must.Do(t, os.Mkdir(b.Dir, 0o755))
		if _, err := e.Run(t.Context(), b); err == nil || !strings.Contains(err.Error(), "UTF-8") || out.Len() > 0 {
			t.Errorf("Run = %v with %q; want a refusal", err, out)
		}
		if entries, err := os.ReadDir(filepath.Dir(b.Dir)); err != nil || len(entries) != 1 {
			t.Errorf("beside the project stands %v, %v; want nothing", entries, err)
		}
	})
}

func TestAnImagesVolumeMakesNothingInAProject(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, e *sandbox.Engine) {
		b, out, _ := box(t, idleGateway, "ls", "-A")
		b.Image = derived(t, e, "volume", "VOLUME "+sandbox.Workspace+"/.git")
		var lacks *sandbox.ImageError
		_, err := e.Run(t.Context(), b)
		if !errors.As(err, &lacks) || !strings.Contains(err.Error(), ".git") || out.Len() > 0 {
			t.Errorf("Run = %v with %q; want a refusal", err, out)
		}
		if entries, err := os.ReadDir(b.Dir); err != nil || len(entries) > 0 {
			t.Errorf("in the project stands %v, %v", entries, err)
		}
		b.Image = derived(t, e, "volume-above", "VOLUME "+sandbox.Workspace)
		if code, err := e.Run(t.Context(), b); err != nil || code != 0 || out.Len() > 0 {
			t.Errorf("Run = %d, %v with %q; want the empty project", code, err, out)
		}
	})
}

// With the engine's socket a box would be the host.
func TestAProjectThatHoldsASocketOfOursIsRefused(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, e *sandbox.Engine) {
		b, out, _ := box(t, idleGateway, "ls")
		for _, dir := range []string{filepath.Dir(b.Sockets), b.Sockets, os.TempDir(), "/"} {
			b.Dir = dir
			var holds *sandbox.ProjectError
			code, err := e.Run(t.Context(), b)
			if code != 1 || !errors.As(err, &holds) || !sandbox.Within(holds.Holds, dir) || out.Len() > 0 {
				t.Errorf("%s: Run = %d, %v with %q; want a refusal", dir, code, err, out)
			}
		}
	})
}

// Another sandbox of the same project may put a link where a mount was checked.
func TestAMountThatBecameALinkIsRefused(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, e *sandbox.Engine) {
		b, out, _ := box(t, idleGateway, "ls", "/srv/x")
		at := filepath.Join(b.Dir, "data")
		b.Mounts = []engine.Mount{{Source: at, Target: "/srv/x"}}
		must.Do(t, os.Symlink("/usr", at))
		code, err := e.Run(t.Context(), b)
		if code != 1 || err == nil || !strings.Contains(err.Error(), "it was replaced since the start") || out.Len() > 0 {
			t.Errorf("Run = %d, %v with %q; want a refusal", code, err, out)
		}
	})
}

// Another sandbox of the same project may have put the link there.
func TestAHeldDirectoryThatBecameALinkIsRefused(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, e *sandbox.Engine) {
		b, out, _ := box(t, idleGateway, "ls", ".git")
		at := filepath.Join(b.Dir, ".git")
		b.Protect = func(string) ([]sandbox.Cover, error) {
			return []sandbox.Cover{{Source: at, Path: ".git", Held: true}}, nil
		}
		must.Do(t, os.Symlink("/usr", at))
		code, err := e.Run(t.Context(), b)
		if code != 1 || err == nil || !strings.Contains(err.Error(), "it was replaced since the start") || out.Len() > 0 {
			t.Errorf("Run = %d, %v with %q; want a refusal", code, err, out)
		}
	})
}

// Labels are those of the image too, and that may be anybody's.
func TestSweepLeavesContainersThatOnlyLookLikeOurs(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, e *sandbox.Engine) {
		name := "foreign" + strings.ToLower(filepath.Base(filepath.Dir(t.TempDir())))
		create := exec.Command(e.Kind(), "create", "--name", name, "--label", "aileron.session=../../x",
			"--label", "aileron.role=box", "--label", "aileron.owner=1/1/x", testImage.Ref, "true")
		if out, err := create.CombinedOutput(); err != nil {
			t.Fatalf("create: %v\n%s", err, out)
		}
		t.Cleanup(func() { _ = exec.Command(e.Kind(), "rm", "-f", name).Run() })
		sweep(t, e)
		if out, err := exec.Command(e.Kind(), "inspect", "--format", "{{.State.Status}}", name).CombinedOutput(); err != nil {
			t.Errorf("the container is gone: %v\n%s", err, out)
		}
	})
}

// Where ours is mounted an image may have a link, and a volume over its end.
func TestAnImageBringsNoGatewayOfItsOwn(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, e *sandbox.Engine) {
		b, out, _ := box(t, "complain the real one\nexit 9\n", "true")
		b.Image = derived(t, e, "impostor", `USER root
RUN mkdir -p /b/a && printf '#!/bin/sh\necho ready\nexec /bin/sleep 600\n' >/b/a/aileron
RUN chmod +x /b/a/aileron && ln -s /b/a/aileron /aileron
VOLUME /b/a`)
		if _, err := e.Run(t.Context(), b); err == nil || !strings.Contains(err.Error(), "the real one") || out.Len() > 0 {
			t.Errorf("Run = %v with %q; want what the real gateway said", err, out)
		}
	})
}

// An engine runs a health check as the container was made, not as its process
// is: in the gateway with the right to change its network.
func TestAnImagesHealthCheckIsNeverRun(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, e *sandbox.Engine) {
		b, _, errs := box(t, idleGateway, "sh", "-c", `echo up > up; until [ -e enough ]; do sleep 0.1; done
			ls checked 2>&1; cat /proc/1/environ | tr '\0' '\n' | grep GODEBUG`)
		b.Image = derived(t, e, "health",
			"HEALTHCHECK --interval=1s CMD touch "+sandbox.Workspace+"/checked\nENV GODEBUG=http2debug=2")
		ended := make(chan error, 1)
		go func() { _, err := e.Run(t.Context(), b); ended <- err }()
		harness.WaitFor(t, "the box is up", func() bool {
			select {
			case err := <-ended:
				t.Fatalf("Run = %v, %s", err, errs)
			default:
			}
			_, err := os.Stat(filepath.Join(b.Dir, "up"))
			return err == nil
		})
		for _, role := range []string{"gw", "box"} {
			cmd := exec.Command(e.Kind(), "inspect", "--format", "{{json .Config.Healthcheck}} {{.Config.Env}}",
				"aileron-"+b.Session+"-"+role)
			out, err := cmd.CombinedOutput()
			if err != nil || strings.Contains(string(out), "touch") {
				t.Errorf("the %s has the health check %s, %v", role, out, err)
			}
			if role == "gw" && strings.Contains(string(out), "http2debug") {
				t.Errorf("the gateway has the image's environment: %s", out)
			}
		}
		must.Do(t, os.WriteFile(filepath.Join(b.Dir, "enough"), nil, 0o600))
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(filepath.Join(b.Dir, "checked")); err == nil {
			t.Error("the health check ran in the box")
		}
	})
}

func TestANumberedUserHasAHomeInAReadOnlySandbox(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, e *sandbox.Engine) {
		b, out, errs := box(t, idleGateway, "sh", "-c", "touch $HOME/mark && echo wrote")
		b.Image, b.ReadOnly = derived(t, e, "numbered", "USER 4321"), true
		must.Do(t, os.Chmod(b.Dir, 0o777))
		if code, err := e.Run(t.Context(), b); err != nil || code != 0 || out.String() != "wrote\n" {
			t.Errorf("Run = %d, %v, %s with %q", code, err, errs, out)
		}
	})
}
