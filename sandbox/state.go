package sandbox

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"

	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/sandbox/engine"
	"github.com/ALRubinger/aileron/sandbox/internal/users"
)

// StateDir is where a sandbox with a [State] has it.
const StateDir = "/var/lib/aileron/state"

// State names what a program keeps from one sandbox to the next: a volume of the
// engine, of one home of aileron, project, program and user of the sandbox. A
// sandbox may write anything to it, so only sandboxes read it.
type State struct{ Home, Project, Program string }

const (
	labelState   = "aileron.state"
	labelProject = "aileron.state.project"
	labelProgram = "aileron.state.program"
)

// labels are those of the volume, or of all volumes of the home that have what is
// set. They hold digests: another user of the engine learns no path.
func (s State) labels() map[string]string {
	labels := map[string]string{labelState: sum(strconv.Itoa(os.Getuid()), s.Home)}
	if s.Project != "" {
		labels[labelProject] = sum(s.Project)
	}
	if s.Program != "" {
		labels[labelProgram] = s.Program
	}
	return labels
}

// volume is the name of the volume in sandboxes of a user.
func (s State) volume(user string) string {
	return namePrefix + "state-" + sum(strconv.Itoa(os.Getuid()), s.Home, s.Project, s.Program, user)[:32]
}

func sum(parts ...string) string {
	digest := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return hex.EncodeToString(digest[:])
}

// mountState mounts the volume of a state for the user of a sandbox.
func (e *Engine) mountState(ctx context.Context, s State, config *engine.Config) error {
	name := s.volume(config.User)
	err := e.EnsureVolume(ctx, name, s.labels())
	if errors.Is(err, engine.ErrForeign) {
		return hint.New(fmt.Errorf("keep the state of %s: %w", s.Program, err),
			"remove it with: %s volume rm %s, or keep no state with --keep=false", e.Kind(), name)
	}
	if err != nil {
		return fmt.Errorf("keep the state of %s: %w", s.Program, err)
	}
	config.Mounts = append(config.Mounts, engine.Mount{Volume: name, Target: path.Dir(StateDir)})
	return nil
}

// chownState makes the user of a created container the owner of its state, whose
// files are the user's then: the name of the volume has the user in it. It is a
// directory in the volume: engines change no owner of a volume's root.
func (e *Engine) chownState(ctx context.Context, s State, id, user string) error {
	uid, gid := users.Numbers(user)
	var archive bytes.Buffer
	tw := tar.NewWriter(&archive)
	err := errors.Join(tw.WriteHeader(&tar.Header{Name: "state/", Typeflag: tar.TypeDir, Mode: 0o700, Uid: uid, Gid: gid}),
		tw.Close())
	if err != nil {
		return fmt.Errorf("make the state the user's: %w", err)
	}
	// One whose user is root may have put something else in its place. The engine refuses that, or follows a link to
	// another directory of the sandbox.
	info, err := e.Stat(ctx, id, StateDir)
	switch {
	case err == nil && !info.Mode.IsDir():
		err = errors.New("it is no directory")
	case err == nil || errors.Is(err, fs.ErrNotExist): // it is new, or a link that leads nowhere
		err = e.WriteArchive(ctx, id, path.Dir(StateDir), &archive)
	}
	if err != nil {
		return hint.New(fmt.Errorf("make the state of %s the user's: %w", s.Program, copyError{err}),
			"if an earlier sandbox has replaced it, forget it with: aileron sandbox prune --state --dir %s; "+
				"or keep none with --keep=false", s.Project)
	}
	return nil
}

// copyError is an error of an engine that was given an archive. Podman's has all of the options of its copier first.
type copyError struct{ error }

func (e copyError) Unwrap() error { return e.error }

func (e copyError) Error() string {
	text := e.error.Error()
	if _, cause, ok := strings.Cut(text, "}: copier: "); ok {
		return cause
	}
	return text
}

// RemoveStates removes the states that have what is set of s, and returns how many
// it removed. One that a sandbox uses is an error, and is left.
func (e *Engine) RemoveStates(ctx context.Context, s State) (removed int, err error) {
	defer e.Explain(&err)
	names, err := e.Volumes(ctx, s.labels())
	if err != nil {
		return 0, err
	}
	var faults []error
	for _, name := range names {
		if !strings.HasPrefix(name, namePrefix) {
			continue
		}
		if err := e.RemoveVolume(ctx, name); err != nil {
			faults = append(faults, err)
			continue
		}
		removed++
	}
	return removed, errors.Join(faults...)
}
