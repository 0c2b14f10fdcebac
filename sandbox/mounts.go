package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/ALRubinger/aileron/sandbox/engine"
)

// hostname is a sandbox's own name: programs look for its address, and the
// gateway would return one that leads nowhere.
const hostname = "box"

// nameFiles are the files by which the sandbox's programs resolve names, as
// mounts. Left to itself Podman makes no resolv.conf for such a network and
// copies the host's names and addresses into hosts; Docker copies the host's
// resolver.
func nameFiles(b box) ([]engine.Mount, error) {
	var mounts []engine.Mount
	for name, text := range map[string]string{
		"resolv.conf": "nameserver 127.0.0.53\noptions ndots:1 timeout:2 attempts:1\n",
		"hosts":       "127.0.0.1\tlocalhost " + hostname + "\n::1\tlocalhost ip6-localhost ip6-loopback\n",
	} {
		at := filepath.Join(b.mounts, name)
		if err := writePublic(at, []byte(text), 0o644); err != nil {
			return nil, fmt.Errorf("write the sandbox's %s: %w", name, err)
		}
		mounts = append(mounts, engine.Mount{Source: at, Target: "/etc/" + name, ReadOnly: true})
	}
	return mounts, nil
}

// mountFiles are a sandbox's files as mounts, from a directory on the host:
// Docker copies nothing into a root that is read-only.
func mountFiles(b box) ([]engine.Mount, error) {
	dir := filepath.Join(b.mounts, "files")
	if err := os.Mkdir(dir, 0o711); err != nil { //nolint:gosec // the sandbox's user reads them
		return nil, fmt.Errorf("put the session's files beside the sandbox: %w", err)
	}
	var mounts []engine.Mount
	for i, f := range b.Files {
		if f.Mode.IsDir() {
			continue // made with the mount
		}
		at := filepath.Join(dir, strconv.Itoa(i))
		if err := writePublic(at, f.Data, f.Mode.Perm()); err != nil {
			return nil, fmt.Errorf("put the session's files beside the sandbox: %w", err)
		}
		mounts = append(mounts, engine.Mount{Source: at, Target: f.Path, ReadOnly: true})
	}
	return mounts, nil
}

// masks are the directories of a sandbox that are empty in it, although its
// project has something there.
func masks(b box) ([]string, error) {
	var masked []string
	for _, dir := range b.Mask {
		rel, err := filepath.Rel(b.Dir, dir)
		if err != nil || rel == "." || !Within(dir, b.Dir) {
			return nil, fmt.Errorf("hide %s: it does not lie in %s", dir, b.Dir)
		}
		masked = append(masked, filepath.Join(Workspace, rel))
	}
	return masked, nil
}

// forbiddenMount returns a [ProjectError] for what must never be in a sandbox and
// lies in its project or in a mount: the engine's socket, with which a sandbox
// would control the host, and the session's.
func (e *Engine) forbiddenMount(b box) error {
	for _, path := range append([]string{b.Sockets, b.mounts}, e.Sockets()...) {
		real, err := filepath.EvalSymlinks(path)
		if path == "" || err != nil {
			continue
		}
		for _, m := range b.Spec.Mounts {
			if Within(real, m.Source) {
				return &ProjectError{Dir: m.Source, Holds: real, Mount: true}
			}
		}
		masked := func(dir string) bool { return Within(real, dir) }
		if Within(real, b.Dir) && !slices.ContainsFunc(b.Mask, masked) {
			return &ProjectError{Dir: b.Dir, Holds: real}
		}
	}
	return nil
}

// Within reports whether an absolute path is that directory or lies in it.
func Within(path, dir string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, "../")
}

// writePublic writes a file that the sandbox's user reads, whatever the umask.
func writePublic(path string, data []byte, mode os.FileMode) error {
	if err := os.WriteFile(path, data, mode); err != nil {
		return err
	}
	return os.Chmod(path, mode)
}
