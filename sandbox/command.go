package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/ALRubinger/aileron/sandbox/engine"
)

// CommandError is returned for a command that an image cannot run. Code is what a
// shell would exit with: 127 for a command that does not exist, 126 for one that
// cannot be executed.
type CommandError struct {
	Command, Image string
	Code           int
	Engine         string // the engine's reason
}

// ErrorClass and ErrorReason are for --json.
func (*CommandError) ErrorClass() string  { return "invalid_request" }
func (*CommandError) ErrorReason() string { return "preflight_failed" }

func (e *CommandError) Error() string {
	if e.Code == 127 {
		return fmt.Sprintf("run %s in the sandbox: the image %s has no such command (%s)", e.Command, e.Image, e.Engine)
	}
	return fmt.Sprintf("run %s in the sandbox: the image %s cannot execute it (%s)", e.Command, e.Image, e.Engine)
}

// startError is the error of a start: a CommandError when the command cannot be
// executed.
func startError(b box, err error) error {
	if code, text, ok := engine.ExecFailure(err); ok {
		return &CommandError{Command: b.Command[0], Image: b.Image.Ref, Code: code, Engine: text}
	}
	return fmt.Errorf("start the sandbox: %w", err)
}

// findCommand returns where a command is in a sandbox's file system, because an
// init hides from the engine, each in its own way, that a command cannot be
// executed. Where it cannot be known (the project, mounts, links) the command passes.
func (e *Engine) findCommand(ctx context.Context, b box, id, name, dirs string) (string, error) {
	places := []string{name}
	if !strings.Contains(name, "/") {
		places = nil
		for _, dir := range strings.Split(dirs, ":") {
			places = append(places, path.Join("/", dir, name))
		}
	}
	bad := &CommandError{Command: name, Image: b.Image.Ref, Code: 127, Engine: "no such file"}
	for _, place := range places {
		mounted := func(m engine.Mount) bool { return Within(place, m.Target) }
		if !path.IsAbs(place) || strings.HasPrefix(path.Clean(place), path.Dir(Workspace)) ||
			slices.ContainsFunc(b.Spec.Mounts, mounted) {
			return place, nil
		}
		info, err := e.Stat(ctx, id, place)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil:
			return "", fmt.Errorf("look for the command: %w", err)
		case executable(info.Mode):
			return place, nil
		}
		bad.Code, bad.Engine = 126, place+" is not executable"
	}
	return "", bad
}

func executable(mode fs.FileMode) bool {
	return mode&fs.ModeSymlink != 0 || mode.IsRegular() && mode.Perm()&0o111 != 0
}
