package sandbox_test

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/ALRubinger/aileron/e2e/harness"
	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/internal/imagefs"
	"github.com/ALRubinger/aileron/sandbox"
	"github.com/ALRubinger/aileron/sandbox/engine"
)

// building is held while an image of an engine is built or removed: a removal
// takes away the steps of which another build has just found that they are there.
var building = map[string]*sync.Mutex{"podman": {}, "docker": {}}

// derived is an image on top of the base, for one test.
func derived(t *testing.T, e *sandbox.Engine, name, recipe string) sandbox.Image {
	t.Helper()
	dockerfile := []byte("FROM " + testImage.Ref + "\n" + recipe + "\n")
	img := sandbox.Image{Ref: "localhost/aileron/test-" + name + ":1", Dockerfile: dockerfile}
	building[e.Kind()].Lock()
	defer building[e.Kind()].Unlock()
	made := must.Get(e.EnsureImage(t.Context(), img, "always", io.Discard))(t)
	t.Cleanup(func() {
		building[e.Kind()].Lock()
		defer building[e.Kind()].Unlock()
		// Another package's test may build or remove images in this moment.
		var out []byte
		var err error
		if !harness.Poll(harness.Patience, time.Second, func() bool {
			out, err = exec.Command(e.Kind(), "rmi", "-f", img.Ref).CombinedOutput()
			return err == nil || exec.Command(e.Kind(), "inspect", "--type", "image", img.Ref).Run() != nil
		}) {
			t.Errorf("remove %s: %v: %s", img.Ref, err, out)
		}
	})
	return made
}

func TestWhatAnImageLacksIsNamedBeforeItStarts(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, e *sandbox.Engine) {
		b, out, _ := box(t, idleGateway, "echo", "started")
		b.Image = derived(t, e, "ghost", "USER ghost:spirits")
		if err := os.Chmod(b.Dir, 0o777); err != nil { // whose project it is would decide, else
			t.Fatal(err)
		}
		code, err := e.Run(t.Context(), b)
		var lacks *sandbox.ImageError
		if code != 1 || !errors.As(err, &lacks) || len(lacks.Missing) != 2 || out.Len() > 0 {
			t.Fatalf("Run = %d, %v with %q; want two faults and no start", code, err, out)
		}
		for _, want := range []string{b.Image.Ref, "ghost in its /etc/passwd", "spirits in its /etc/group"} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%v does not name %q", err, want)
			}
		}
		r, err := e.Check(t.Context(), b.Spec)
		if err != nil || len(r.Missing) != 2 {
			t.Errorf("Check = %+v, %v; want the same faults", r, err)
		}
		b.Image, b.Needs = testImage, []string{"sh", "ls", "no-such-tool"}
		_, err = e.Run(t.Context(), b)
		if !errors.As(err, &lacks) || len(lacks.Missing) != 1 || !strings.Contains(err.Error(), "no-such-tool") {
			t.Errorf("Run = %v; want that no-such-tool is missing", err)
		}
	})
}

func TestAnImageWithoutAShellIsChecked(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, e *sandbox.Engine) {
		b, _, _ := box(t, idleGateway, "/bin/true") // a real gateway needs no shell
		b.Image = derived(t, e, "shellless", "USER root\nRUN rm -f /bin/sh /usr/bin/sh")
		r, err := e.Check(t.Context(), b.Spec)
		if err != nil || len(r.Missing) > 0 || r.Command != "/bin/true" {
			t.Errorf("Check = %+v, %v; want /bin/true and nothing missing", r, err)
		}
	})
}

// The image that was examined is the one that runs, even when its name is given to
// another meanwhile; messages go on using the name.
func TestAnImageThatLosesItsNameIsStillTheOneThatRuns(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, e *sandbox.Engine) {
		tag := func(args ...string) {
			t.Helper()
			if out, err := exec.Command(e.Kind(), args...).CombinedOutput(); err != nil {
				t.Fatalf("%s %v: %v: %s", e.Kind(), args, err, out)
			}
		}
		first := derived(t, e, "first", "USER root\nRUN echo first >/etc/which")
		second := derived(t, e, "second", "USER root\nRUN echo second >/etc/which\nUSER ghost")
		const moving = "localhost/aileron/test-moving:1"
		tag("tag", first.Ref, moving)
		defer tag("rmi", moving)
		b, out, errs := box(t, idleGateway, "cat", "/etc/which")
		var err error
		if b.Image, err = e.EnsureImage(t.Context(), sandbox.Image{Ref: moving}, "auto", io.Discard); err != nil {
			t.Fatal(err)
		}
		tag("tag", second.Ref, moving)
		files := must.Get(e.OpenImage(t.Context(), b.Image))(t)
		defer files.Close()
		if which, err := files.ReadFile("etc/which"); err != nil || string(which) != "first\n" {
			t.Errorf("the image's files hold %q, %v", which, err)
		}
		if r, err := e.Check(t.Context(), b.Spec); err != nil || len(r.Missing) > 0 {
			t.Errorf("Check = %+v, %v", r, err)
		}
		if code, err := e.Run(t.Context(), b); err != nil || code != 0 || out.String() != "first\n" {
			t.Errorf("Run = %d, %v with %q %s", code, err, out, errs)
		}
		b.Command = []string{"no-such-command"}
		code, err := e.Run(t.Context(), b)
		if code != 127 || !strings.Contains(err.Error(), moving) || strings.Contains(err.Error(), "sha256") {
			t.Errorf("Run = %d, %v; want its name", code, err)
		}
	})
}

