package engine

import (
	"context"
	"fmt"
	"io"
	"io/fs"

	"github.com/docker/docker/api/types/container"
)

// ReadArchive returns a file or a directory of a container as a tar archive.
// The error is fs.ErrNotExist when it is not there; any other is an [ErrEngine].
func (e *Engine) ReadArchive(ctx context.Context, id, name string) (io.ReadCloser, error) {
	r, _, err := e.cli.CopyFromContainer(ctx, id, name)
	if e.noFile(err) {
		return nil, fs.ErrNotExist
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrEngine, err)
	}
	return r, nil
}

// WriteArchive extracts a tar archive into the root of a container. A file of
// it does not replace a directory.
func (e *Engine) WriteArchive(ctx context.Context, id string, archive io.Reader) error {
	return e.cli.CopyToContainer(ctx, id, "/", archive, container.CopyToContainerOptions{})
}

// WriteArchiveTo extracts a tar archive into a directory of a container, which may
// be a volume's.
func (e *Engine) WriteArchiveTo(ctx context.Context, id, dir string, archive io.Reader) error {
	return e.cli.CopyToContainer(ctx, id, dir, archive, container.CopyToContainerOptions{})
}

// FileInfo is what an engine reports of a file in a container.
type FileInfo struct {
	Mode fs.FileMode
	Size int64
	Link string // where a symbolic link leads, with every link followed
}

// Stat looks for a file in a container. The error is fs.ErrNotExist when it is
// not there; any other is an [ErrEngine].
func (e *Engine) Stat(ctx context.Context, id, name string) (FileInfo, error) {
	info, err := e.cli.ContainerStatPath(ctx, id, name)
	if e.noFile(err) {
		return FileInfo{}, fs.ErrNotExist
	}
	if err != nil {
		return FileInfo{}, fmt.Errorf("%w: %w", ErrEngine, err)
	}
	return FileInfo{info.Mode, info.Size, info.LinkTarget}, nil
}
