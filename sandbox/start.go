package sandbox

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"path"
	"strings"
)

// CommandError says that an image cannot run a command, with the exit code
// that a shell would give: 127 for a command that is not there, 126 for one
// that cannot be executed.
type CommandError struct {
	Command, Image string
	Code           int
	Engine         string // what the engine says
}

// ErrorClass and ErrorReason are for --json.
func (*CommandError) ErrorClass() string  { return "invalid_request" }
func (*CommandError) ErrorReason() string { return "preflight_failed" }

func (e *CommandError) Error() string {
	if e.Code == 127 {
		return fmt.Sprintf("run %s in the box: the image %s has no such command (%s)", e.Command, e.Image, e.Engine)
	}
	return fmt.Sprintf("run %s in the box: the image %s cannot execute it (%s)", e.Command, e.Image, e.Engine)
}

// startError tells a command that cannot run from a box that cannot start.
// Engines give both as one text: runc says `exec: "x": …`, crun `executable
// file …`.
func startError(b Box, err error) error {
	text := strings.Join(strings.Fields(err.Error()), " ")
	at := strings.Index(text, `exec: "`)
	if at < 0 {
		at = strings.Index(text, "executable file")
	}
	if at < 0 {
		return fmt.Errorf("start the box: %w", err)
	}
	code := 126
	if strings.Contains(text[at:], "not found") || strings.Contains(strings.ToLower(text[at:]), "no such file") {
		code = 127
	}
	return &CommandError{Command: b.Command[0], Image: b.Image.Ref, Code: code, Engine: text[at:]}
}

// findCommand looks for a command in a box's file system and says where it is,
// because an init hides from the engine, each in its own way, that a command
// cannot be executed. Where it cannot know (the project, links) it lets the
// command pass.
func (e *Engine) findCommand(ctx context.Context, b Box, id, name, dirs string) (string, error) {
	places := []string{name}
	if !strings.Contains(name, "/") {
		places = nil
		for _, dir := range strings.Split(dirs, ":") {
			places = append(places, path.Join("/", dir, name))
		}
	}
	bad := &CommandError{Command: name, Image: b.Image.Ref, Code: 127, Engine: "no such file"}
	for _, place := range places {
		if !path.IsAbs(place) || strings.HasPrefix(path.Clean(place), path.Dir(Workspace)) {
			return place, nil
		}
		entry, err := e.stat(ctx, id, place)
		switch {
		case err != nil:
			return "", fmt.Errorf("look for the command: %w", err)
		case !entry.There:
			continue
		case executable(entry.Mode):
			return place, nil
		}
		bad.Code, bad.Engine = 126, place+" is not executable"
	}
	return "", bad
}

func executable(mode fs.FileMode) bool {
	return mode&fs.ModeSymlink != 0 || mode.IsRegular() && mode.Perm()&0o111 != 0
}

// searchPath is the last PATH of an environment, or what runtimes take
// without one.
func searchPath(env []string) string {
	return cmp.Or(envValue(env, "PATH"), "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
}
