package sandbox

import (
	"archive/tar"
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"runtime"
	"strings"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
)

const (
	maxRead  = 8 << 20   // a file that is read from an image
	maxKept  = 64 << 20  // what a Look keeps of all files
	maxEtc   = 512 << 20 // /etc as a whole
	maxLinks = 40        // links that one name may lead through, as the kernel has it
)

// Look is a look into an image, through a container that is made and never
// started. All of /etc is read at once, because an engine takes as long for
// one file; other files are asked for one by one. What an image holds is not
// to be trusted: sizes and links are bounded.
type Look struct {
	e     *Engine
	id    string
	image Image
	env   []string
	etc   etcTree
}

// Entry is what an image has under a name, with every link followed.
type Entry struct {
	Path    string // where it really is, or would be
	There   bool
	Mode    fs.FileMode
	Size    int64
	Missing []string // parents below /etc that are not there, outermost first
}

// ArchitectureError says that an image is made for other machines.
type ArchitectureError struct{ Image, Theirs, Ours string }

func (e *ArchitectureError) Error() string {
	return fmt.Sprintf("run the image %s: it is made for %s, and this machine is %s without an emulator for it; pull or build it for %s", e.Image, e.Theirs, e.Ours, e.Ours)
}

// ErrEngine says that not the image but its engine is at fault, or that ctx
// ended.
var ErrEngine = errors.New("the engine does not tell")

// Look looks into an image. It must be closed.
func (e *Engine) Look(ctx context.Context, img Image) (_ *Look, err error) {
	defer e.explain(&err)
	img, about, err := e.pin(ctx, img)
	if err != nil {
		return nil, err
	}
	if theirs := about.Architecture; theirs != "" && theirs != runtime.GOARCH && !emulated(theirs) {
		return nil, &ArchitectureError{img.Ref, theirs, runtime.GOARCH}
	}
	id, err := e.lend(ctx, &container.Config{Image: img.id, Cmd: []string{"/"}, Entrypoint: []string{}, User: "0:0",
		Labels: Box{Session: nobody}.labels("box")}, &container.HostConfig{NetworkMode: "none"})
	if err != nil {
		return nil, fmt.Errorf("look into %s: %w", img.Ref, err)
	}
	l := &Look{e: e, id: id, image: img}
	if about.Config != nil {
		l.env = about.Config.Env
	}
	if l.etc, err = e.readEtc(ctx, id); err != nil {
		l.Close(ctx)
		return nil, fmt.Errorf("look into %s: %w", img.Ref, err)
	}
	e.seen.Store(img.id, l.etc)
	return l, nil
}

// Close removes the container.
func (l *Look) Close(ctx context.Context) { _ = l.e.remove(context.WithoutCancel(ctx), l.id) }

// Env is a variable of the image's own environment, or "".
func (l *Look) Env(name string) string { return envValue(l.env, name) }

// emulated reports whether the kernel runs programs of an architecture all
// the same.
func emulated(arch string) bool {
	names := map[string]string{"amd64": "x86_64", "arm64": "aarch64", "386": "i386"}
	name := names[arch]
	if name == "" {
		name = arch
	}
	state, err := os.ReadFile("/proc/sys/fs/binfmt_misc/qemu-" + name)
	return err == nil && bytes.HasPrefix(state, []byte("enabled"))
}

// node is what an image has under one name below /etc.
type node struct {
	mode fs.FileMode
	size int64
	link string // of a symbolic link
	data []byte // of a file, when kept
	kept bool
}

// etcTree is /etc by absolute names.
type etcTree map[string]node

const etc = "/etc"

