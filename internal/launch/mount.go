package launch

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/ALRubinger/aileron/internal/failure"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/sandbox"
	"github.com/ALRubinger/aileron/sandbox/engine"
	"github.com/ALRubinger/aileron/shims"
	"github.com/ALRubinger/aileron/vault/keeper"
)

// ParseMount returns the mount that SRC[:DST][:ro] describes. SRC must exist. DST is an absolute path in the sandbox;
// without it the mount is at its own path.
func ParseMount(text, home string) (engine.Mount, error) {
	m, err := parseMount(text, "", home)
	if errors.Is(err, errMountForm) {
		return m, failure.Usage(mountError(text, err))
	}
	return m, mountError(text, err)
}

var errMountForm = errors.New("it is not SRC[:DST][:ro]")

// ParseProjectMount returns the mount that SRC:DST[:ro] in the file of a project describes. SRC is relative to the
// project in dir, and what its links lead to lies in the project too: what else a sandbox sees of this host is for a
// person to choose, with a flag.
func ParseProjectMount(text, dir, home string) (engine.Mount, error) {
	m, err := parseMount(text, dir, home)
	return m, projectMountError(text, m, dir, err)
}

// ProjectMount is [ParseProjectMount] of a mount that another file of the project describes.
func ProjectMount(m engine.Mount, dir, home string) (engine.Mount, error) {
	text := m.Source + ":" + m.Target
	m, err := resolveMount(m, dir, home)
	return m, projectMountError(text, m, dir, err)
}

// projectMountError returns an error about a mount of a project, err or that of [checkProjectMount].
func projectMountError(text string, m engine.Mount, dir string, err error) error {
	if err == nil {
		err = checkProjectMount(m, dir)
	}
	if hint.Of(err) == "" {
		err = hint.New(err, "a mount of a project's file is SRC:DST[:ro], as in data:/srv/data:ro")
	}
	return mountError(text, err)
}

// mountError adds the mount and a hint to an error about it.
func mountError(text string, err error) error {
	if err == nil {
		return nil
	}
	help := hint.Of(err)
	if help == "" {
		help = "a mount is SRC[:DST][:ro], as in ../lib:/lib:ro"
	}
	return hint.New(fmt.Errorf("mount %q: %w", text, err), "%s", help)
}

// parseMount reads a mount whose source is relative to project, "" being the current directory.
func parseMount(text, project, home string) (engine.Mount, error) {
	rest, readOnly := strings.CutSuffix(text, ":ro")
	source, target, two := strings.Cut(rest, ":")
	if source == "" || two && target == "" || strings.Contains(target, ":") {
		return engine.Mount{}, errMountForm
	}
	if !two && project != "" {
		return engine.Mount{}, errors.New("it names no place in the sandbox: SRC:DST")
	}
	return resolveMount(engine.Mount{Source: source, Target: target, ReadOnly: readOnly}, project, home)
}

// resolveMount returns a mount with its source, which is relative to project, as its links lead. Without a target it is
// at the path of its source.
func resolveMount(m engine.Mount, project, home string) (engine.Mount, error) {
	source := m.Source
	if !filepath.IsAbs(source) {
		source = filepath.Join(project, source)
	}
	source, err := filepath.Abs(source)
	if err != nil {
		return engine.Mount{}, err
	}
	target := cmp.Or(m.Target, source)
	if !filepath.IsAbs(target) || filepath.Clean(target) != target && filepath.Clean(target)+"/" != target {
		return engine.Mount{}, fmt.Errorf("%s is not an absolute path in the sandbox", target)
	}
	// The path that is checked is the one that is mounted, whatever its links lead to later.
	real, err := filepath.EvalSymlinks(source)
	if err != nil {
		return engine.Mount{}, err
	}
	m.Source, m.Target = real, filepath.Clean(target)
	return m, checkMount(m, home)
}

// checkProjectMount returns an error for a mount of a project's file that lies outside of the project, or with which
// the sandbox could write to its hooks of git by another path than the one at which they are protected.
func checkProjectMount(m engine.Mount, dir string) error {
	if !sandbox.Within(m.Source, dir) {
		return hint.New(fmt.Errorf("%s is not in the project", m.Source),
			"a project's file mounts what lies in the project; for anything else use: --mount SRC:DST")
	}
	git := filepath.Join(dir, ".git")
	if real, err := filepath.EvalSymlinks(git); err == nil {
		git = real
	}
	if !m.ReadOnly && (sandbox.Within(git, m.Source) || sandbox.Within(m.Source, git)) {
		return hint.New(fmt.Errorf("%s could be written to past the protection of git's hooks", m.Source),
			"mount it read-only, SRC:DST:ro, or another directory of the project")
	}
	return nil
}

