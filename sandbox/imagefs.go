package sandbox

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"sync"

	"github.com/ALRubinger/aileron/internal/imagefs"
	"github.com/ALRubinger/aileron/sandbox/engine"
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
	if theirs := about.Architecture; theirs != "" && !e.runs(theirs) {
		return nil, &ArchitectureError{img.Ref, theirs, runtime.GOARCH}
	}
	s := &scratchFiles{e: e, img: img, layer: about.Layer}
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

// runs reports whether the engine's machine runs programs of an architecture. It is not known of one elsewhere.
func (e *Engine) runs(arch string) bool {
	return arch == runtime.GOARCH || e.IsElsewhere() || emulated(arch)
}

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

// What is known of an image's files is kept from one session to the next: to look
// into an image, an engine has to make a container, and Podman starts a process
// for each file. An image is known by its id, which is a digest of its files, so
// nothing that is kept becomes wrong. It is only where to look and what to add
// to: what is put into a sandbox is compared with the sandbox itself, see verify.

const (
	// cacheFormat is in the names of the files: another format is another file.
	cacheFormat = "1"
	// maxCached is how many images are kept.
	maxCached = 16
	// maxCacheFile bounds a file that is read.
	maxCacheFile = 96 << 20
)

// known returns what is known of the files of an image, without a source; nil
// for nothing.
func (e *Engine) known(id string) *imagefs.FS {
	if f, ok := e.seen.Load(id); ok {
		return f.(*imagefs.FS)
	}
	if e.cache == "" {
		return nil
	}
	e.loading.Lock()
	defer e.loading.Unlock()
	if f, ok := e.seen.Load(id); ok { // meanwhile
		return f.(*imagefs.FS)
	}
	file, err := os.Open(e.cacheFile(id))
	if err != nil {
		return nil
	}
	defer file.Close()
	if info, err := file.Stat(); err != nil || info.Size() > maxCacheFile {
		return nil
	}
	f, err := imagefs.Load(bufio.NewReader(file), imagefs.Source{})
	if err != nil { // damaged: it is written anew
		return nil
	}
	e.seen.Store(id, f)
	return f
}

// keep keeps what is known of an image. Without a directory, or room in it, the
// next session looks into the image again.
func (e *Engine) keep(id string, f *imagefs.FS) {
	e.seen.Store(id, f)
	if e.cache == "" || os.MkdirAll(e.cache, 0o700) != nil {
		return
	}
	file, err := os.CreateTemp(e.cache, "new-")
	if err != nil {
		return
	}
	defer os.Remove(file.Name()) // where it was not renamed
	out := bufio.NewWriter(file)
	err = cmp.Or(f.Save(out), out.Flush(), file.Close())
	if err == nil && os.Rename(file.Name(), e.cacheFile(id)) == nil {
		e.trimCache()
	}
}

// cacheFile is the file of an image. Engines report links in different ways, so
// each has its own.
func (e *Engine) cacheFile(id string) string {
	name := sha256.Sum256([]byte(e.Kind() + "\x00" + id))
	return filepath.Join(e.cache, cacheFormat+"-"+hex.EncodeToString(name[:]))
}

// trimCache removes the files that were written first, beyond the number that is
// kept.
func (e *Engine) trimCache() {
	entries, _ := os.ReadDir(e.cache) // an error: there is nothing to remove
	var files []os.FileInfo
	for _, entry := range entries {
		if info, err := entry.Info(); err == nil {
			files = append(files, info)
		}
	}
	slices.SortFunc(files, func(a, b os.FileInfo) int { return b.ModTime().Compare(a.ModTime()) })
	for _, info := range files[min(maxCached, len(files)):] {
		_ = os.Remove(filepath.Join(e.cache, info.Name()))
	}
}

// scratchFiles are the files of an image behind a container that is made when
// the first of them is asked for.
type scratchFiles struct {
	e     *Engine
	img   Image
	layer engine.Layer // of the image

	mu sync.Mutex
	id string // of the container; "": there is none yet
}

// open returns the container's id.
func (s *scratchFiles) open(ctx context.Context) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.id != "" {
		return s.id, nil
	}
	id, err := s.e.CreateScratch(ctx, scratch(s.img))
	if err != nil {
		return "", fmt.Errorf("%w: %w", engine.ErrEngine, err)
	}
	s.id = id
	return s.id, nil
}

// read reads /etc of the image, and returns the file system.
func (s *scratchFiles) read(ctx context.Context) (*imagefs.FS, error) {
	id, err := s.open(ctx)
	if err != nil {
		return nil, err
	}
	etc, err := s.e.readEtc(ctx, id)
	if err != nil {
		return nil, err
	}
	return imagefs.New(etc, s.source(ctx)), nil
}

// source is the source of the image's files. Podman takes a process or two for each name, of a program of 50 MB: what
// the layers of the image show is not asked of it.
func (s *scratchFiles) source(ctx context.Context) imagefs.Source {
	return imagefs.Source{
		Lstat: func(name string) (imagefs.Node, error) {
			if info, sure, err := s.layer.Lstat("/" + name); sure {
				return imagefs.Node{Mode: info.Mode, Size: info.Size, Link: info.Link}, err
			}
			id, err := s.open(ctx)
			if err != nil {
				return imagefs.Node{}, err
			}
			return s.e.filesOf(ctx, id).Lstat(name)
		},
		ReadFile: func(name string) ([]byte, error) {
			if data, sure := s.layer.ReadFile("/"+name, imagefs.MaxFile); sure {
				return data, nil
			}
			id, err := s.open(ctx)
			if err != nil {
				return nil, err
			}
			return s.e.filesOf(ctx, id).ReadFile(name)
		},
	}
}

// close removes the container.
func (s *scratchFiles) close(ctx context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.id != "" {
		_ = s.e.Remove(context.WithoutCancel(ctx), s.id)
	}
}
