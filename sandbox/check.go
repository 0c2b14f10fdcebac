package sandbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/pkg/stdcopy"
)

// Report is what an image offers to a box.
type Report struct {
	User    string   // who the command would be
	Command string   // where it was found; empty: nowhere
	Missing []string // what a box needs and the image has not, for people
}

// checkScript prints one fact a line: the user, whether the project may be
// written to, where the command is.
const checkScript = `echo "user $(id -u 2>/dev/null):$(id -g 2>/dev/null)"
if [ -w . ]; then echo writable yes; fi
found=$(command -v -- "$1" 2>/dev/null) && [ -x "$found" ] && echo "command $found"
exit 0`

// Check looks whether an image can run a box's command: whether it has
// /bin/sh, lets the command's user write to the project, and has the command
// on its PATH. It runs a box as sealed as Run's, without a network at all.
// What the image lacks stands in the report; an error is the engine's.
func (e *Engine) Check(ctx context.Context, b Box) (Report, error) {
	dir, err := os.MkdirTemp("", "aileron-check-")
	if err != nil {
		return Report{}, fmt.Errorf("check the image: %w", err)
	}
	defer os.RemoveAll(dir)
	seccomp, err := e.profile(dir)
	if err != nil {
		return Report{}, err
	}
	wanted := b.Command[0]
	b.Session, b.Stdin, b.TTY = nobody, nil, false
	b.Command = []string{"/bin/sh", "-c", checkScript, "check", wanted}
	config, host, _, err := e.boxConfig(ctx, b, seccomp)
	if err != nil {
		return Report{}, err
	}
	host.NetworkMode = "none"
	c, err := e.cli.ContainerCreate(ctx, config, host, nil, nil, "")
	if err != nil {
		return Report{}, fmt.Errorf("check the image: %w", err)
	}
	defer func() { _ = e.remove(context.WithoutCancel(ctx), c.ID) }()
	said, err := e.say(ctx, b, c.ID)
	if bad := (*CommandError)(nil); errors.As(err, &bad) {
		return Report{Missing: []string{"/bin/sh"}}, nil
	} else if err != nil {
		return Report{}, err
	}
	r, writable := Report{}, false
	for line := range strings.Lines(said) {
		what, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch what {
		case "user":
			r.User = value
		case "writable":
			writable = true
		case "command":
			r.Command = value
		}
	}
	if !writable {
		r.Missing = append(r.Missing, "a writable "+Workspace+" (the project belongs to another user)")
	}
	if r.Command == "" {
		r.Missing = append(r.Missing, "the command "+wanted+" on its PATH")
	}
	return r, nil
}

// say starts a container, waits for its end and gives what it said.
func (e *Engine) say(ctx context.Context, b Box, id string) (string, error) {
	if err := e.cli.ContainerStart(ctx, id, container.StartOptions{}); err != nil {
		return "", startError(b, err)
	}
	exited, faults := e.wait(ctx, id)
	select {
	case <-exited:
	case err := <-faults:
		return "", fmt.Errorf("wait for the box: the engine went away: %w", err)
	}
	logs, err := e.cli.ContainerLogs(ctx, id, container.LogsOptions{ShowStdout: true, ShowStderr: true})
	if err != nil {
		return "", fmt.Errorf("listen to the box: %w", err)
	}
	defer logs.Close()
	var out, other bytes.Buffer
	if _, err := stdcopy.StdCopy(&out, &other, logs); err != nil {
		return "", fmt.Errorf("listen to the box: %w", err)
	}
	return out.String(), nil
}
