package engine

import (
	"archive/tar"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/docker/docker/client"

	"github.com/ALRubinger/aileron/e2e/must"
)

// builder is an engine whose builds fail as they are told, each after it has made
// the image of a step.
type builder struct {
	t        *testing.T
	failures []string // of one build after the other; then they work
	there    []string // the steps that each build finds, as the engine describes them
	printed  []string // by a command of each build, likewise: ids from 200 on

	mu      sync.Mutex
	files   []string // what each build was given
	removed []string
}

// id is that of the image that the nth build makes.
func id(n int) string { return fmt.Sprintf("%012d", n) }

func (b *builder) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case r.Method == http.MethodDelete:
		b.removed = append(b.removed, r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:])
		_, _ = io.WriteString(w, "[]")
	case strings.HasSuffix(r.URL.Path, "/build"):
		archive := tar.NewReader(r.Body)
		if _, err := archive.Next(); err != nil {
			b.t.Errorf("the build was given no file: %v", err)
		}
		file, err := io.ReadAll(archive)
		if _, end := archive.Next(); err != nil || end != io.EOF {
			b.t.Errorf("the archive is not whole: %v, %v", err, end)
		}
		b.files = append(b.files, string(file))
		n := len(b.files)
		out := json.NewEncoder(w)
		for i := range b.printed {
			_ = out.Encode(map[string]string{"stream": "STEP 2/4: RUN x\n--> " + id(200+i) + "\n"})
		}
		for i := range b.there {
			found := fmt.Sprintf("STEP 2/3: USER y\n--> Using cache %[1]s\n--> %[1]s\n", id(100+i))
			_ = out.Encode(map[string]string{"stream": found})
		}
		_ = out.Encode(map[string]string{"stream": "STEP 1/3: FROM x\nSTEP 2/3: RUN y\n--> " + id(n) + "\nSTEP 3/3: RUN z\n"})
		if n <= len(b.failures) {
			_ = out.Encode(map[string]string{"error": b.failures[n-1]})
		}
	default:
		about := map[string]string{}
		for n := range b.files {
			about[id(n+1)] = `{"Id": "made"}`
		}
		for i, step := range b.there {
			about[id(100+i)] = step
		}
		for i, image := range b.printed {
			about[id(200+i)] = image
		}
		for id, text := range about {
			if strings.HasSuffix(r.URL.Path, "/images/"+id+"/json") {
				_, _ = io.WriteString(w, text)
				return
			}
		}
		http.NotFound(w, r)
	}
}

func (b *builder) engine() *Engine {
	b.t.Helper()
	server := httptest.NewServer(b)
	b.t.Cleanup(server.Close)
	cli := must.Get(client.NewClientWithOpts(client.WithHost("tcp://"+server.Listener.Addr().String()),
		client.WithVersion("1.41")))(b.t)
	b.t.Cleanup(func() { _ = cli.Close() })
	return &Engine{cli: cli}
}

// Podman's builder fails when an image is removed beside it.
func TestABuildBesideARemovalIsTriedAgain(t *testing.T) {
	const gone = "checking if cached image exists from a previous build: getting top layer info: layer not known"
	for name, c := range map[string]struct {
		failures []string
		tries    int
		err      string
	}{
		"none":              {nil, 1, ""},
		"once":              {[]string{gone}, 2, ""},
		"an image":          {[]string{strings.Replace(gone, "layer not", "image not", 1)}, 2, ""},
		"as often as tried": {[]string{gone, gone, gone, gone}, 3, "build x: step 3/3: " + gone},
		"another error":     {[]string{"exit status 7"}, 1, "build x: step 3/3: exit status 7"},
		"another, then": {[]string{gone, "exit status 7"}, 2,
			"build x: step 3/3: exit status 7"},
		"of a command": {[]string{"building at STEP \"RUN " + gone + "\""}, 1,
			"build x: step 3/3: building at STEP \"RUN " + gone + "\""},
	} {
		t.Run(name, func(t *testing.T) {
			b := &builder{t: t, failures: c.failures}
			var shown strings.Builder
			err := b.engine().Build(t.Context(), "x", Recipe{Dockerfile: []byte("FROM x\nRUN y\n")}, nil, &shown)
			if got := fmt.Sprint(err); got != c.err && (err != nil || c.err != "") {
				t.Errorf("it ends with %v, want %q", err, c.err)
			}
			if want := slices.Repeat([]string{"FROM x\nRUN y\n"}, c.tries); !slices.Equal(b.files, want) {
				t.Errorf("it built %q, want %q", b.files, want)
			}
			// What a build that failed has made is removed before the next one, which
			// would find it as if it had been there before.
			var want []string
			for n := range min(c.tries, len(c.failures)) {
				want = append(want, id(n+1))
			}
			if !slices.Equal(b.removed, want) {
				t.Errorf("it removed %q, want %q", b.removed, want)
			}
		})
	}
}

// Of two builds that share a step and fail, the one that made it may be the first to end, and cannot remove what the
// other has a step on. The other one does.
func TestAFailedBuildRemovesTheStepsThatAnotherOneLeft(t *testing.T) {
	b := &builder{t: t, failures: []string{"exit status 7"}, there: []string{
		`{"Id": "a", "Config": {"Labels": {"aileron.image": "1"}}, "RepoTags": ["x:1"]}`,
		`{"Id": "b", "Config": {"Labels": {"aileron.image": "1"}}}`,
		`{"Id": "c", "Config": {"Labels": {"theirs": "1"}}}`,
		`{"Id": "d"}`,
		`{"Id": "e", "Config": {"Labels": {"aileron.image": "1"}}, "RepoTags": []}`,
	}}
	err := b.engine().Build(t.Context(), "x", Recipe{Dockerfile: []byte("FROM x\n")},
		map[string]string{"aileron.image": "1"}, io.Discard)
	if err == nil || !strings.Contains(err.Error(), "exit status 7") {
		t.Fatalf("the build ends with %v", err)
	}
	if want := []string{id(1), id(104), id(101)}; !slices.Equal(b.removed, want) {
		t.Errorf("it removed %q, want its own, then what is nameless and has our label, the last first: %q", b.removed,
			want)
	}
}

// A command of a Dockerfile can print what an engine prints of a step, with the id of an image that is the person's.
func TestAFailedBuildRemovesNoImageThatHasAName(t *testing.T) {
	b := &builder{t: t, failures: []string{"exit status 7"}, printed: []string{
		`{"Id": "a", "RepoTags": ["docker.io/library/debian:bookworm-slim"]}`,
		`{"Id": "b", "RepoTags": [], "RepoDigests": ["docker.io/library/debian@sha256:0123"]}`,
		`{"Id": "c", "RepoTags": ["x:1", "y:2"]}`,
		`{"Id": "d", "RepoTags": ["x:1"], "RepoDigests": ["<none>@sha256:0123", "x@sha256:0123"]}`,
	}}
	err := b.engine().Build(t.Context(), "x:1", Recipe{Dockerfile: []byte("FROM x\n")}, nil, io.Discard)
	if err == nil || !strings.Contains(err.Error(), "exit status 7") {
		t.Fatalf("the build ends with %v", err)
	}
	if want := []string{id(1), id(203)}; !slices.Equal(b.removed, want) {
		t.Errorf("it removed %q, want what has no name but that of the build: %q", b.removed, want)
	}
}

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
	out := must.Get(service.StdoutPipe())(t)
	must.Do(t, service.Start())
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
