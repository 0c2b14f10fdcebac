package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/ALRubinger/aileron/sandbox/engine"
)

// Report is what an image offers to a sandbox.
type Report struct {
	User    string   // who the command would be
	Command string   // where it was found; empty: nowhere
	Missing []string // what a sandbox needs and the image lacks, for people

	layer engine.Layer // of the container that was looked at
}

// writableScript prints whether the command's user may write to the project,
// which only the kernel knows.
const writableScript = `echo "user $(id -u 2>/dev/null):$(id -g 2>/dev/null)"
if [ -w . ]; then echo writable yes; fi
exit 0`

// Check reports whether an image can run a sandbox's command: what Run looks for
// before it starts one, and, where the image has a shell, whether the command's
// user may write to the project. The shell runs in a container that is as
// confined as Run's, without a network at all. What the image lacks is in the
// report; an error is the engine's. Only the image, the command with its needs
// and the project of s are used.
func (e *Engine) Check(ctx context.Context, s Spec) (_ Report, err error) {
	defer e.Explain(&err)
	b := box{Spec: s}
	if err := e.forbiddenMount(b); err != nil {
		return Report{}, err
	}
	dir, err := engine.MakeDir()
	if err != nil {
		return Report{}, fmt.Errorf("check the image: %w", err)
	}
	defer os.RemoveAll(dir)
	seccomp, err := e.Seccomp(dir, seccompProfile)
	if err != nil {
		return Report{}, err
	}
	if b.Image, _, err = e.pin(ctx, b.Image); err != nil {
		return Report{}, err
	}
	id, err := e.createCheck(ctx, b, seccomp)
	if err != nil {
		return Report{}, err
	}
	defer func() { _ = e.Remove(context.WithoutCancel(ctx), id) }()
	r, err := e.preflight(ctx, b, id)
	if bad := (*CommandError)(nil); errors.As(err, &bad) {
		r.Missing = append(r.Missing, "the command "+b.Command[0]+" on its PATH")
	} else if err != nil {
		return Report{}, err
	}
	if len(r.Missing) > 0 {
		return r, nil
	}
	if _, err := e.Stat(ctx, id, "/bin/sh"); errors.Is(err, fs.ErrNotExist) {
		return r, nil
	} else if err != nil {
		return r, err
	}
	err = e.checkWriting(ctx, b, id, &r)
	return r, err
}

// createCheck makes the container of a sandbox for the script, without a
// network.
func (e *Engine) createCheck(ctx context.Context, b box, seccomp string) (string, error) {
	b.Session, b.Command = noSession, []string{"/bin/sh", "-c", writableScript}
	config, _, err := e.boxConfig(ctx, b, seccomp)
	if err != nil {
		return "", err
	}
	config.Name, config.Network = scratchName(), "none"
	id, err := e.CreateScratch(ctx, config)
	if err != nil {
		return "", fmt.Errorf("check the image: %w", err)
	}
	return id, nil
}

// checkWriting runs the script.
func (e *Engine) checkWriting(ctx context.Context, b box, id string, r *Report) error {
	out, err := e.output(ctx, b, id)
	if err != nil {
		return err
	}
	writable := false
	for line := range strings.Lines(out) {
		what, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch what {
		case "user":
			r.User = value
		case "writable":
			writable = true
		}
	}
	if !writable {
		r.Missing = append(r.Missing, "a writable "+Workspace+" (the project belongs to another user)")
	}
	return nil
}

const (
	shellTime      = 30 * time.Second // for an image's shell to end, once it was started
	maxShellOutput = 64 << 10
)

// output starts a container, waits for its end, and returns the beginning of its
// output.
func (e *Engine) output(ctx context.Context, b box, id string) (string, error) {
	if err := e.Start(ctx, id); err != nil {
		return "", startError(b, err)
	}
	ending, cancel := context.WithTimeout(ctx, shellTime)
	defer cancel()
	exited, faults := e.Wait(ending, &engine.Container{ID: id})
	select {
	case <-exited:
	case err := <-faults:
		if ending.Err() != nil && ctx.Err() == nil {
			return "", fmt.Errorf("check the image %s: its shell does not end", b.Image.Ref)
		}
		return "", fmt.Errorf("wait for the sandbox: the engine went away: %w", err)
	}
	return e.Logs(ctx, id, maxShellOutput)
}
