package sandbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/ALRubinger/aileron/internal/imagefs"
	"github.com/ALRubinger/aileron/sandbox/engine"
)

// Report is what an image offers to a box.
type Report struct {
	User    string   // who the command would be
	Command string   // where it was found; empty: nowhere
	Missing []string // what a box needs and the image has not, for people
}

// ImageError says what an image lacks for a box. Nothing of it was started.
type ImageError struct {
	Image   string
	Missing []string
}

// ErrorClass and ErrorReason are for --json.
func (*ImageError) ErrorClass() string  { return "invalid_request" }
func (*ImageError) ErrorReason() string { return "preflight_failed" }

func (e *ImageError) Error() string {
	return fmt.Sprintf("use the image %s for a box: it lacks %s", e.Image, strings.Join(e.Missing, "; "))
}

// writableScript tells whether the command's user may write to the project,
// which only the kernel knows.
const writableScript = `echo "user $(id -u 2>/dev/null):$(id -g 2>/dev/null)"
if [ -w . ]; then echo writable yes; fi
exit 0`

// Check looks whether an image can run a box's command: what Run looks for
// before it starts one, and, where the image has a shell, whether the
// command's user may write to the project. The shell runs in a box as sealed
// as Run's, without a network at all. What the image lacks stands in the
// report; an error is the engine's.
func (e *Engine) Check(ctx context.Context, b Box) (_ Report, err error) {
	defer e.Explain(&err)
	if inside := e.forbiddenMount(b); inside != "" {
		return Report{}, &ProjectError{Dir: b.Dir, Holds: inside}
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
	wanted := b.Command
	b.Session, b.Stdin, b.TTY = noSession, nil, false
	b.Command = []string{"/bin/sh", "-c", writableScript}
	config, _, err := e.boxConfig(ctx, b, seccomp)
	if err != nil {
		return Report{}, err
	}
	config.Name, config.Network = scratchName(), "none"
	id, err := e.CreateScratch(ctx, config)
	if err != nil {
		return Report{}, fmt.Errorf("check the image: %w", err)
	}
	defer func() { _ = e.Remove(context.WithoutCancel(ctx), id) }()
	b.Command = wanted
	r, err := e.preflight(ctx, b, id)
	if bad := (*CommandError)(nil); errors.As(err, &bad) {
		r.Missing = append(r.Missing, "the command "+wanted[0]+" on its PATH")
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
	return r, e.checkWriting(ctx, b, id, &r)
}

func (e *Engine) checkWriting(ctx context.Context, b Box, id string, r *Report) error {
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

// preflight looks at a box that is made and not started. What its image lacks
// stands in the report, except the command itself, which is a CommandError.
func (e *Engine) preflight(ctx context.Context, b Box, id string) (Report, error) {
	var r Report
	c, err := e.Inspect(ctx, id)
	if err != nil {
		return r, fmt.Errorf("look at the box: %w", err)
	}
	r.User = c.User
	missing, err := e.findUser(ctx, b.Image, r.User)
	if err != nil || len(missing) > 0 { // Podman looks into no box whose user it does not know
		r.Missing = append(r.Missing, missing...)
		return r, err
	}
	dirs := searchPath(c.Env)
	for _, name := range b.Needs {
		if _, err := e.findCommand(ctx, b, id, name, dirs); errors.As(err, new(*CommandError)) {
			r.Missing = append(r.Missing, "the command "+name+" on its PATH")
		} else if err != nil {
			return r, err
		}
	}
	r.Command, err = e.findCommand(ctx, b, id, b.Command[0], dirs)
	return r, err
}

// findUser looks for a user that an image names in the image's own lists:
// each engine finds its absence in another step, and says it in other words.
func (e *Engine) findUser(ctx context.Context, image Image, user string) (missing []string, err error) {
	name, group, _ := strings.Cut(user, ":")
	wanted := map[string]string{}
	for list, who := range map[string]string{"etc/passwd": name, "etc/group": group} {
		if strings.Trim(who, "0123456789") != "" && who != "root" { // a number needs no entry
			wanted[list] = who
		}
	}
	if len(wanted) == 0 {
		return nil, nil
	}
	if _, ok := e.seen.Load(image.id); !ok {
		files, err := e.OpenImage(ctx, image)
		if err != nil {
			return nil, err
		}
		files.Close()
	}
	tree, _ := e.seen.Load(image.id)
	etc, _ := tree.(imagefs.Tree)
	for list, who := range wanted {
		if !lists(imagefs.New(etc, imagefs.Source{}), list, who) {
			missing = append(missing, fmt.Sprintf("%s in its /%s, although it says USER %s", who, list, user))
		}
	}
	slices.Sort(missing)
	return missing, nil
}

// lists reports whether a list of users or groups in /etc has a name. One that
// was too large to keep is not judged.
func lists(etc fs.FS, list, name string) bool {
	data, err := fs.ReadFile(etc, list)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, imagefs.ErrLoop):
		return false
	case err != nil:
		return true
	}
	return bytes.Contains(append([]byte("\n"), data...), []byte("\n"+name+":"))
}

const (
	shellTime      = 30 * time.Second // for an image's shell to end, once it was started
	maxShellOutput = 64 << 10
)

// output starts a container, waits for its end, and returns the beginning of its
// output.
func (e *Engine) output(ctx context.Context, b Box, id string) (string, error) {
	if err := e.Start(ctx, id); err != nil {
		return "", startError(b, err)
	}
	ending, cancel := context.WithTimeout(ctx, shellTime)
	defer cancel()
	exited, faults := e.Wait(ending, id)
	select {
	case <-exited:
	case err := <-faults:
		if ending.Err() != nil && ctx.Err() == nil {
			return "", fmt.Errorf("check the image %s: its shell does not end", b.Image.Ref)
		}
		return "", fmt.Errorf("wait for the box: the engine went away: %w", err)
	}
	return e.Logs(ctx, id, maxShellOutput)
}
