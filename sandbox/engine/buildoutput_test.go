package engine

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// stream returns the output of a build in the form of both engines, in pieces
// that do not end where lines do.
func stream(text, failure string) io.Reader {
	var all strings.Builder
	out := json.NewEncoder(&all)
	for piece := range slices.Chunk([]byte(text), 7) {
		_ = out.Encode(map[string]string{"stream": string(piece)})
	}
	if failure != "" {
		_ = out.Encode(map[string]string{"error": failure})
	}
	return strings.NewReader(all.String())
}

func TestAFailedBuildIsExplainedByItsOutput(t *testing.T) {
	for _, c := range []struct {
		name, text, failure, want string
		made                      []string
	}{
		{"podman", `STEP 1/5: FROM localhost/aileron/sandbox-base:a4f103866262
STEP 2/5: USER root
--> Using cache 9491743308b5a59f5cc653e9c3415d2b8f94c89325de0b37f4cd131fa8aa7911
--> 9491743308b
STEP 3/5: RUN true 1
--> 6aaba7f7c96
STEP 4/5: RUN true 2
--> cf7878c7ad3
STEP 5/5: RUN echo the cause >&2; exit 7
the cause
`, `building at STEP "RUN echo the cause >&2; exit 7": while running runtime: exit status 7` + "\n",
			`step 5/5: building at STEP "RUN echo the cause >&2; exit 7": while running runtime: exit status 7; ` +
				`its last line: the cause`, []string{"6aaba7f7c96", "cf7878c7ad3"}},
		{"docker", `Step 1/4 : ARG BASE
Step 2/4 : FROM ${BASE}
 ---> 439ff9b427e5
Step 3/4 : USER root
 ---> Running in 0123456789ab
Removing intermediate container 0123456789ab
 ---> 5566778899aa
Step 4/4 : RUN exit 7
 ---> Running in 0123456789ac
` + "\x1b[91mthe cause\r\n\x1b[0mRemoving intermediate container 0123456789ac\n",
			"The command '/bin/sh -c exit 7' returned a non-zero code: 7",
			"step 4/4: The command '/bin/sh -c exit 7' returned a non-zero code: 7; its last line: the cause",
			[]string{"5566778899aa"}},
		{"docker, cached", "Step 1/2 : FROM x\n ---> 439ff9b427e5\nStep 2/2 : RUN a\n ---> Using cache\n ---> 5566778899aa\n",
			"no space left", "step 2/2: no space left", nil},
		{"stages", "[1/2] STEP 1/2: FROM a AS b\n--> 111111111111\n[2/2] STEP 2/3: RUN x\n--> 222222222222\n",
			"many\nlines", "step 2/3: many lines", []string{"222222222222"}},
		{"full", "STEP 2/2: RUN x\nx: No space left on device\ntime=\"2026\" level=error msg=\"y\"\n", "exit status 1",
			"step 2/2: the engine's disk is full: exit status 1; its last line: x: No space left on device", nil},
		{"full engine", "STEP 1/2: FROM x\n", "write /x: no space left on device",
			"step 1/2: the engine's disk is full: write /x: no space left on device", nil},
		{"merged streams", "STEP 1/2: RUN x\nE: of another step\nSTEP 2/2: RUN apt-get install nope\n" +
			"Building dependency tree...E: Unable to locate package nope\n\nReading state information...\n", "exit status 100",
			"step 2/2: exit status 100; its error: E: Unable to locate package nope", nil},
		{"before a step", "Trying to pull x...\n", "no such image", "no such image; its last line: Trying to pull x...", nil},
		{"long", "", strings.Repeat("ä", 1000), strings.Repeat("ä", 150) + " … " + strings.Repeat("ä", 150), nil},
	} {
		var o buildOutput
		var shown strings.Builder
		err := o.read(stream(c.text, c.failure), &shown)
		if err == nil || o.explain(err).Error() != c.want || !slices.Equal(o.made, c.made) {
			t.Errorf("%s: %v with %q, want %q with %q", c.name, o.explain(err), o.made, c.want, c.made)
		}
		if full := strings.HasPrefix(c.name, "full"); errors.Is(o.explain(err), ErrFull) != full {
			t.Errorf("%s: is the disk full? %v", c.name, !full)
		}
		if want := buildLines(c.text); strings.ReplaceAll(shown.String(), "\r", "\n") != want && c.name != "docker" {
			t.Errorf("%s: it shows %q, want %q", c.name, shown.String(), want)
		}
	}
	if err := new(buildOutput).read(stream("x", ""), failing{}); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("with a progress that fails: %v", err)
	}
}

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

// The commands of a build are below processes of Podman's own, which must go on.
func TestTheCommandsBelowAServiceAreKilled(t *testing.T) {
	service := exec.Command("sh", "-c", `sh -c 'sleep 600; echo its child ended; exit 3'; echo $?`)
	out, err := service.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := service.Start(); err != nil {
		t.Fatal(err)
	}
	for { // until the sleep is there
		parents, found := processParents(), false
		for _, parent := range parents {
			found = found || parents[parent] == service.Process.Pid
		}
		if found {
			break
		}
	}
	killCommands(service.Process.Pid, inContainer(service.Process.Pid)) // none is
	killCommands(service.Process.Pid, func(int) bool { return true })
	text, _ := io.ReadAll(out)
	if err := service.Wait(); err != nil || string(text) != "its child ended\n3\n" {
		t.Errorf("%q, %v; want that only the last generation was killed", text, err)
	}
}
