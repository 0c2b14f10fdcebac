package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/ALRubinger/aileron/sandbox/internal/users"
)

// systemPlaces are the directories of a sandbox that a project does not lie in: they are the image's system, the
// engine's or the session's.
var systemPlaces = []string{"/bin", "/boot", "/dev", "/etc", "/lib", "/lib32", "/lib64", "/libx32", "/opt/aileron",
	"/proc", "/run", "/sbin", "/sys", "/usr", "/var/run", Workspace}

// sharedPlaces are those that a project does not replace, because a sandbox needs what else is in them.
var sharedPlaces = []string{"/", "/home", "/home/agent", "/media", "/mnt", "/opt", "/root", "/srv", "/tmp", "/var",
	"/var/lib", "/var/tmp"}

// CheckPlace returns an error for a path of this host at which a sandbox can have nothing of it; the reason is for
// people.
func CheckPlace(at string) error {
	if at == Workspace {
		return nil
	}
	if !path.IsAbs(at) || path.Clean(at) != at || !utf8.ValidString(at) || strings.ContainsFunc(at, unicode.IsControl) {
		return errors.New("its path has characters that an engine does not take")
	}
	for _, dir := range systemPlaces {
		if Within(at, dir) {
			return fmt.Errorf("%s in the sandbox is not the project's", dir)
		}
	}
	if slices.Contains(sharedPlaces, at) {
		return fmt.Errorf("the sandbox needs its own %s", at)
	}
	return nil
}

// PlaceProject finds out whether the project can be at its own path in the sandbox, beside [Workspace], and sets Place,
// or Displaced. It looks into the image.
func (p *Prepared) PlaceProject(ctx context.Context) error {
	if err := CheckPlace(p.spec.Dir); err != nil {
		p.Displaced = err.Error()
		return nil //nolint:nilerr // the sandbox can do without
	}
	if p.IsNative() {
		p.Place = p.spec.Dir
		return nil
	}
	err := p.Engine.checkImagePlace(ctx, p.spec, p.Image)
	switch bad := (*placeError)(nil); {
	case errors.As(err, &bad):
		p.Displaced = bad.why
	case err != nil:
		return err
	default:
		p.Place = p.spec.Dir
	}
	return nil
}

// placeError is why an image cannot have the project at its own path.
type placeError struct{ why string }

func (e *placeError) Error() string { return e.why }

// checkImagePlace returns a placeError for an image in which the directories above the project are no directories, or
// not the command's to enter.
func (e *Engine) checkImagePlace(ctx context.Context, s Spec, img Image) error {
	img, about, err := e.pin(ctx, img)
	if err != nil {
		return err
	}
	for volume := range about.Volumes {
		if at := path.Clean("/" + volume); at != s.Dir && Within(at, s.Dir) {
			return &placeError{"the image has a volume at " + at}
		}
	}
	s.Image = img
	as, err := e.boxUser(ctx, box{Spec: s}, about)
	if err != nil {
		return err
	}
	image, err := e.OpenImage(ctx, img)
	if err != nil {
		return err
	}
	defer image.Close()
	uid, _ := users.Numbers(as.user)
	for _, dir := range ancestors(s.Dir) {
		info, err := image.Ask(strings.TrimPrefix(dir, "/"))
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil // made with the mount
		case err != nil:
			return err
		case !info.Mode.IsDir():
			return &placeError{"the image has something else at " + dir}
		case uid != 0 && info.Mode.Perm()&0o001 == 0:
			return &placeError{fmt.Sprintf("the image's %s is not for the user %s", dir, as.user)}
		}
	}
	return nil
}

// ancestors returns the directories above an absolute path but for the root, the topmost first.
func ancestors(at string) []string {
	var dirs []string
	for dir := path.Dir(at); dir != "/"; dir = path.Dir(dir) {
		dirs = append(dirs, dir)
	}
	slices.Reverse(dirs)
	return dirs
}

// places returns where the project is in a sandbox, the command's working directory first, unless the composition names
// another one.
func (b box) places() []string {
	var places []string
	for _, at := range []string{b.composed().Workspace, b.Place, Workspace} {
		if at != "" && !slices.Contains(places, at) {
			places = append(places, at)
		}
	}
	return places
}

// inPlaces returns where something of the project is in a sandbox, by its path in the project.
func (b box) inPlaces(rel string) []string {
	places := b.places()
	for i, place := range places {
		places[i] = path.Join(place, rel)
	}
	return places
}
