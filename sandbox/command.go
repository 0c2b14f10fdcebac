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
	if place := e.commandInImage(ctx, b, places); place != "" {
		return place, nil
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

// commandInImage returns the first of places at which the image of a sandbox has
// a command, by what is known of its files; "" if there is none, or where
// something else may lie over them: then the sandbox itself is asked.
func (e *Engine) commandInImage(ctx context.Context, b box, places []string) string {
	if len(b.Spec.Mounts) > 0 || len(b.covers) > 0 {
		return ""
	}
	image, err := e.OpenImage(ctx, b.Image)
	if err != nil {
		return ""
	}
	defer image.Close()
	for _, place := range places {
		if !path.IsAbs(place) || lying(Mounted(), path.Clean(place)) {
			return ""
		}
		info, err := image.Ask(strings.TrimPrefix(path.Clean(place), "/"))
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err == nil && executable(info.Mode):
			return place
		}
		return ""
	}
	return ""
}

// lying reports whether a path is one of dirs, or below one.
func lying(dirs []string, at string) bool {
	for _, dir := range dirs {
		if at == dir || strings.HasPrefix(at, dir+"/") {
			return true
		}
	}
	return false
}

func executable(mode fs.FileMode) bool {
	return mode&fs.ModeSymlink != 0 || mode.IsRegular() && mode.Perm()&0o111 != 0
}
