package sandbox

import (
	"archive/tar"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/ALRubinger/aileron/internal/imagefs"
	"github.com/ALRubinger/aileron/sandbox/engine"
	"github.com/ALRubinger/aileron/sandbox/internal/livetree"
)

// hostname is a sandbox's own name: programs look for its address, and the
// gateway would return one that leads nowhere.
const hostname = "box"

// nameFiles are the files by which the sandbox's programs resolve names, as
// mounts. Left to itself Podman makes no resolv.conf for such a network and
// copies the host's names and addresses into hosts; Docker copies the host's
// resolver.
func nameFiles(b box) ([]engine.Mount, error) {
	var mounts []engine.Mount
	for name, text := range nameTexts() {
		at := filepath.Join(b.mounts, name)
		if err := livetree.WritePublic(at, []byte(text), 0o644); err != nil {
			return nil, fmt.Errorf("write the sandbox's %s: %w", name, err)
		}
		mounts = append(mounts, engine.Mount{Source: at, Target: "/etc/" + name, ReadOnly: true})
	}
	return mounts, nil
}

// nameTexts are what resolves names, by the names of the files in /etc.
func nameTexts() map[string]string {
	return map[string]string{
		"resolv.conf": "nameserver 127.0.0.53\noptions ndots:1 timeout:2 attempts:1\n",
		"hosts":       "127.0.0.1\tlocalhost " + hostname + "\n::1\tlocalhost ip6-localhost ip6-loopback\n",
	}
}

// mountFiles are a sandbox's files as mounts, from a directory on the host:
// Docker copies nothing into a root that is read-only.
func mountFiles(b box) ([]engine.Mount, error) {
	dir := filepath.Join(b.mounts, "files")
	if err := os.Mkdir(dir, 0o711); err != nil { //nolint:gosec // the sandbox's user reads them
		return nil, fmt.Errorf("put the session's files beside the sandbox: %w", err)
	}
	var mounts []engine.Mount
	for i, f := range b.Files {
		if f.Mode.IsDir() {
			continue // made with the mount
		}
		at := filepath.Join(dir, strconv.Itoa(i))
		if err := livetree.WritePublic(at, f.Data, f.Mode.Perm()); err != nil {
			return nil, fmt.Errorf("put the session's files beside the sandbox: %w", err)
		}
		mounts = append(mounts, engine.Mount{Source: at, Target: f.Path, ReadOnly: true})
	}
	return mounts, nil
}

// makeTreesDir makes a directory in memory for the sandbox's trees, which may have hundreds of files. It is "" where
// there is none that only this sandbox sees.
func (b box) makeTreesDir() string {
	if len(b.trees) == 0 || b.carry != nil { // its engine sees one directory alone
		return ""
	}
	var size int64
	for _, tree := range b.trees {
		for _, f := range tree.Files {
			if !tree.OnDisk {
				size += int64(len(f.Data)) + 2*pageSize // with its directory
			}
		}
	}
	dir := engine.MakeDirInMemory(size)
	shared := func(m engine.Mount) bool { return m.Source != "" && Within(dir, m.Source) }
	if dir != "" && (Within(dir, b.Dir) || slices.ContainsFunc(b.Spec.Mounts, shared)) {
		_ = os.Remove(dir)
		return ""
	}
	return dir
}

const pageSize = 4096

// mountTrees are a sandbox's trees as mounts, from directories on the host.
func mountTrees(b box) ([]engine.Mount, error) {
	var mounts []engine.Mount
	for i, tree := range b.trees {
		dir := filepath.Join(cmp.Or(b.treesDir, b.mounts), "tree"+strconv.Itoa(i))
		if tree.OnDisk {
			dir = filepath.Join(b.mounts, "tree"+strconv.Itoa(i))
		}
		if err := livetree.Write(dir, tree.Files); err != nil {
			return nil, fmt.Errorf("put %s beside the sandbox: %w", tree.Target, err)
		}
		mounts = append(mounts, engine.Mount{Source: dir, Target: tree.Target, ReadOnly: true})
	}
	return mounts, nil
}

// mountOnDisk is mountTrees with all of them in the directory of other files.
func (b box) mountOnDisk() ([]engine.Mount, error) {
	b.treesDir = ""
	for i, tree := range b.trees {
		if tree.OnDisk {
			if err := os.RemoveAll(filepath.Join(b.mounts, "tree"+strconv.Itoa(i))); err != nil {
				return nil, fmt.Errorf("put %s beside the sandbox: %w", tree.Target, err)
			}
		}
	}
	return mountTrees(b)
}

// masks are the directories of a sandbox that are empty in it, although its
// project has something there.
func masks(b box) ([]string, error) {
	var masked []string
	for _, dir := range b.Mask {
		rel, err := filepath.Rel(b.Dir, dir)
		if err != nil || rel == "." || !Within(dir, b.Dir) {
			return nil, fmt.Errorf("hide %s: it does not lie in %s", dir, b.Dir)
		}
		masked = append(masked, b.inPlaces(rel)...)
	}
	return masked, nil
}

