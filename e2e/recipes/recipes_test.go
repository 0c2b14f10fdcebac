package recipes

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
)

// stub is a podman and a docker whose images are names in a file: what is
// tried here is which images are built, where, and what is said. As in an
// engine, of several commands at once one at a time changes the images.
const stub = `#!/bin/sh
me=$(basename "$0"); store=$STORES/$me
echo "$me $*" >>"$STORES/calls"
exec 9>>"$store.lock"
case "$1 $2" in
"image ls") cat "$store" ;;
"image prune") ;;
"image inspect")
	case $5 in
	*packages:aaaaaaaaaaaa) echo '["base","tools","of-a-person"]' ;;
	*packages:*) echo '["base","old","packages"]' ;;
	*sandbox-base:*) echo '["base"]' ;;
	*) echo '["base","tools"]' ;;
	esac ;;
ps*) cat "$STORES/containers" 2>/dev/null || true ;;
build*)
	seq 200
	[ ! -e "$STORES/broken" ] || exit 1
	while [ "$1" != -t ]; do shift; done
	flock 9 && echo "$2" >>"$store" ;;
save*) for ref; do case $ref in localhost/*) echo "$ref" ;; esac; done ;;
load*) refs=$(cat); flock 9; echo "$refs" >>"$store" ;;
rmi*) shift; flock 9; for ref; do grep -vxF "$ref" "$store" >"$store.new"; mv "$store.new" "$store"; done ;;
esac
`

// engines puts engines with these images in front of the PATH, and returns
// the directory of their files.
func engines(t *testing.T, images ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"podman", "docker"} {
		must.Do(t, os.MkdirAll(filepath.Join(dir, "bin"), 0o700))
		must.Do(t, os.WriteFile(filepath.Join(dir, "bin", name), []byte(stub), 0o700))
		must.Do(t, os.WriteFile(filepath.Join(dir, name), []byte(strings.Join(append(images, ""), "\n")), 0o600))
	}
	t.Setenv("PATH", filepath.Join(dir, "bin")+":"+os.Getenv("PATH"))
	t.Setenv("STORES", dir)
	return dir
}

func openStore(t *testing.T) (*Store, *bytes.Buffer) {
	t.Helper()
	var said bytes.Buffer
	s := must.Get(Open(&said))(t)
	t.Cleanup(func() { _ = s.Close() })
	return s, &said
}

func lines(t *testing.T, path string) []string {
	t.Helper()
	data := must.Get(os.ReadFile(path))(t)
	return strings.Split(strings.TrimSpace(string(data)), "\n")
}

func TestAMissingImageIsBuiltByPodmanOnceAndHandedToDocker(t *testing.T) {
	dir := engines(t)
	s, said := openStore(t)
	want := []Image{parts(), Clients("few")}
	for range 2 {
		must.Do(t, s.Ensure(t.Context(), "docker", want...))
	}
	if got := lines(t, filepath.Join(dir, "docker")); !slices.Contains(got, want[0].Ref) ||
		!slices.Contains(got, want[1].Ref) {
		t.Errorf("Docker has %q", got)
	}
	if got := lines(t, filepath.Join(dir, "podman")); !slices.Equal(got, []string{want[0].Ref}) {
		t.Errorf("Podman has %q, want %s, and not what only Docker runs", got, want[0].Ref)
	}
	if n := strings.Count(strings.Join(lines(t, filepath.Join(dir, "calls")), "\n"), "podman build"); n != 2 {
		t.Errorf("%d builds, want 2", n)
	}
	if n := strings.Count(said.String(), "building "); n != 2 {
		t.Errorf("progress has %d lines of a build, want 2:\n%s", n, said)
	}
}

func TestTheErrorOfABuildHasAllThatItPrinted(t *testing.T) {
	dir := engines(t)
	must.Do(t, os.WriteFile(filepath.Join(dir, "broken"), nil, 0o600))
	s, _ := openStore(t)
	err := s.Ensure(t.Context(), "podman", parts())
	if err == nil || !strings.Contains(err.Error(), parts().Ref) || !strings.Contains(err.Error(), "\n1\n2\n") ||
		!strings.Contains(err.Error(), "\n199\n200\n") {
		t.Errorf("Ensure = %v; want the image, and all 200 lines", err)
	}
}

