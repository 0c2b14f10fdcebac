package sandbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"runtime"

	"github.com/ALRubinger/aileron/internal/imagefs"
)

// ImageFS is the file system of an image, an [fs.FS], read through a container
// that is created and never started, as far as they are not known already. See
// package imagefs for what it bounds.
type ImageFS struct {
	*imagefs.FS
	env   []string
	close func()
}

// Mounted returns the directories in which a sandbox does not see its image's
// files: the one of the project and the user's home, and those that engines mount.
func Mounted() []string {
	return []string{path.Dir(Workspace), "/proc", "/sys", "/dev", "/run", "/tmp", "/var/tmp"}
}

// ArchitectureError is returned for an image that is made for other machines.
type ArchitectureError struct{ Image, Theirs, Ours string }

func (e *ArchitectureError) Error() string {
	return fmt.Sprintf("run the image %s: it is made for %s, and this machine is %s without an emulator for it; "+
		"pull or build it for %s", e.Image, e.Theirs, e.Ours, e.Ours)
}

// OpenImage returns the file system of an image, which must be closed. Reading
// from it fails when ctx ends. The error for an image that is made for other
// machines is an [ArchitectureError].
func (e *Engine) OpenImage(ctx context.Context, img Image) (_ *ImageFS, err error) {
	defer e.Explain(&err)
	img, about, err := e.pin(ctx, img)
	if err != nil {
		return nil, err
	}
	if theirs := about.Architecture; theirs != "" && theirs != runtime.GOARCH && !emulated(theirs) {
		return nil, &ArchitectureError{img.Ref, theirs, runtime.GOARCH}
	}
	s := &scratchFiles{e: e, img: img}
	f := &ImageFS{env: about.Env}
	before := -1
	if known := e.known(img.id); known != nil {
		f.FS, before = known.With(s.source(ctx)), known.Known()
	} else if f.FS, err = s.read(ctx); err != nil {
		s.close(ctx)
		return nil, fmt.Errorf("look into %s: %w", img.Ref, err)
	}
	f.close = func() {
		s.close(ctx)
		if f.Known() != before {
			e.keep(img.id, f.With(imagefs.Source{}))
		}
	}
	return f, nil
}

// Close removes the container, if there is one, and keeps what is known now.
func (f *ImageFS) Close() { f.close() }

// Getenv returns a variable of the image's own environment, or "".
func (f *ImageFS) Getenv(name string) string { return envValue(f.env, name) }

// emulated reports whether the kernel runs programs of another architecture.
func emulated(arch string) bool {
	names := map[string]string{"amd64": "x86_64", "arm64": "aarch64", "386": "i386"}
	name := names[arch]
	if name == "" {
		name = arch
	}
	state, err := os.ReadFile("/proc/sys/fs/binfmt_misc/qemu-" + name)
	return err == nil && bytes.HasPrefix(state, []byte("enabled"))
}

// readEtc returns a container's /etc, which is empty if it does not exist.
func (e *Engine) readEtc(ctx context.Context, id string) (imagefs.Tree, error) {
	r, err := e.ReadArchive(ctx, id, "/"+imagefs.Etc)
	if errors.Is(err, fs.ErrNotExist) {
		return imagefs.Tree{}, nil
	}
	if err != nil {
		return imagefs.Tree{}, err
	}
	defer r.Close()
	return imagefs.ReadTree(r)
}

// filesOf returns the source of a container's single files. Podman does not find
// a link outside of /etc that leads to nothing: its name counts as absent, and the
// engine refuses a file that is put below it.
func (e *Engine) filesOf(ctx context.Context, id string) imagefs.Source {
	return imagefs.Source{
		Lstat: func(name string) (_ imagefs.Node, err error) {
			defer e.Explain(&err)
			info, err := e.Stat(ctx, id, "/"+name)
			return imagefs.Node{Mode: info.Mode, Size: info.Size, Link: info.Link}, err
		},
		ReadFile: func(name string) (_ []byte, err error) {
			defer e.Explain(&err)
			return e.copyOut(ctx, id, "/"+name)
		},
	}
}

// copyOut returns the contents of a container's file.
func (e *Engine) copyOut(ctx context.Context, id, name string) ([]byte, error) {
	r, err := e.ReadArchive(ctx, id, name)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return imagefs.ReadFirst(r)
}
