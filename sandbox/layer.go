package sandbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"runtime"
	"strings"

	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/internal/imagefs"
	"github.com/ALRubinger/aileron/sandbox/engine"
)

// Layer is what is put on an image that is not aileron's own if that lacks a command: files of an image of aileron's.
// Nothing of the other image runs while it is built.
type Layer struct {
	Name     string // what it adds, which the name of the image has
	Commands []string
	From     Image
	// Recipe is the Dockerfile, whose base is the build argument BASE. ${AGENT} in it becomes the id of From: where COPY
	// copies from cannot be an argument.
	Recipe []byte

	// Glibc: what it adds needs the GNU C library, and of other shared libraries those that are named.
	Glibc     bool
	Libraries []string

	// Env returns more variables of the command, as those of a [Composition]; nil is none.
	Env func(image []string) []string
	// Agree asks a person before the layer is built, and returns why it is not; nil asks no one. image is that which
	// lacks the command.
	Agree func(ctx context.Context, image string) error
	// Otherwise is the hint of an error because of which there is no layer.
	Otherwise string
}

// EnsureLayer returns an image that was ensured with l on it, or the image itself if it lacks no command of l. The name
// of the result is a digest of both images and of the recipe. Policy and progress are those of [Engine.EnsureImage].
func (e *Engine) EnsureLayer(ctx context.Context, img Image, l Layer, policy string, progress io.Writer) (_ Image,
	err error) {
	defer e.Explain(&err)
	lacks, missing, err := e.lacking(ctx, img, l)
	if err != nil || !lacks {
		return img, err
	}
	if len(missing) > 0 {
		return img, hint.New(fmt.Errorf("add %s to the image %s: it lacks %s", l.Name, img.Ref, strings.Join(missing, "; ")),
			"%s", l.Otherwise)
	}
	layered := func(from Image) Image { return layerOf(img, from, l) }
	from, _, err := e.pin(ctx, l.From)
	found := Image{}
	if err == nil {
		found, _, err = e.pin(ctx, layered(from))
	}
	switch here := err == nil; {
	case !here && !engine.IsNotFound(err):
		return img, err
	case here && policy != "always":
		return found, nil
	case policy == "never":
		return img, hint.New(fmt.Errorf("add %s to the image %s: it has none, and --sandbox-build=never forbids building "+
			"a layer", l.Name, img.Ref), "%s", l.Otherwise)
	}
	if triggers, err := e.OnBuild(ctx, img.id); err != nil {
		return img, fmt.Errorf("look for ONBUILD in the image %s: %w", img.Ref, err)
	} else if len(triggers) > 0 {
		return img, hint.New(fmt.Errorf("add %s to the image %s: its ONBUILD would run outside of the sandbox", l.Name,
			img.Ref), "%s", l.Otherwise)
	}
	if l.Agree != nil {
		if err := l.Agree(ctx, img.Ref); err != nil {
			return img, err
		}
	}
	if from, err = e.EnsureImage(ctx, l.From, policy, progress); err != nil {
		return img, err
	}
	// By their ids: a name may be another image's by now.
	made := layered(from)
	made.Dockerfile = bytes.ReplaceAll(l.Recipe, []byte("${AGENT}"), []byte(plainID(from.id)))
	if err := e.build(ctx, made, map[string]string{"BASE": plainID(img.id)}, progress); err != nil {
		return img, err
	}
	found, _, err = e.pin(ctx, layered(from))
	return found, err
}

// layerOf returns img with l, of an image of aileron's, on it.
func layerOf(img, from Image, l Layer) Image {
	return Image{Ref: "localhost/aileron/devcontainer-" + l.Name + ":" +
		longDigest([]byte(img.id), []byte(from.id), l.Recipe), Dockerfile: l.Recipe, tier: img.Tier(), project: img.project,
		Help: l.Otherwise}
}

// plainID returns an image's id as the builders of all engines take it for one.
func plainID(id string) string { return strings.TrimPrefix(id, "sha256:") }

// lacking reports whether an image lacks a command of l, and returns why the layer could not be put on it then.
func (e *Engine) lacking(ctx context.Context, img Image, l Layer) (lacks bool, missing []string, err error) {
	image, err := e.OpenImage(ctx, img)
	if err != nil {
		return false, nil, err
	}
	defer image.Close()
	env := image.env
	if l.Env != nil {
		env = append(env[:len(env):len(env)], l.Env(env)...)
	}
	for _, name := range l.Commands {
		has, err := anyIn(image, strings.Split(searchPath(env), ":"), name)
		if err != nil {
			return false, nil, fmt.Errorf("look for %s in the image %s: %w", name, img.Ref, err)
		}
		lacks = lacks || !has
	}
	if !lacks {
		return false, nil, nil
	}
	if !l.Glibc {
		return true, missing, nil
	}
	for _, library := range append([]string{loader()}, l.Libraries...) {
		has, err := anyIn(image, libraryDirs(), library)
		if err != nil {
			return false, nil, fmt.Errorf("look for %s in the image %s: %w", library, img.Ref, err)
		}
		if !has {
			missing = append(missing, "the library "+library)
		}
	}
	return true, missing, nil
}

// anyIn reports whether one of dirs of an image has a file, or a link, of that name. Directories that are not absolute
// are not looked into.
func anyIn(image *ImageFS, dirs []string, name string) (bool, error) {
	for _, dir := range dirs {
		if !path.IsAbs(dir) {
			continue
		}
		info, err := image.Lstat(strings.TrimPrefix(path.Join(dir, name), "/"))
		switch {
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, imagefs.ErrLoop):
		case err != nil:
			return false, err
		case info.Mode().IsRegular(), info.Mode()&fs.ModeSymlink != 0:
			return true, nil
		}
	}
	return false, nil
}

// loader returns the name of the loader of the GNU C library on this machine.
func loader() string {
	if runtime.GOARCH == "arm64" {
		return "ld-linux-aarch64.so.1"
	}
	return "ld-linux-x86-64.so.2"
}

// libraryDirs returns where distributions have the shared libraries of this machine.
func libraryDirs() []string {
	triple := "x86_64-linux-gnu"
	if runtime.GOARCH == "arm64" {
		triple = "aarch64-linux-gnu"
	}
	var dirs []string
	for _, top := range []string{"/usr", ""} {
		for _, dir := range []string{"lib64", "lib", "lib/" + triple} {
			dirs = append(dirs, top+"/"+dir)
		}
	}
	return dirs
}
