package engine

import (
	"context"
	"errors"
	"io"

	"github.com/docker/docker/api/types/image"
)

// Image is what an engine reports of an image.
type Image struct {
	ID           string
	Architecture string
	// The rest is of the image's configuration.
	User    string
	Env     []string
	Volumes map[string]struct{}
}

// Image looks an image up by its name or id. The error satisfies [IsNotFound]
// when it is not on the engine's machine.
func (e *Engine) Image(ctx context.Context, ref string) (Image, error) {
	found, err := e.cli.ImageInspect(ctx, ref)
	if err == nil && found.ID == "" {
		err = errors.New("the engine returns no id for it")
	}
	if err != nil {
		return Image{}, err
	}
	img := Image{ID: found.ID, Architecture: found.Architecture}
	if c := found.Config; c != nil {
		img.User, img.Env, img.Volumes = c.User, c.Env, c.Volumes
	}
	return img, nil
}

// Import makes an image from the files of a tar archive.
func (e *Engine) Import(ctx context.Context, ref string, files io.Reader) error {
	source := image.ImportSource{Source: files, SourceName: "-"}
	output, err := e.cli.ImageImport(ctx, source, ref, image.ImportOptions{})
	if err != nil {
		return err
	}
	defer output.Close()
	return new(buildOutput).read(output, io.Discard)
}
