package sandbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/ALRubinger/aileron/internal/imagefs"
)

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

// preflight inspects a sandbox that is made and not started. What its image
// lacks is in the report, except the command itself, which is a CommandError.
func (e *Engine) preflight(ctx context.Context, b box, id string) (Report, error) {
	var r Report
	c, err := e.Inspect(ctx, id)
	if err != nil {
		return r, fmt.Errorf("look at the sandbox: %w", err)
	}
	r.User, r.layer = c.User, c.Layer
	missing, err := e.findUser(ctx, b.Image, r.User)
	if err != nil || len(missing) > 0 { // Podman reads no file of a container whose user does not exist
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
