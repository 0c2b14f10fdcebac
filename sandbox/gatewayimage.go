package sandbox

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/ALRubinger/aileron/sandbox/engine"
)

// gatewayRef is the image of every gateway: an empty place for a file and a
// directory. It is not the sandbox's, because an image may bring its own program
// to where ours is mounted (a link and a VOLUME), its environment, its health
// check, and the gateway starts with rights that the sandbox never has.
const gatewayRef = "localhost/aileron/gateway:1"

// gatewayImage returns the id of the gateway's image, which it makes where it is
// missing. It needs no registry and a few milliseconds.
func (e *Engine) gatewayImage(ctx context.Context) (string, error) {
	img, _, err := e.pin(ctx, Image{Ref: gatewayRef})
	if err == nil {
		return img.id, nil
	}
	if !engine.IsNotFound(err) {
		return "", err
	}
	layer, err := gatewayLayer()
	if err == nil {
		err = e.Import(ctx, gatewayRef, layer)
	}
	if err != nil {
		return "", fmt.Errorf("make the gateway's image: %w", err)
	}
	img, _, err = e.pin(ctx, img)
	return img.id, err
}

// gatewayLayer is the image's only layer: what is mounted over, and nothing that
// could run.
func gatewayLayer() (*bytes.Buffer, error) {
	var layer bytes.Buffer
	tw := tar.NewWriter(&layer)
	var faults []error
	for _, h := range []*tar.Header{
		{Name: "aileron", Typeflag: tar.TypeReg, Mode: 0o555},
		{Name: "run/", Typeflag: tar.TypeDir, Mode: 0o755}, {Name: "run/aileron/", Typeflag: tar.TypeDir, Mode: 0o755},
		{Name: "proc/", Typeflag: tar.TypeDir, Mode: 0o555}, {Name: "dev/", Typeflag: tar.TypeDir, Mode: 0o755},
		{Name: "sys/", Typeflag: tar.TypeDir, Mode: 0o555}, {Name: "etc/", Typeflag: tar.TypeDir, Mode: 0o755},
	} {
		faults = append(faults, tw.WriteHeader(h))
	}
	return &layer, errors.Join(append(faults, tw.Close())...)
}