// failing is a test that is expected to fail.
type failing struct {
	testing.TB
	said string
}

func (f *failing) Helper() {}
func (f *failing) Fatal(args ...any) {
	f.said, _ = args[0].(string)
	runtime.Goexit()
}

func TestInCIAMissingImageIsAFailureAndNoBuild(t *testing.T) {
	dir := engines(t)
	t.Setenv("CI", "true")
	f := &failing{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		Need(f, "podman", parts())
	}()
	<-done
	if !strings.Contains(f.said, "podman does not have "+parts().Ref) || !strings.Contains(f.said, "hint: ") {
		t.Errorf("the test says %q; want the image and a hint", f.said)
	}
	for _, call := range lines(t, filepath.Join(dir, "calls")) {
		if strings.HasPrefix(call, "podman build") {
			t.Errorf("it ran %s", call)
		}
	}
}

func TestOnlySupersededImagesOfSuitesAreRemoved(t *testing.T) {
	t.Setenv("AILERON_TEST_DOCKER", "few") // what only the nightly run needs is not superseded
	stay := []string{parts().Ref, tools().Ref, Base().Ref, Toolbox().Ref,
		Agent("codex").Ref, Clients("few").Ref, Kind("alpine").Ref,
		"localhost/aileron/sandbox-base:0.1.0-a4f103866262", "localhost/aileron/agent-claude:0.1.0-0123456789ab",
		"localhost/aileron/gateway:1", "localhost/aileron/packages:aaaaaaaaaaaa",
		"docker.io/library/debian:bookworm-slim", "localhost/another/aileron-matrix:e0f5376d7069",
		"docker.io/aileron-matrix:1"}
	old := []string{"localhost/aileron-matrix:e0f5376d7069", "localhost/aileron-images/parts:000000000000",
		"localhost/aileron-images/alpine:test",
		"localhost/aileron/sandbox-base:0.1.0-dev-000000000000", "localhost/aileron/agent-claude:0.1.0-dev-000000000000",
		"localhost/aileron/sandbox-base:000000000000", "localhost/aileron/toolbox:000000000000",
		"localhost/aileron/agent-claude:000000000000", "localhost/aileron/packages:000000000000"}
	dir := engines(t, append(slices.Clone(old), stay...)...)
	s, said := openStore(t)
	must.Do(t, s.Prune(t.Context()))
	for _, name := range []string{"podman", "docker"} {
		if got := lines(t, filepath.Join(dir, name)); !slices.Equal(got, stay) {
			t.Errorf("%s has %q, want %q\n%s", name, got, stay, said)
		}
		if call := name + " image prune --force --filter label=aileron.image=1"; !slices.Contains(lines(t,
			filepath.Join(dir, "calls")), call) {
			t.Errorf("it did not run %s", call)
		}
	}
}

// Its stages are nameless images until it ends.
func TestABuildThatIsUnderWayKeepsItsStages(t *testing.T) {
	dir := engines(t)
	must.Do(t, os.WriteFile(filepath.Join(dir, "containers"), []byte("0123456789ab\n"), 0o600))
	s, said := openStore(t)
	must.Do(t, s.Prune(t.Context()))
	for _, call := range lines(t, filepath.Join(dir, "calls")) {
		if strings.Contains(call, "prune") {
			t.Errorf("it ran %s", call)
		}
	}
	if n := strings.Count(said.String(), "is being built"); n != 2 {
		t.Errorf("it says %q, want a line for each engine", said)
	}
}

func TestEachSuiteNamesWhatItNeeds(t *testing.T) {
	dir := engines(t, Base().Ref)
	s, _ := openStore(t)
	must.Do(t, s.EnsureFor(t.Context(), "proxy/scrub", "sandbox"))
	for _, call := range lines(t, filepath.Join(dir, "calls")) {
		if strings.Contains(call, "build") {
			t.Errorf("for packages that need no more than the base image it ran %s", call)
		}
	}
	must.Do(t, s.EnsureFor(t.Context(), "e2e/matrix"))
	want := []string{Base().Ref, Clients("browsers").Ref, Clients("image").Ref, Services().Ref}
	if got := lines(t, filepath.Join(dir, "podman")); !slices.Equal(slices.Sorted(slices.Values(got)),
		slices.Sorted(slices.Values(want))) {
		t.Errorf("Podman has %q, want %q", got, want)
	}
}
