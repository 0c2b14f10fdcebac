package launch

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/sandbox/engine"
)

// A capture has what all requests of a session sent and got, so no sandbox may read it, and none may put another file
// in its place.

// PlaceCapture returns the path of a capture that is to be made, with the links in its directory resolved. It returns
// an error for one that a sandbox with this project directory and these mounts could read or replace.
func PlaceCapture(path, project string, mounts []engine.Mount) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	dir, err := filepath.EvalSymlinks(filepath.Dir(path))
	if err != nil {
		return "", hint.New(fmt.Errorf("--capture is %s: %w", path, err), "name a file in a directory that exists")
	}
	path = filepath.Join(dir, filepath.Base(path))
	if project, err = filepath.Abs(project); err != nil {
		return "", err
	}
	if real, err := filepath.EvalSymlinks(project); err == nil {
		project = real
	}
	seen := []string{project}
	for _, m := range mounts {
		seen = append(seen, m.Source)
	}
	// Whatever is wrong with the worktree is reported when it is mounted.
	if common, err := commonGitDir(project); err == nil && common != "" {
		seen = append(seen, common)
	}
	return path, checkCapture(path, seen)
}

// checkCapture returns an error if the file lies in one of the directories, by whatever name: a bind mount of this host
// is another one.
func checkCapture(path string, seen []string) error {
	var infos []os.FileInfo
	for _, dir := range seen {
		if info, err := os.Stat(dir); err == nil {
			infos = append(infos, info)
		}
	}
	for at := filepath.Dir(path); ; at = filepath.Dir(at) {
		info, err := os.Stat(at)
		if err != nil {
			return fmt.Errorf("place the capture: %w", err)
		}
		for _, other := range infos {
			if os.SameFile(info, other) {
				return hint.New(fmt.Errorf("--capture is %s, which the sandbox could read", path),
					"name a file outside of %s", at)
			}
		}
		if at == filepath.Dir(at) {
			return nil
		}
	}
}

// checkCapture is [PlaceCapture] for what the sandbox has in the end, and for the sandboxes of other sessions, by their
// ids.
func (s share) checkCapture(path string, others map[string]share) error {
	if path == "" {
		return nil
	}
	if real, err := filepath.EvalSymlinks(path); err != nil || real != path {
		return hint.New(fmt.Errorf("--capture is %s: its directory was replaced meanwhile", path),
			"name a file in a directory that no other program changes")
	}
	if err := checkCapture(path, s.Sources); err != nil {
		return err
	}
	for id, other := range others {
		if checkCapture(path, other.Sources) != nil {
			return hint.New(fmt.Errorf("--capture is %s, which the sandbox of session %s could read", path, id),
				"name a file outside of %s", other.Sources[0])
		}
	}
	return nil
}
