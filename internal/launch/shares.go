package launch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/ALRubinger/aileron/internal/gitlayout"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/internal/regular"
	"github.com/ALRubinger/aileron/internal/session"
	"github.com/ALRubinger/aileron/sandbox"
	"github.com/ALRubinger/aileron/sandbox/engine"
)

// A sandbox that may write to a directory can put a link in the place of what lies in it. If that is a mount of another
// sandbox, its engine would mount what the link leads to, any directory of this host. So each session records what its
// sandbox shares with this host, before it looks at the records of the others: of two that begin at once, at least one
// sees the other.

// share is what the sandbox of a session has of this host. Its paths have no links.
type share struct {
	Sources  []string `json:"sources"`  // of its mounts, the project first
	Writable []string `json:"writable"` // those of Sources that it may change
	Held     []string `json:"held"`     // directories in Writable that it cannot replace: they are mount points in it
	Mounted  bool     `json:"mounted"`  // whether its mounts are made
}

// shareFile is the name of the record in the directory of a session, which no sandbox has.
const shareFile = "share.json"

// maxShareFile bounds a record that is read.
const maxShareFile = 1 << 20

// canReplace reports whether a sandbox with this share could put something else in the place of path.
func (s share) canReplace(path string) bool {
	return !slices.Contains(s.Held, path) && slices.ContainsFunc(s.Writable, func(dir string) bool {
		return dir != path && sandbox.Within(path, dir)
	})
}

// overlaps reports whether a sandbox with this share may write to dir, or to something in it.
func (s share) overlaps(dir string) bool {
	return slices.ContainsFunc(s.Writable, func(other string) bool {
		return sandbox.Within(dir, other) || sandbox.Within(other, dir)
	})
}

// share records what the sandbox has of this host, and returns an error if another session's could replace it.
func (b *sandboxed) share() error {
	var err error
	if b.shared, err = b.shares(); err != nil {
		return err
	}
	if b.prepared.Sealed { // as the read-only copies: another engine may not see them
		asked := func(c sandbox.Cover) bool {
			return slices.ContainsFunc(b.covered, func(o sandbox.Cover) bool { return o.Path == c.Path })
		}
		b.covered = append(slices.DeleteFunc(b.held(), asked), b.covered...)
		for _, c := range b.covered {
			b.shared.Held = append(b.shared.Held, c.Source)
		}
	}
	if err := b.recordShare(); err != nil {
		return err
	}
	others, err := otherShares(b.Home, b.session.ID())
	if err != nil {
		return err
	}
	if err := b.checkPrograms(others); err != nil {
		return err
	}
	if err := b.shared.checkCapture(b.session.CapturePath(), others); err != nil {
		return err
	}
	// A directory that another sandbox can replace must not be mounted to hold it.
	replaceable := func(path string) bool {
		for _, other := range others {
			if other.canReplace(path) {
				return true
			}
		}
		return false
	}
	if i := slices.IndexFunc(b.shared.Held, replaceable); i >= 0 {
		b.Infof("aileron: warning: another session that can write to this project began before %s was there: nothing "+
			"keeps the sandbox from replacing it, and with .git the read-only hooks", b.shared.Held[i])
		b.shared.Held = slices.DeleteFunc(b.shared.Held, replaceable)
		b.covered = slices.DeleteFunc(b.covered, func(c sandbox.Cover) bool { return replaceable(c.Source) })
		if err := b.recordShare(); err != nil {
			return err
		}
	}
	return b.shared.conflict(others)
}

// shares returns what the sandbox has of this host, but for what it holds.
func (b *sandboxed) shares() (share, error) {
	s := share{Sources: []string{b.dir}, Writable: []string{b.dir}}
	for _, m := range b.mounts {
		s.Sources = append(s.Sources, m.Source)
		if !m.ReadOnly {
			s.Writable = append(s.Writable, m.Source)
		}
	}
	state, err := b.prepared.NativeState()
	if err == nil && state != "" {
		s.Sources, s.Writable = append(s.Sources, state), append(s.Writable, state)
	}
	return s, err
}

// checkPrograms returns an error if this sandbox, or that of another session, could replace a program that the host
// runs about this one's requests.
func (b *sandboxed) checkPrograms(others map[string]share) error {
	writable := slices.Clone(b.shared.Writable)
	for _, other := range others {
		writable = append(writable, other.Writable...)
	}
	b.Programs.Environ.Exclude(writable)
	return b.Programs.CheckOutside(writable)
}

// conflict returns an error if the sandbox of another session, by its id, could replace what this one mounts, or the
// other way round.
func (s share) conflict(others map[string]share) error {
	for id, other := range others {
		for _, source := range s.Sources {
			if other.canReplace(source) {
				return hint.New(fmt.Errorf("share %s with the sandbox: that of session %s may write to a directory above it, "+
					"and could put a link to any directory of this host in its place", source, id),
					"end that session with aileron session stop %s; or start in its directory, %s; or use a directory beside it",
					id, other.Sources[0])
			}
		}
		if other.Mounted {
			continue
		}
		for _, source := range other.Sources {
			if s.canReplace(source) {
				return hint.New(fmt.Errorf("share %s with the sandbox: session %s is about to start in it, in %s", s.Sources[0],
					id, source), "try again when that session has started")
			}
		}
	}
	return nil
}

// recordShare writes the record of this session.
func (b *sandboxed) recordShare() error {
	path := filepath.Join(b.session.Dir(), shareFile)
	data, err := json.Marshal(b.shared)
	if err == nil {
		err = os.WriteFile(path+".new", data, 0o600)
	}
	if err == nil {
		err = os.Rename(path+".new", path)
	}
	if err != nil {
		return fmt.Errorf("record what the sandbox shares with this host: %w", err)
	}
	return nil
}

// otherShares returns the records of the sessions of a home that run, but for its own, by their ids. One whose record
// cannot be read could share anything: that is an error.
func otherShares(home, own string) (map[string]share, error) {
	others := map[string]share{}
	for _, id := range session.Running(home) {
		if id == own {
			continue
		}
		data, err := regular.Read(filepath.Join(home, "sessions", id, shareFile), maxShareFile)
		if errors.Is(err, fs.ErrNotExist) { // it has no sandbox, it has ended, or it will find our record
			continue
		}
		var other share
		if err == nil {
			err = json.Unmarshal(data, &other)
		}
		if err == nil && len(other.Sources) == 0 {
			err = errors.New("it names no project")
		}
		if err != nil {
			return nil, fmt.Errorf("read what the sandbox of session %s shares with this host: %w", id, err)
		}
		others[id] = other
	}
	return others, nil
}

// isSharedNow reports whether the sandbox of another running session may write to the project.
func (b *sandboxed) isSharedNow() bool {
	others, err := otherShares(b.Home, b.session.ID())
	if err != nil {
		return true
	}
	for _, other := range others {
		if slices.ContainsFunc(b.shared.Writable, other.overlaps) {
			return true
		}
	}
	return false
}

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
	none := func(string) bool { return false }
	if layout, _ := gitlayout.Of(context.Background(), project, none); layout.Outside() {
		seen = append(seen, layout.Git)
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
