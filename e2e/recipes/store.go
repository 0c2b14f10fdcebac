package recipes

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/ALRubinger/aileron/e2e/harness"
)

// Store is the images that Podman and Docker have here. Its Close must be
// called.
type Store struct {
	dir      string // what builds need
	env      []string
	progress io.Writer

	mu sync.Mutex // held while a shared file of dir is made, or a line is printed
}

// Open opens the engines' stores. Each image that is built is a line in
// progress.
func Open(progress io.Writer) (*Store, error) {
	dir, err := os.MkdirTemp("", "recipes-")
	if err != nil {
		return nil, err
	}
	s := &Store{dir: dir, env: os.Environ(), progress: progress}
	if os.Getenv("CONTAINERS_CONF") == "" {
		conf := filepath.Join(dir, "containers.conf")
		if err := os.WriteFile(conf, []byte(harness.PodmanConf()), 0o600); err != nil {
			return nil, err
		}
		s.env = append(s.env, "CONTAINERS_CONF="+conf)
	}
	return s, nil
}

// Close removes what builds needed. The images stay.
func (s *Store) Close() error { return os.RemoveAll(s.dir) }

// tool runs an engine's own command line.
func (s *Store) tool(ctx context.Context, name string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = s.env
	return cmd.CombinedOutput()
}

// Missing are those of the images that an engine does not have.
func (s *Store) Missing(ctx context.Context, engine string, images ...Image) ([]Image, error) {
	has, err := s.list(ctx, engine)
	if err != nil {
		return nil, err
	}
	var missing []Image
	for _, img := range images {
		if !has[img.Ref] {
			missing = append(missing, img)
		}
	}
	return missing, nil
}

// listTries is how often the images are listed before a failure counts.
const listTries = 5

// list returns the names that an engine's images have.
func (s *Store) list(ctx context.Context, engine string) (map[string]bool, error) {
	// Podman 4 fails if another process removes an image while it lists them.
	var out []byte
	err := errors.New("not tried")
	for try := 0; err != nil && try < listTries; try++ {
		if try > 0 {
			select {
			case <-ctx.Done():
				return nil, ctx.Err()
			case <-time.After(time.Second):
			}
		}
		out, err = s.tool(ctx, engine, "image", "ls", "--format", "{{.Repository}}:{{.Tag}}")
	}
	if err != nil {
		return nil, fmt.Errorf("list the images of %s, %d times: %w\n%s", engine, listTries, err, out)
	}
	names := map[string]bool{}
	for name := range strings.FieldsSeq(string(out)) {
		names[name] = true
	}
	return names, nil
}

// Ensure builds those of the images that an engine does not have, one after
// the other. The error of a build has all that the build printed.
func (s *Store) Ensure(ctx context.Context, engine string, images ...Image) error {
	missing, err := s.Missing(ctx, engine, images...)
	if err != nil {
		return err
	}
	var handed []Image
	for _, img := range missing {
		if engine == "docker" && !img.native {
			handed = append(handed, img)
			continue
		}
		if err := s.ensure(ctx, engine, img); err != nil {
			return err
		}
	}
	if len(handed) == 0 {
		return nil
	}
	if err := s.Ensure(ctx, "podman", handed...); err != nil {
		return err
	}
	return s.handOver(ctx, handed)
}

// ensure builds an image that an engine does not have.
func (s *Store) ensure(ctx context.Context, engine string, img Image) error {
	if err := s.Ensure(ctx, engine, img.needs...); err != nil {
		return err
	}
	began := time.Now()
	s.say("building %s with %s (once)", img.Ref, engine)
	said, err := img.make(ctx, s, engine)
	if err != nil {
		return fmt.Errorf("build %s with %s: %w\n%s", img.Ref, engine, err, said)
	}
	if took := time.Since(began); took > 10*time.Second {
		s.say("built %s in %d s", img.Ref, int(took.Seconds()))
	}
	return nil
}

// build builds an image with Podman, of one layer above the one that it is
// built from.
func (s *Store) build(ctx context.Context, ref, network, dir string, flags ...string) ([]byte, error) {
	args := []string{"build", "--network", network, "--layers=false", "--format", "docker", "--label", "aileron.image=1",
		"-t", ref}
	return s.tool(ctx, "podman", append(append(args, flags...), dir)...)
}

// handOver copies images from Podman to Docker. They are not built again there:
// Docker's classic builder knows no mounts, and what an image is fetched from
// is asked once.
func (s *Store) handOver(ctx context.Context, images []Image) error {
	var refs, done []string
	for _, img := range images {
		refs = append(refs, img.Ref)
		if img.handed {
			done = append(done, img.Ref)
		}
	}
	s.say("handing %s to docker (once)", some(refs))
	const pipe = `set -o pipefail; podman save --quiet --multi-image-archive "$@" | docker load --quiet`
	if out, err := s.tool(ctx, "bash", append([]string{"-c", pipe, "-"}, refs...)...); err != nil {
		return fmt.Errorf("hand %s to Docker: %w\n%s", some(refs), err, out)
	}
	if len(done) == 0 {
		return nil
	}
	if out, err := s.tool(ctx, "podman", append([]string{"rmi"}, done...)...); err != nil {
		return fmt.Errorf("remove Podman's copy of %s: %w\n%s", some(done), err, out)
	}
	return nil
}

// some is a list of names in a few words.
func some(names []string) string {
	if len(names) <= 2 {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", names[0], len(names)-1)
}

func (s *Store) say(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fmt.Fprintf(s.progress, "images: "+format+"\n", args...)
}
