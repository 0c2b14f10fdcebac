package sandbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/ALRubinger/aileron/internal/imagefs"
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
	if err := forbiddenMount(b, e.Sockets()); err != nil {
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
	if bad := (*ImageError)(nil); errors.As(err, &bad) {
		return Report{Missing: bad.Missing}, nil
	}
	if err != nil {
		return Report{}, err
	}
	defer func() { _ = e.Remove(context.WithoutCancel(ctx), id) }()
	made, err := e.inspectMade(ctx, id)
	if err != nil {
		return Report{}, err
	}
	r, err := e.preflight(ctx, b, id, made)
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

// ImageError is returned for an image that lacks something that a sandbox needs.
// Nothing of it was started.
type ImageError struct {
	Image   string
	Missing []string
}

// ErrorClass and ErrorReason are for --json.
func (*ImageError) ErrorClass() string  { return "invalid_request" }
func (*ImageError) ErrorReason() string { return "preflight_failed" }

func (e *ImageError) Error() string {
	return fmt.Sprintf("use the image %s for a sandbox: it lacks %s", e.Image, strings.Join(e.Missing, "; "))
}

// inspectMade returns what the engine says of a sandbox that is made and not started.
func (e *Engine) inspectMade(ctx context.Context, id string) (engine.State, error) {
	made, err := e.Inspect(ctx, id)
	if err != nil {
		return made, fmt.Errorf("look at the sandbox: %w", err)
	}
	return made, nil
}

// preflight inspects a sandbox that is made and not started. What its image
// lacks is in the report, except the command itself, which is a CommandError.
func (e *Engine) preflight(ctx context.Context, b box, id string, made engine.State) (Report, error) {
	r := Report{User: made.User, layer: made.Layer}
	dirs := searchPath(made.Env)
	for _, name := range b.Needs {
		if _, err := e.findCommand(ctx, b, id, name, dirs); errors.As(err, new(*CommandError)) {
			r.Missing = append(r.Missing, "the command "+name+" on its PATH")
		} else if err != nil {
			return r, err
		}
	}
	var err error
	r.Command, err = e.findCommand(ctx, b, id, b.Command[0], dirs)
	return r, err
}

// findUser looks for a user that an image names in the image's own lists: each
// engine detects its absence in another step, with an error of other words.
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
	etc, err := e.etcOf(ctx, image)
	if err != nil {
		return nil, err
	}
	for list, who := range wanted {
		if !lists(etc, list, who) {
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

// CommandError is returned for a command that an image cannot run. Code is what a
// shell would exit with: 127 for a command that does not exist, 126 for one that
// cannot be executed.
type CommandError struct {
	Command, Image string // Image is "" for a native sandbox
	Code           int
	Engine         string // the engine's reason
}

// ErrorClass and ErrorReason are for --json.
func (*CommandError) ErrorClass() string  { return "invalid_request" }
func (*CommandError) ErrorReason() string { return "preflight_failed" }

func (e *CommandError) Error() string {
	if e.Image == "" {
		return fmt.Sprintf("run %s in the sandbox: %s", e.Command, e.Engine)
	}
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
			lying(append(b.places(), b.composed().targets()...), path.Clean(place)) ||
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
	over := slices.Concat(Mounted(), b.places(), b.composed().targets())
	for _, m := range b.Spec.Mounts {
		over = append(over, m.Target)
	}
	for _, c := range b.covers {
		if path.IsAbs(c.Path) { // the others are in the project
			over = append(over, c.Path)
		}
	}
	image, err := e.OpenImage(ctx, b.Image)
	if err != nil {
		return ""
	}
	defer image.Close()
	for _, place := range places {
		if !path.IsAbs(place) || lying(over, path.Clean(place)) {
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
