package carrier

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"

	"github.com/ALRubinger/aileron/sandbox/engine"
)

// repository is that of the images of carriers and of their gateways.
const repository = "localhost/aileron/carrier"

// Image returns the id of the image of a static program for an architecture, which it makes where it is missing. Those
// of other programs are removed.
func Image(ctx context.Context, e *engine.Engine, binary, arch string) (id string, err error) {
	program, err := os.ReadFile(binary)
	if err != nil {
		return "", fmt.Errorf("make the carrier's image: %w", err)
	}
	sum := sha256.Sum256(program)
	ref := fmt.Sprintf("%s:%x", repository, sum[:8])
	if id, err = EnsureImage(ctx, e, ref, arch, program); err == nil {
		e.RemoveOtherTags(ctx, repository, ref)
	}
	return id, err
}

// EnsureImage returns the id of the image of a gateway, which it makes where it is missing: with a program, or with an
// empty place for one.
func EnsureImage(ctx context.Context, e *engine.Engine, ref, arch string, program []byte) (id string, err error) {
	found, err := e.Image(ctx, ref)
	if engine.IsNotFound(err) {
		var image *bytes.Buffer
		if image, err = archive(ref, arch, program); err == nil {
			err = e.Load(ctx, image)
		}
		if err != nil {
			return "", fmt.Errorf("make the gateway's image: %w", err)
		}
		found, err = e.Image(ctx, ref)
	}
	if err != nil {
		return "", fmt.Errorf("look at the image %s: %w", ref, err)
	}
	return found.ID, nil
}

// archive returns the image as engines load it. They could import the layer alone, but Podman 4 leaves a copy of what
// it imports among its temporary files.
func archive(ref, arch string, program []byte) (*bytes.Buffer, error) {
	layer, err := archiveLayer(program)
	if err != nil {
		return nil, err
	}
	config := fmt.Sprintf(`{"architecture":%q,"os":"linux","config":{},`+
		`"rootfs":{"type":"layers","diff_ids":["sha256:%x"]}}`, arch, sha256.Sum256(layer))
	manifest := fmt.Sprintf(`[{"Config":"config.json","RepoTags":[%q],"Layers":["layer.tar"]}]`, ref)
	var out bytes.Buffer
	tw := tar.NewWriter(&out)
	var faults []error
	for _, f := range []struct {
		name string
		data []byte
	}{{"layer.tar", layer}, {"config.json", []byte(config)}, {"manifest.json", []byte(manifest)}} {
		faults = append(faults, tw.WriteHeader(&tar.Header{Name: f.name, Mode: 0o444, Size: int64(len(f.data))}))
		_, err := tw.Write(f.data)
		faults = append(faults, err)
	}
	return &out, errors.Join(append(faults, tw.Close())...)
}

// archiveLayer is the image's only layer: the program, or what is mounted over and nothing that could run. A volume at
// the place of the sockets becomes their user's.
func archiveLayer(program []byte) ([]byte, error) {
	var layer bytes.Buffer
	tw := tar.NewWriter(&layer)
	var faults []error
	owner := 0
	if program != nil {
		owner = user
	}
	for _, h := range []*tar.Header{
		{Name: "aileron", Typeflag: tar.TypeReg, Mode: 0o555, Size: int64(len(program))},
		{Name: "run/", Typeflag: tar.TypeDir, Mode: 0o755},
		{Name: "run/aileron/", Typeflag: tar.TypeDir, Mode: 0o755, Uid: owner, Gid: owner},
		{Name: "proc/", Typeflag: tar.TypeDir, Mode: 0o555}, {Name: "dev/", Typeflag: tar.TypeDir, Mode: 0o755},
		{Name: "sys/", Typeflag: tar.TypeDir, Mode: 0o555}, {Name: "etc/", Typeflag: tar.TypeDir, Mode: 0o755},
	} {
		faults = append(faults, tw.WriteHeader(h))
		if h.Typeflag == tar.TypeReg {
			_, err := tw.Write(program)
			faults = append(faults, err)
		}
	}
	return layer.Bytes(), errors.Join(append(faults, tw.Close())...)
}