// readEtc reads a container's /etc. One that is not there is empty.
func (e *Engine) readEtc(ctx context.Context, id string) (etcTree, error) {
	tree := etcTree{}
	r, _, err := e.cli.CopyFromContainer(ctx, id, etc)
	if notThere(err) {
		return tree, nil
	}
	if err != nil {
		return nil, err
	}
	defer r.Close()
	bounded := &io.LimitedReader{R: r, N: maxEtc}
	tr := tar.NewReader(bufio.NewReader(bounded))
	kept := int64(0)
	for {
		h, err := tr.Next()
		switch {
		case err == io.EOF:
			return tree, nil
		case err != nil && bounded.N <= 0:
			return nil, fmt.Errorf("its /etc is larger than %d MiB", maxEtc>>20)
		case err != nil:
			return nil, fmt.Errorf("read its /etc: %w", err)
		}
		n := node{mode: h.FileInfo().Mode(), size: h.Size}
		switch h.Typeflag {
		case tar.TypeSymlink:
			n.link = h.Linkname
		case tar.TypeLink:
			n = tree[path.Join("/", h.Linkname)]
		case tar.TypeReg:
			if h.Size <= maxRead && kept+h.Size <= maxKept {
				if n.data, err = io.ReadAll(tr); err != nil {
					return nil, fmt.Errorf("read its /etc: %w", err)
				}
				n.kept, kept = true, kept+h.Size
			}
		}
		tree[path.Join("/", h.Name)] = n
	}
}

func notThere(err error) bool {
	return errdefs.IsNotFound(err) || err != nil && strings.Contains(err.Error(), "no such file")
}

func below(name, dir string) bool { return name == dir || strings.HasPrefix(name, dir+"/") }

// Find says where a name of the image leads. What is not there has an entry
// too: where it would be, when it is put there.
func (l *Look) Find(ctx context.Context, name string) (_ Entry, err error) {
	defer l.e.explain(&err)
	entry, err := l.etc.find(name, func(outside string) (Entry, error) { return l.e.stat(ctx, l.id, outside) })
	if err != nil {
		return Entry{}, fmt.Errorf("look for %s in %s: %w", name, l.image.Ref, err)
	}
	return entry, nil
}

func (e *Engine) stat(ctx context.Context, id, name string) (Entry, error) {
	info, err := e.cli.ContainerStatPath(ctx, id, name)
	if notThere(err) {
		return Entry{Path: name}, nil
	}
	if err != nil {
		return Entry{}, fmt.Errorf("%w: %w", ErrEngine, err)
	}
	entry := Entry{Path: name, There: true, Mode: info.Mode, Size: info.Size}
	if info.Mode&fs.ModeSymlink != 0 {
		entry.Path = info.LinkTarget
	}
	return entry, nil
}

// find resolves a name as the kernel would. What lies outside /etc is asked
// of outside, which gives of a link the path that it leads to.
func (tree etcTree) find(name string, outside func(string) (Entry, error)) (Entry, error) {
	at, todo := "/", strings.Split(path.Clean(name), "/")
	var entry Entry
	for links := 0; len(todo) > 0; {
		first := todo[0]
		todo = todo[1:]
		switch first {
		case "", ".":
			continue
		case "..":
			at = path.Dir(at)
			continue
		}
		next := path.Join(at, first)
		n, ok := tree[next]
		link := n.link
		switch {
		case !below(next, etc):
			found, err := outside(path.Join(next, path.Join(todo...)))
			if err != nil || found.Mode&fs.ModeSymlink == 0 {
				return found, err
			}
			link, todo = found.Path, nil
		case link != "":
		case ok && len(todo) > 0 && !n.mode.IsDir():
			return Entry{}, fmt.Errorf("%s is not a directory", next)
		default:
			if !ok && len(todo) > 0 {
				entry.Missing = append(entry.Missing, next)
			}
			entry.There, entry.Mode, entry.Size, at = ok, n.mode, n.size, next
			continue
		}
		if links++; links > maxLinks {
			return Entry{}, errors.New("its links lead in a circle")
		}
		if path.IsAbs(link) {
			at = "/"
		}
		todo, entry = append(strings.Split(link, "/"), todo...), Entry{}
	}
	entry.Path = at
	return entry, nil
}

