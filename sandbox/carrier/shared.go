package carrier

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/ALRubinger/aileron/sandbox/engine"
)

// UnsharedError is returned where the engine runs elsewhere and does not see a project of this host.
type UnsharedError struct{ Dir, Engine, Address string }

// ErrorClass and ErrorReason are for --json.
func (*UnsharedError) ErrorClass() string  { return "invalid_request" }
func (*UnsharedError) ErrorReason() string { return "project_not_shared" }

func (e *UnsharedError) Error() string {
	return fmt.Sprintf("give the sandbox the project %s: %s at %s runs elsewhere, and does not see this directory",
		e.Dir, e.Engine, e.Address)
}

// Sees mounts a directory of this host into a container that is never started, and reports whether a file of it is
// there.
func Sees(ctx context.Context, e *engine.Engine, scratch engine.Config, dir string) (bool, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return false, fmt.Errorf("try the engine's mounts: %w", err)
	}
	mark, err := os.CreateTemp(dir, "mark-")
	if err != nil {
		return false, fmt.Errorf("try the engine's mounts: %w", err)
	}
	_ = mark.Close()
	defer os.Remove(mark.Name())
	scratch.Mounts = []engine.Mount{{Source: dir, Target: "/host"}}
	id, err := e.CreateScratch(ctx, scratch)
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	if err != nil {
		return false, nil // Docker refuses a mount whose source it does not see
	}
	defer func() { _ = e.Remove(context.WithoutCancel(ctx), id) }()
	_, err = e.Stat(ctx, id, "/host/"+filepath.Base(mark.Name()))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// FilesParent returns the first of the directories of this host in which the files of a sandbox may be that sees
// reports, for [engine.MakeDirIn].
func FilesParent(sees func(dir string) (bool, error)) (parent string, ok bool, err error) {
	for _, parent := range engine.FileParents() {
		dir, err := engine.MakeDirIn(parent)
		if err != nil {
			continue // there is another one
		}
		seen, err := sees(dir)
		_ = os.RemoveAll(dir)
		if seen || err != nil {
			return parent, seen, err
		}
	}
	return "", false, nil
}

// RemoveVolumes removes the volumes of carriers, by their label, that are dead.
func RemoveVolumes(ctx context.Context, e *engine.Engine, key, value string, dead func(engine.Listed) bool) error {
	if started, _ := e.Local(); started {
		return nil // one of this host has none
	}
	volumes, err := e.VolumesLabelled(ctx, key, value)
	faults := []error{err}
	for _, v := range volumes {
		if dead(v) {
			faults = append(faults, e.RemoveVolume(ctx, v.ID))
		}
	}
	return errors.Join(faults...)
}