func TestAnImagesOwnValueStandsBeforeOurs(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, e *sandbox.Engine) {
		b, out, errs := box(t, idleGateway, "sh", "-c", `echo "$KEPT|$REPLACED|$OURS"`)
		b.Image = derived(t, e, "own", `ENV KEPT="one two" REPLACED=theirs`)
		b.Env, b.AppendTo = []string{"KEPT=three", "REPLACED=ours", "OURS=ours"}, []string{"KEPT", "OURS"}
		if code, err := e.Run(t.Context(), b); err != nil || code != 0 || out.String() != "one two three|ours|ours\n" {
			t.Errorf("Run = %d, %v with %q%s", code, err, out, errs)
		}
		b.Image = derived(t, e, "long", "ENV KEPT="+strings.Repeat("x", 33<<10))
		var lacks *sandbox.ImageError
		code, err := e.Run(t.Context(), b)
		if code != 1 || !errors.As(err, &lacks) || !strings.Contains(err.Error(), "a short KEPT") {
			t.Errorf("Run = %d, %v; want a refusal", code, err)
		}
	})
}

// The only program of an image that a check runs has a bounded time and a
// bounded output.
func TestAnImagesShellIsBounded(t *testing.T) {
	t.Parallel()
	shell := func(script string) string {
		return "USER root\nRUN printf '#!/bin/bash\\n" + script + "\\n' >/usr/bin/own && chmod 755 /usr/bin/own &&" +
			" mv /usr/bin/own /usr/bin/sh"
	}
	engines(t, func(t *testing.T, e *sandbox.Engine) {
		b, _, _ := box(t, idleGateway, "true")
		b.Image = derived(t, e, "endless", shell("exec sleep 600"))
		_, err := e.Check(t.Context(), b.Spec)
		if err == nil || !strings.Contains(err.Error(), b.Image.Ref+": its shell does not end") {
			t.Errorf("Check = %v, want that the shell does not end", err)
		}
		b.Image = derived(t, e, "talkative",
			shell(`echo user 7:7; head -c 70000 /dev/zero | tr "\\0" "\\n"; echo writable yes`))
		r, err := e.Check(t.Context(), b.Spec)
		if err != nil || r.User != "7:7" || len(r.Missing) != 1 || !strings.Contains(r.Missing[0], "writable") {
			t.Errorf("Check = %+v, %v; want what it said first, and nothing of what it said last", r, err)
		}
		left, err := exec.Command(e.Kind(), "ps", "-aq", "--filter", "ancestor="+b.Image.Ref).Output()
		if err != nil || len(left) > 0 {
			t.Errorf("left: %s, %v", left, err)
		}
	})
}

func TestFilesOfAnImageAreReadThroughLinks(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, e *sandbox.Engine) {
		files := must.Get(e.OpenImage(t.Context(), testImage))(t)
		defer files.Close()
		for _, want := range []struct {
			name, path string
			exists     bool
			missing    string
		}{
			{"etc/os-release", "usr/lib/os-release", true, ""}, // a link out of /etc
			{"etc/ssl/certs/none", "etc/ssl/certs/none", false, ""},
			{"bin/awk", "usr/bin/mawk", true, ""}, // three links, the first of a directory
			{"etc/alternatives/awk", "usr/bin/mawk", true, ""},
			{"etc/ssl/certs/ca-certificates.crt", "etc/ssl/certs/ca-certificates.crt", true, ""},
			{"etc/aileron/deeper/and/a.pem", "etc/aileron/deeper/and/a.pem", false, "etc/aileron/deeper etc/aileron/deeper/and"},
			{"opt/none/and/a.pem", "opt/none/and/a.pem", false, "opt/none opt/none/and"},
		} {
			got, err := imagefs.Resolve(files, want.name)
			missing := strings.Join(got.Missing, " ")
			if err != nil || got.Path != want.path || got.Exists() != want.exists || missing != want.missing {
				t.Errorf("Resolve(%s) = %+v, %v; want %+v", want.name, got, err, want)
			}
		}
		for _, name := range []string{"etc/os-release", "usr/lib/os-release"} {
			if data, err := files.ReadFile(name); err != nil || !strings.Contains(string(data), "bookworm") {
				t.Errorf("ReadFile(%s) = %q, %v", name, data, err)
			}
		}
		if _, err := files.ReadFile("usr/none"); !errors.Is(err, fs.ErrNotExist) || errors.Is(err, engine.ErrEngine) {
			t.Errorf("ReadFile of nothing: %v", err)
		}
		if _, err := files.ReadFile("usr/lib"); err == nil || !strings.Contains(err.Error(), "not a file") {
			t.Errorf("ReadFile of a directory: %v", err)
		}
		if !strings.HasPrefix(files.Getenv("PATH"), "/usr/local/sbin:") || files.Getenv("NONE") != "" {
			t.Errorf("PATH is %q", files.Getenv("PATH"))
		}
		apt := must.Get(fs.Sub(files, "etc/apt"))(t)
		if err := fstest.TestFS(apt, "apt.conf.d"); err != nil {
			t.Error(err)
		}
	})
}
