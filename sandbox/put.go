package sandbox

import (
	"archive/tar"
	"bytes"
	"context"
	"fmt"
	"strings"

	"github.com/ALRubinger/aileron/internal/imagefs"
)

// put copies files into a created container and looks whether they are
// there. A file's parents are made where they are missing.
func (e *Engine) put(ctx context.Context, id string, files []File) error {
	archive, err := archiveOf(files)
	if err != nil {
		return fmt.Errorf("pack the box's files: %w", err)
	}
	if err := e.WriteArchive(ctx, id, archive); err != nil {
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
	box := imagefs.New(tree, e.filesOf(ctx, id))
	for _, f := range files {
		if f.Mode.IsDir() {
			continue
		}
		found, err := imagefs.Resolve(box, strings.TrimPrefix(f.Path, "/"))
		if err != nil {
			return fmt.Errorf("look whether %s is in the box: %w", f.Path, err)
		}
		data, kept := box.Kept(found)
		if !found.Exists() || found.Info.Size() != int64(len(f.Data)) || kept && !bytes.Equal(data, f.Data) {
			return fmt.Errorf("put the session's files into the box: %s is not there as it was put; "+
				"the image keeps it from being written, so use one that has no volume and no special file there", f.Path)
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