// forbiddenMount returns a [ProjectError] for what must never be in a sandbox and
// lies in its project or in a mount: the engine's socket, with which a sandbox
// would control the host, and the session's. So it is for a mount whose source
// has become a link since it was checked: another sandbox may write to it.
func forbiddenMount(b box, engineSockets []string) error {
	for _, m := range b.Spec.Mounts {
		if real, err := filepath.EvalSymlinks(m.Source); err != nil || real != m.Source {
			return fmt.Errorf("mount %s: it was replaced since the start", m.Source)
		}
	}
	for _, path := range append([]string{b.Sockets, b.mounts, b.treesDir}, engineSockets...) {
		real, err := filepath.EvalSymlinks(path)
		if path == "" || err != nil {
			continue
		}
		for _, m := range b.Spec.Mounts {
			if Within(real, m.Source) {
				return &ProjectError{Dir: m.Source, Holds: real, Mount: true}
			}
		}
		masked := func(dir string) bool { return Within(real, dir) }
		if Within(real, b.Dir) && !slices.ContainsFunc(b.Mask, masked) {
			return &ProjectError{Dir: b.Dir, Holds: real}
		}
	}
	return nil
}

// checkHeld returns an error for a place of the project that is to be mounted and has become a
// link, or was removed: the engine would mount what the link leads to.
func checkHeld(covers []Cover) error {
	for _, c := range covers {
		if !c.Held && !c.Own {
			continue
		}
		if real, err := filepath.EvalSymlinks(c.Source); err != nil || real != c.Source {
			return fmt.Errorf("hold %s: it was replaced since the start", c.Source)
		}
	}
	return nil
}

// Within reports whether an absolute path is that directory or lies in it.
func Within(path, dir string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, "../")
}

// put copies files into a created container that has this layer, with
// directories of other users than root, and checks that the files arrived. A
// file's parents are created where they are missing.
func (e *Engine) put(ctx context.Context, id string, layer engine.Layer, files []File, dirs ...*tar.Header) error {
	if !layer.Write(putsOf(files, dirs)) {
		archive, err := archiveOf(files, dirs...)
		if err != nil {
			return fmt.Errorf("pack the sandbox's files: %w", err)
		}
		if err := e.WriteArchive(ctx, id, "/", archive); err != nil {
			return fmt.Errorf("put the session's files into the sandbox: %w", err)
		}
	}
	return e.verify(ctx, id, layer, files)
}

// putsOf returns what [archiveOf] packs, for a layer.
func putsOf(files []File, dirs []*tar.Header) (puts []engine.Put) {
	for _, h := range dirs {
		puts = append(puts, engine.Put{Path: "/" + strings.TrimSuffix(h.Name, "/"), Mode: h.FileInfo().Mode(),
			UID: h.Uid, GID: h.Gid})
	}
	for _, f := range files {
		puts = append(puts, engine.Put{Path: f.Path, Mode: f.Mode, Data: f.Data})
	}
	return puts
}

// verify compares what a container has with what was put into it: a sandbox that
// lacks a part of its trust must not start. The engine is asked for what cannot be
// read in the container's layer.
func (e *Engine) verify(ctx context.Context, id string, layer engine.Layer, files []File) error {
	files = slices.DeleteFunc(slices.Clone(files), func(f File) bool {
		return f.Mode.IsDir() || layer.Has(f.Path, f.Data)
	})
	if len(files) == 0 {
		return nil
	}
	etc, err := e.readEtc(ctx, id)
	if err != nil {
		return fmt.Errorf("check that the session's files are in the sandbox: %w", err)
	}
	box := imagefs.New(etc, e.filesOf(ctx, id))
	for _, f := range files {
		same, err := e.arrived(ctx, id, box, f)
		if err != nil {
			return fmt.Errorf("check that %s is in the sandbox: %w", f.Path, err)
		}
		if !same {
			return fmt.Errorf("put the session's files into the sandbox: %s is not there as it was put; "+
				"the image keeps it from being written, so use one that has no volume and no special file there", f.Path)
		}
	}
	return nil
}

// arrived reports whether a container has a file as it was put. The path is free
// of links, so one call to the engine is enough for a file outside of /etc: its
// size then stands for its contents.
func (e *Engine) arrived(ctx context.Context, id string, box *imagefs.FS, f File) (bool, error) {
	name := strings.TrimPrefix(f.Path, "/")
	if !strings.HasPrefix(name, imagefs.Etc+"/") {
		info, err := e.Stat(ctx, id, f.Path)
		if errors.Is(err, fs.ErrNotExist) {
			return false, nil
		}
		return info.Mode.IsRegular() && info.Size == int64(len(f.Data)), err
	}
	found, err := imagefs.Resolve(box, name)
	if err != nil || !found.Exists() {
		return false, err
	}
	data, kept := box.Kept(found)
	return found.Info.Size() == int64(len(f.Data)) && (!kept || bytes.Equal(data, f.Data)), nil
}

// archiveOf returns dirs and files as the tar archive that is extracted into a
// container's root. All files belong to root, and every user may read them. A
// directory is created only if it is named, so that those of the image keep
// their modes.
func archiveOf(files []File, dirs ...*tar.Header) (*bytes.Buffer, error) {
	var out bytes.Buffer
	tw := tar.NewWriter(&out)
	for _, h := range dirs {
		if err := tw.WriteHeader(h); err != nil {
			return nil, err
		}
	}
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