// checkMount returns an error for a mount with which a sandbox would reach more than files of the user's work. Its
// source has no links.
func checkMount(m engine.Mount, home string) error {
	info, err := os.Stat(m.Source)
	if err != nil {
		return err
	}
	if !info.IsDir() && !info.Mode().IsRegular() {
		return fmt.Errorf("%s is neither a directory nor a file", m.Source)
	}
	user, _ := os.UserHomeDir()
	for _, f := range []struct {
		path, why string
		below     bool // what lies in it is refused too
	}{
		{"/proc", "it is the kernel's", true}, {"/sys", "it is the kernel's", true}, {"/dev", "it has devices", true},
		{"/run", "it has the sockets of this host's services", true},
		{"/var/run", "it has the sockets of this host's services", true},
		{user, "it has your keys; mount what the sandbox needs of it", false},
		{home, "it has the vault", true}, {keeper.Dir(home), "it has the key of the vault", true},
	} {
		if f.path == "" {
			continue
		}
		real := f.path
		if parent, err := filepath.EvalSymlinks(filepath.Dir(real)); err == nil { // it may be made later
			real = filepath.Join(parent, filepath.Base(real))
		}
		if at, err := filepath.EvalSymlinks(real); err == nil {
			real = at
		}
		if sandbox.Within(real, m.Source) || f.below && sandbox.Within(m.Source, real) {
			if m.Source == real {
				return fmt.Errorf("%s is refused: %s", real, f.why)
			}
			return fmt.Errorf("%s is refused because of %s: %s", m.Source, real, f.why)
		}
	}
	return CheckTarget(m.Target)
}

// takenPlaces are those of a sandbox that are the kernel's, the engine's, the session's or the project's. No mount lies
// at, above or below them.
func takenPlaces() []string {
	return []string{"/proc", "/sys", "/dev", "/etc", "/run", "/var/run", "/sbin/docker-init", "/.dockerenv",
		path.Dir(manifestsDir), path.Dir(sandbox.StateDir), sandbox.Workspace}
}

// filledPlaces are directories of the image in which the session puts files among the image's own, or finds the
// programs with which a sandbox starts. No mount lies at or above them.
func filledPlaces() []string {
	return []string{shims.Dir, "/usr/local/share/ca-certificates", "/var/lib/ca-certificates",
		"/bin", "/sbin", "/usr/bin", "/usr/sbin", path.Dir(sandbox.Workspace)}
}

// CheckTarget returns an error for a place in a sandbox that is the engine's, the session's or the project's.
func CheckTarget(target string) error {
	bad := func(taken string) error {
		return fmt.Errorf("%s in the sandbox is refused: %s is not yours to replace", target, taken)
	}
	for _, taken := range takenPlaces() {
		if sandbox.Within(target, taken) || sandbox.Within(taken, target) {
			return bad(taken)
		}
	}
	for _, filled := range filledPlaces() {
		if sandbox.Within(filled, target) {
			return bad(filled)
		}
	}
	return nil
}

// fitMounts fits the mounts to a project that is at its own path too: one that is writable shows what is there anyway,
// and one that is read-only covers a place of it.
func (b *sandboxed) fitMounts() error {
	var rest []engine.Mount
	for _, m := range b.mounts {
		rel, err := filepath.Rel(b.dir, m.Target)
		switch {
		case err != nil || !filepath.IsLocal(rel) || sandbox.CheckPlace(b.dir) != nil:
			rest = append(rest, m)
		case m.Source != m.Target || rel == "." && m.ReadOnly:
			return hint.New(fmt.Errorf("mount %s: %s lies in the project, which the sandbox has at its own path", m.Source,
				m.Target), "name a place outside of it: SRC:DST")
		case m.ReadOnly:
			b.covered = append(b.covered, sandbox.Cover{Source: m.Source, Path: rel, Own: true})
		}
	}
	b.mounts = rest
	return nil
}

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
