package sandbox

import (
	"archive/tar"
	"bytes"
	"context"
	"fmt"
	"io"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/image"
)

// gatewayRef is the image of every gateway: an empty place for a file and a
// directory. It is not the box's, because an image may bring its own program
// to where ours is mounted (a link and a VOLUME), its environment, its health
// check, and the gateway starts with rights that the box never has.
const gatewayRef = "localhost/aileron/gateway:1"

// gatewayImage gives the gateway's image by its id, and makes it where it is
// missing. It needs no registry and a few milliseconds.
func (e *Engine) gatewayImage(ctx context.Context) (string, error) {
	img, _, err := e.pin(ctx, Image{Ref: gatewayRef})
	if err == nil {
		return img.id, nil
	}
	if !errdefs.IsNotFound(err) {
		return "", err
	}
	var layer bytes.Buffer
	tw := tar.NewWriter(&layer)
	for _, h := range []*tar.Header{
		{Name: "aileron", Typeflag: tar.TypeReg, Mode: 0o555},
		{Name: "run/", Typeflag: tar.TypeDir, Mode: 0o755}, {Name: "run/aileron/", Typeflag: tar.TypeDir, Mode: 0o755},
		{Name: "proc/", Typeflag: tar.TypeDir, Mode: 0o555}, {Name: "dev/", Typeflag: tar.TypeDir, Mode: 0o755},
		{Name: "sys/", Typeflag: tar.TypeDir, Mode: 0o555}, {Name: "etc/", Typeflag: tar.TypeDir, Mode: 0o755},
	} {
		if err := tw.WriteHeader(h); err != nil {
			return "", fmt.Errorf("make the gateway's image: %w", err)
		}
	}
	if err := tw.Close(); err != nil {
		return "", fmt.Errorf("make the gateway's image: %w", err)
	}
	said, err := e.cli.ImageImport(ctx, image.ImportSource{Source: &layer, SourceName: "-"}, gatewayRef, image.ImportOptions{})
	if err != nil {
		return "", fmt.Errorf("make the gateway's image: %w", err)
	}
	defer said.Close()
	if err := readBuild(said, gatewayRef, io.Discard); err != nil {
		return "", err
	}
	img, _, err = e.pin(ctx, img)
	return img.id, err
}