// Read reads a file of the image. What is not there gives fs.ErrNotExist;
// what is no file, or larger than 8 MiB, an error.
func (l *Look) Read(ctx context.Context, name string) (_ []byte, err error) {
	defer l.e.explain(&err)
	entry, err := l.Find(ctx, name)
	if err != nil {
		return nil, err
	}
	fail := func(err error) error { return fmt.Errorf("read %s of %s: %w", name, l.image.Ref, err) }
	switch {
	case !entry.There:
		return nil, fail(fs.ErrNotExist)
	case !entry.Mode.IsRegular():
		return nil, fail(errors.New("it is not a file"))
	case entry.Size > maxRead:
		return nil, fail(fmt.Errorf("it is larger than %d MiB", maxRead>>20))
	}
	if n := l.etc[entry.Path]; n.kept {
		return n.data, nil
	}
	data, err := l.e.copyOut(ctx, l.id, entry.Path)
	if err != nil {
		return nil, fail(err)
	}
	return data, nil
}

// copyOut reads a file that stat has seen.
func (e *Engine) copyOut(ctx context.Context, id, name string) ([]byte, error) {
	r, _, err := e.cli.CopyFromContainer(ctx, id, name)
	if notThere(err) {
		return nil, fs.ErrNotExist
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrEngine, err)
	}
	defer r.Close()
	tr := tar.NewReader(bufio.NewReader(r))
	h, err := tr.Next()
	if err != nil {
		return nil, err
	}
	if h.Typeflag != tar.TypeReg || h.Size > maxRead {
		return nil, errors.New("it is not a file of that size")
	}
	return io.ReadAll(tr)
}

// put copies files into a created container and looks whether they are
// there. A file's parents are made where they are missing.
func (e *Engine) put(ctx context.Context, id string, files []File) error {
	archive, err := archiveOf(files)
	if err != nil {
		return fmt.Errorf("pack the box's files: %w", err)
	}
	if err := e.cli.CopyToContainer(ctx, id, "/", archive, container.CopyToContainerOptions{AllowOverwriteDirWithFile: false}); err != nil {
		return fmt.Errorf("put the session's files into the box: %w", err)
	}
	return e.verify(ctx, id, files)
}

// verify compares what is in a container with what was put there: a box that
// lacks a part of its trust must not start.
func (e *Engine) verify(ctx context.Context, id string, files []File) error {
	tree, err := e.readEtc(ctx, id)
	if err != nil {
		return fmt.Errorf("look whether the session's files are in the box: %w", err)
	}
	for _, f := range files {
		if f.Mode.IsDir() {
			continue
		}
		found, err := tree.find(f.Path, func(outside string) (Entry, error) { return e.stat(ctx, id, outside) })
		if err != nil {
			return fmt.Errorf("look whether %s is in the box: %w", f.Path, err)
		}
		n := tree[found.Path]
		if !found.There || found.Size != int64(len(f.Data)) || n.kept && !bytes.Equal(n.data, f.Data) {
			return fmt.Errorf("put the session's files into the box: %s is not there as it was put; the image keeps it from being written, so use one that has no volume and no special file there", f.Path)
		}
	}
	return nil
}

// archiveOf is files as the tar that goes into a container's root. All of it
// belongs to root and may be read by everyone. Directories are made where
// they stand in the list, so that those of the image keep their modes.
func archiveOf(files []File) (*bytes.Buffer, error) {
	var out bytes.Buffer
	tw := tar.NewWriter(&out)
	for _, f := range files {
		h := &tar.Header{Name: strings.TrimPrefix(f.Path, "/"), Mode: int64(f.Mode.Perm()), Size: int64(len(f.Data))}
		if f.Mode.IsDir() {
			h.Typeflag, h.Name, h.Size = tar.TypeDir, h.Name+"/", 0
		}
		if err := tw.WriteHeader(h); err != nil {
			return nil, err
		}
		if _, err := tw.Write(f.Data); err != nil {
			return nil, err
		}
	}
	return &out, tw.Close()
}
