package harness

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
)

const scripts = "../../scripts/"

// leaving is an engine that answers as if builds and tests had left things.
const leaving = `#!/bin/sh
case "$*" in
"ps -a --filter label=aileron.session"*) echo "1111 aileron-box" ;;
"ps -a --filter label=aileron.image"*) echo "2222 of-our-image" ;;
"ps -a --external"*) echo "3333 debian-working-container" ;;
"volume ls"*) echo data; printf '%064d\n' 4 ;;
"image ls"*)
	echo "5555 <none>:<none>"
	echo "6666 localhost/aileron/test-volume:1"
	for kept in aileron-matrix:few-1 aileron-images/alpine:2 aileron/gateway:1 aileron/sandbox-base:3 \
		aileron/agent-codex:4; do
		echo "7777 localhost/$kept"
	done ;;
esac
`

// leftovers runs the script, with an engine that leaves things.
func leftovers(t *testing.T, args ...string) []string {
	t.Helper()
	bin := t.TempDir()
	for _, name := range []string{"podman", "docker"} {
		must.Do(t, os.WriteFile(filepath.Join(bin, name), []byte(leaving), 0o700))
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	out, err := exec.CommandContext(t.Context(), scripts+"leftovers", args...).CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 1 {
		t.Fatalf("leftovers %v: %v, want exit code 1\n%s", args, err, out)
	}
	return strings.Split(strings.TrimSpace(string(out)), "\n")
}

// started is a process that lives until the test ends.
func started(t *testing.T, env []string, program string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, "infinity")
	cmd.Env = env
	must.Do(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return "process " + strconv.Itoa(cmd.Process.Pid) + " " + program + " infinity"
}

func TestLeftoversSeesWhatTestsAndBuildsLeave(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"suite-123", "go-build456"} {
		must.Do(t, os.Mkdir(filepath.Join(dir, name), 0o700))
	}
	sleep := must.Get(exec.LookPath("sleep"))(t)
	own := filepath.Join(dir, "suite-123", "program")
	Copy(t, sleep, own)
	outside := must.Get(os.MkdirTemp("/var/tmp", "aileron-left-"))(t)
	t.Cleanup(func() { _ = os.RemoveAll(outside) })
	others := started(t, []string{"AILERON_TEST_TMP=" + dir + "-other"}, sleep)
	want := []string{
		"podman container 1111 aileron-box", "docker container 1111 aileron-box", "podman container 2222 of-our-image",
		"podman volume " + strings.Repeat("0", 63) + "4", "podman image 5555 <none>:<none>",
		"docker image 6666 localhost/aileron/test-volume:1",
		"file " + filepath.Join(dir, "suite-123"), "directory " + outside,
		started(t, []string{"AILERON_TEST_TMP=" + dir}, sleep), started(t, nil, own),
	}
	got := leftovers(t, "--in", dir)
	for _, line := range want {
		if !slices.Contains(got, line) {
			t.Errorf("it does not see %q:\n%s", line, strings.Join(got, "\n"))
		}
	}
	for _, line := range got {
		if strings.Contains(line, "7777") || strings.Contains(line, "go-build") || strings.HasSuffix(line, " volume data") ||
			line == others {
			t.Errorf("it sees %q, which nothing of ours left", line)
		}
	}
	before := filepath.Join(t.TempDir(), "before")
	must.Do(t, os.WriteFile(before, []byte(strings.Join(want[1:], "\n")+"\n"), 0o600))
	got = leftovers(t, "--in", dir, "--but", before)
	if !slices.Contains(got, want[0]) ||
		slices.ContainsFunc(want[1:], func(line string) bool { return slices.Contains(got, line) }) {
		t.Errorf("but for what was there before it sees:\n%s", strings.Join(got, "\n"))
	}
}

func TestATestThatThereIsNotListsThoseThatThereAre(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), scripts+"test", "scrub", "no-such-suite")
	cmd.Env = append(os.Environ(), "AILERON_TEST_INSIDE=1")
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 2 {
		t.Fatalf("scripts/test: %v, want exit code 2\n%s", err, out)
	}
	for _, want := range []string{"there is no package no-such-suite", "\n  e2e/attacks\n", "\n  proxy/scrub\n"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("it does not say %q:\n%s", want, out)
		}
	}
}

// step is a program of scripts/test that fails where FAILS is in what it is
// asked for. What it builds does nothing, and leaves a file where it is run.
const step = `#!/bin/sh
case "${0##*/} $*" in
"go list -m") echo example.test/m ;;
"go list ./...") echo example.test/m/one ;;
"go build -o"*) mkdir -p "${3%/*}"; printf '#!/bin/sh\n: >"%s"\n' "$RAN/${3##*/}" >"$3"; chmod 700 "$3" ;;
esac
case "${0##*/} $*" in *"$FAILS"*) echo "it is broken"; exit 1 ;; esac
`

// A step beside the others may fail where set -e does not hold.
func TestEachStepBeforeTheTestsFailsTheRun(t *testing.T) {
	bin := t.TempDir()
	for _, name := range []string{"go", "just", "podman", "docker"} {
		must.Do(t, os.WriteFile(filepath.Join(bin, name), []byte(step), 0o700))
	}
	for _, fails := range []string{"go list ./...", "prepare programs", "just build", "just lint", "list -race"} {
		ran := t.TempDir()
		cmd := exec.CommandContext(t.Context(), scripts+"test")
		cmd.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "XDG_CACHE_HOME="+t.TempDir(),
			"AILERON_TEST_INSIDE=1", "JUST=just",
			"FAILS="+fails, "RAN="+ran)
		out, err := cmd.CombinedOutput()
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != 1 {
			t.Errorf("where %q fails: %v, want exit code 1\n%s", fails, err, out)
		}
		if strings.HasPrefix(fails, "go list") {
			continue // what it prints is its own
		}
		if !strings.Contains(string(out), "it is broken\n") ||
			!strings.Contains(string(out), " failed; the lines above say why\n") {
			t.Errorf("where %q fails it does not say so:\n%s", fails, out)
		}
		if _, err := os.Stat(filepath.Join(ran, "gotest")); err == nil {
			t.Errorf("where %q fails the tests are run", fails)
		}
	}
}

// A test that is renamed would no longer be searched for races, and the run would stay green.
func TestWhatIsRacedIsThere(t *testing.T) {
	list := must.Get(os.ReadFile(scripts + "raced.txt"))(t)
	for line := range strings.Lines(string(list)) {
		words := strings.Fields(line)
		if len(words) == 0 || strings.HasPrefix(line, "#") {
			continue
		}
		files, err := filepath.Glob(filepath.Join("../..", strings.TrimSuffix(words[0], "..."), "*_test.go"))
		if err != nil || len(files) == 0 {
			t.Errorf("%s has no tests: %v", words[0], err)
		}
		var text strings.Builder
		for _, file := range files {
			data := must.Get(os.ReadFile(file))(t)
			text.Write(data)
		}
		for _, test := range words[1:] {
			name, _, _ := strings.Cut(test, "/")
			if !strings.Contains(text.String(), "\nfunc "+name+"(t *testing.T)") {
				t.Errorf("%s has no %s", words[0], name)
			}
		}
	}
}
