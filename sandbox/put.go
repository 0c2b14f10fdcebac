package sandbox

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/ALRubinger/aileron/internal/imagefs"
	"github.com/ALRubinger/aileron/sandbox/engine"
)

// put copies files into a created container that has this layer, with
// directories of other users than root, and checks that the files arrived. A
// file's parents are created where they are missing.
func (e *Engine) put(ctx context.Context, id string, layer engine.Layer, files []File, dirs ...*tar.Header) error {
	archive, err := archiveOf(files, dirs...)
	if err != nil {
		return fmt.Errorf("pack the sandbox's files: %w", err)
	}
	if err := e.WriteArchive(ctx, id, archive); err != nil {
		return fmt.Errorf("put the session's files into the sandbox: %w", err)
	}
	return e.verify(ctx, id, layer, files)
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
