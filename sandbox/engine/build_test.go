package engine

import (
	"archive/tar"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/docker/docker/client"
)

// builder is an engine whose builds fail as they are told, each after it has made
// the image of a step.
type builder struct {
	t        *testing.T
	failures []string // of one build after the other; then they work

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
		_ = out.Encode(map[string]string{"stream": "STEP 1/3: FROM x\nSTEP 2/3: RUN y\n--> " + id(n) + "\nSTEP 3/3: RUN z\n"})
		if n <= len(b.failures) {
			_ = out.Encode(map[string]string{"error": b.failures[n-1]})
		}
	default:
		http.NotFound(w, r)
	}
}

func (b *builder) engine() *Engine {
	b.t.Helper()
	server := httptest.NewServer(b)
	b.t.Cleanup(server.Close)
	cli, err := client.NewClientWithOpts(client.WithHost("tcp://"+server.Listener.Addr().String()),
		client.WithVersion("1.41"))
	if err != nil {
		b.t.Fatal(err)
	}
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
			err := b.engine().Build(t.Context(), "x", []byte("FROM x\nRUN y\n"), nil, nil, &shown)
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
