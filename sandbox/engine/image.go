package engine

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/docker/docker/api/types/build"
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
	return readBuild(output, ref, io.Discard)
}

// Build builds an image from a Dockerfile. The build's output goes to progress,
// as it arrives.
func (e *Engine) Build(
	ctx context.Context, ref string, dockerfile []byte, args, labels map[string]string, progress io.Writer,
) error {
	archive, err := buildContext(dockerfile)
	if err != nil {
		return fmt.Errorf("build %s: %w", ref, err)
	}
	values := map[string]*string{}
	for name, value := range args {
		values[name] = &value
	}
	res, err := e.cli.ImageBuild(ctx, archive, build.ImageBuildOptions{
		Tags: []string{ref}, Dockerfile: "Dockerfile", BuildArgs: values, Remove: true, ForceRemove: true,
		NetworkMode: "host", // engines without a bridge of their own build too
		Labels:      labels,
	})
	if err != nil {
		return fmt.Errorf("build %s: %w", ref, err)
	}
	defer res.Body.Close()
	return readBuild(res.Body, ref, progress)
}

func buildContext(dockerfile []byte) (io.Reader, error) {
	var archive bytes.Buffer
	tw := tar.NewWriter(&archive)
	if err := tw.WriteHeader(&tar.Header{Name: "Dockerfile", Mode: 0o644, Size: int64(len(dockerfile))}); err != nil {
		return nil, err
	}
	if _, err := tw.Write(dockerfile); err != nil {
		return nil, err
	}
	return &archive, tw.Close()
}

// readBuild passes on the output of a build, and finds the error in its stream.
func readBuild(r io.Reader, ref string, progress io.Writer) error {
	dec := json.NewDecoder(r)
	for {
		var line struct {
			Stream string `json:"stream"`
			Error  string `json:"error"`
		}
		if err := dec.Decode(&line); err == io.EOF {
			return nil
		} else if err != nil {
			return fmt.Errorf("build %s: %w", ref, err)
		}
		if line.Error != "" {
			return fmt.Errorf("build %s: %s", ref, strings.TrimSpace(line.Error))
		}
		if _, err := io.WriteString(progress, buildLines(line.Stream)); err != nil {
			return fmt.Errorf("build %s: %w", ref, err)
		}
	}
}

// buildLines makes a line of its own of each step that a program shows by
// overwriting its line.
func buildLines(stream string) string {
	return strings.ReplaceAll(strings.ReplaceAll(stream, "\r\n", "\n"), "\r", "\n")
}
