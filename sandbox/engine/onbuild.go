package engine

import (
	"archive/tar"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// maxConfig bounds the configuration of an image that is read.
const maxConfig = 4 << 20

// OnBuild returns what an image lets a build on top of it run. It may read the whole image.
func (e *Engine) OnBuild(ctx context.Context, id string) ([]string, error) {
	return e.dialect.onBuild(ctx, e, id)
}

// onBuild asks for the configuration.
func (docker) onBuild(ctx context.Context, e *Engine, id string) ([]string, error) {
	found, err := e.cli.ImageInspect(ctx, id)
	if err == nil && found.Config == nil {
		err = errors.New("the engine describes it without a configuration")
	}
	if err != nil {
		return nil, err
	}
	return found.Config.OnBuild, nil
}

// onBuild reads the configuration in an archive of the image: Podman describes an image without it.
func (podman) onBuild(ctx context.Context, e *Engine, id string) ([]string, error) {
	archive, err := e.cli.ImageSave(ctx, []string{id})
	if err != nil {
		return nil, err
	}
	defer archive.Close()
	return savedOnBuild(archive)
}

// savedOnBuild returns what the image of a tar archive, as `docker save` writes it, lets a build run.
func savedOnBuild(archive io.Reader) ([]string, error) {
	for files := tar.NewReader(archive); ; {
		h, err := files.Next()
		if errors.Is(err, io.EOF) {
			return nil, errors.New("its archive has no configuration")
		}
		if err != nil {
			return nil, fmt.Errorf("read its archive: %w", err)
		}
		if !strings.HasSuffix(h.Name, ".json") || strings.Contains(h.Name, "/") || h.Name == "manifest.json" {
			continue
		}
		data, err := io.ReadAll(io.LimitReader(files, maxConfig))
		if err != nil {
			return nil, fmt.Errorf("read its archive: %w", err)
		}
		var image struct {
			Config *struct{ OnBuild []string } `json:"config"`
		}
		if err := json.Unmarshal(data, &image); err != nil || image.Config == nil {
			return nil, fmt.Errorf("read %s of its archive: it is no configuration", h.Name)
		}
		return image.Config.OnBuild, nil
	}
}
