package launch

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/sandbox"
	"github.com/ALRubinger/aileron/vault/keeper"
)

// homeParts returns the directories of a home that a sandbox must not have: what lies in them decides what sandboxes
// may do, or is believed by the next command.
func homeParts() []string {
	return []string{"actions", "cache", "consents", "detached", "run", "sessions", "store", "trust", "vault"}
}

// Project returns a project directory as an absolute path, "" being the current one, and the directories of it that a
// sandbox must not see. A sandbox may write to its project, and aileron's own home decides what a sandbox may do: a
// home inside a project is masked, and a project inside a home is refused. So is the directory in which the key of an
// unlocked vault is held ready.
func Project(project, home string) (dir string, mask []string, err error) {
	if project == "" {
		project = "."
	}
	if dir, err = filepath.Abs(project); err != nil {
		return "", nil, hint.New(fmt.Errorf("find the project directory: %w", err),
			"this directory was removed; go into one that exists, or name one with --dir")
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return "", nil, hint.New(fmt.Errorf("use the project directory: %w", err), "--dir names a directory that exists")
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return "", nil, hint.New(fmt.Errorf("use the project directory: %s is not a directory", dir),
			"--dir names a directory that exists")
	}
	if real, err := filepath.EvalSymlinks(home); err == nil {
		home = real
	}
	inside := dir == home
	for _, part := range homeParts() {
		inside = inside || sandbox.Within(dir, filepath.Join(home, part))
	}
	socket := keeper.Dir(home)
	if real, err := filepath.EvalSymlinks(filepath.Dir(socket)); err == nil {
		socket = filepath.Join(real, filepath.Base(socket))
	}
	inside = inside || sandbox.Within(dir, socket)
	switch {
	case inside:
		return "", nil, hint.New(
			fmt.Errorf("use the project directory %s: it is aileron's own home %s, which a sandbox must not have", dir, home),
			"go into a project's directory, or name one with --dir")
	case sandbox.Within(home, dir):
		mask = append(mask, home)
	}
	// The key of an unlocked vault is behind a socket there, now or while the sandbox runs.
	if sandbox.Within(socket, dir) && !sandbox.Within(socket, home) {
		if err := os.Mkdir(socket, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return "", nil, hint.New(fmt.Errorf("hide %s from the sandbox: %w", socket, err),
				"go into a project's directory that does not contain it, or name one with --dir")
		}
		mask = append(mask, socket)
	}
	return dir, mask, nil
}
