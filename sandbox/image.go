package sandbox

import (
	"archive/tar"
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	_ "embed" // the base image's recipe
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/build"
	"github.com/docker/docker/api/types/container"
)

//go:embed image/Dockerfile
var baseRecipe []byte

// Image is an image that a box runs, and how it is made. Without a recipe it
// must be there.
type Image struct {
	Ref        string
	Dockerfile []byte
	Base       *Image // made first; its name is the build argument BASE
}

// BaseImage is aileron's own image, the substrate of the others. Its tag
// holds a digest of the recipe, so that a changed one is built anew.
func BaseImage(version string) Image {
	return Image{Ref: "localhost/aileron/sandbox-base:" + version + "-" + digest(baseRecipe), Dockerfile: baseRecipe}
}

// AgentImage is an agent's image on top of the base.
func AgentImage(version, agent string, recipe []byte) Image {
	base := BaseImage(version)
	return Image{Ref: "localhost/aileron/agent-" + agent + ":" + version + "-" + digest(baseRecipe, recipe), Dockerfile: recipe, Base: &base}
}

func digest(parts ...[]byte) string {
	h := sha256.New()
	for _, p := range parts {
		h.Write(p)
	}
	return hex.EncodeToString(h.Sum(nil))[:12]
}

// EnsureImage makes an image that is missing (policy auto), in any case
// (always), or says that it is missing (never). What the build says goes to
// progress, as it is said.
func (e *Engine) EnsureImage(ctx context.Context, img Image, policy string, progress io.Writer) error {
	_, err := e.cli.ImageInspect(ctx, img.Ref)
	here := err == nil
	switch {
	case here && policy != "always":
		return nil
	case img.Dockerfile == nil && here:
		return nil
	case img.Dockerfile == nil:
		return fmt.Errorf("find the image %s: it is not on this host; pull or build it first with %s", img.Ref, e.kind)
	case policy == "never":
		return fmt.Errorf("find the image %s: it is not built yet, and --sandbox-build=never forbids building it", img.Ref)
	}
	args := map[string]*string{}
	if img.Base != nil {
		if err := e.EnsureImage(ctx, *img.Base, policy, progress); err != nil {
			return err
		}
		args["BASE"] = &img.Base.Ref
		extra, err := e.extraRoots(ctx, img.Base.Ref)
		if err != nil {
			return err
		}
		args["EXTRA_CA"] = &extra
	}
	fmt.Fprintf(progress, "aileron: building %s with %s (once)\n", img.Ref, e.kind)
	return e.build(ctx, img, args, progress)
}

// extraRoots are roots that this host trusts and a base image does not, such
// as those of a network that inspects TLS: builds need them to fetch.
func (e *Engine) extraRoots(ctx context.Context, base string) (string, error) {
	const bundle = "/etc/ssl/certs/ca-certificates.crt"
	own, err := os.ReadFile(bundle)
	if err != nil {
		return "", nil //nolint:nilerr // no bundle, no extra roots
	}
	theirs, err := e.ReadFile(ctx, base, bundle)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	known := map[string]bool{}
	for block, rest := pem.Decode(theirs); block != nil; block, rest = pem.Decode(rest) {
		known[string(block.Bytes)] = true
	}
	var extra bytes.Buffer
	for block, rest := pem.Decode(own); block != nil; block, rest = pem.Decode(rest) {
		// An argument must fit into the environment of a process.
		if !known[string(block.Bytes)] && extra.Len() < 64<<10 {
			_ = pem.Encode(&extra, block)
		}
	}
	return extra.String(), nil
}

func (e *Engine) build(ctx context.Context, img Image, args map[string]*string, progress io.Writer) error {
	var archive bytes.Buffer
	tw := tar.NewWriter(&archive)
	if err := tw.WriteHeader(&tar.Header{Name: "Dockerfile", Mode: 0o644, Size: int64(len(img.Dockerfile))}); err != nil {
		return fmt.Errorf("build %s: %w", img.Ref, err)
	}
	if _, err := tw.Write(img.Dockerfile); err != nil {
		return fmt.Errorf("build %s: %w", img.Ref, err)
	}
	if err := tw.Close(); err != nil {
		return fmt.Errorf("build %s: %w", img.Ref, err)
	}
	// The host's network: engines without a bridge of their own build too.
	res, err := e.cli.ImageBuild(ctx, &archive, build.ImageBuildOptions{Tags: []string{img.Ref}, Dockerfile: "Dockerfile", BuildArgs: args,
		Remove: true, ForceRemove: true, NetworkMode: "host", Labels: map[string]string{"aileron.image": "1"}})
	if err != nil {
		return fmt.Errorf("build %s: %w", img.Ref, err)
	}
	defer res.Body.Close()
	return readBuild(res.Body, img.Ref, progress)
}

// readBuild passes on what a build says, and finds the error that stands in
// the stream.
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
		if _, err := io.WriteString(progress, line.Stream); err != nil {
			return fmt.Errorf("build %s: %w", ref, err)
		}
	}
}

// maxRead bounds a file that is read from an image.
const maxRead = 8 << 20

// ReadFile reads one file of an image, following links inside it. A file that
// is not there gives fs.ErrNotExist.
func (e *Engine) ReadFile(ctx context.Context, image, name string) ([]byte, error) {
	found, err := e.ReadFiles(ctx, image, []string{name})
	if err != nil {
		return nil, err
	}
	data, ok := found[name]
	if !ok {
		return nil, fmt.Errorf("read %s of %s: %w", name, image, fs.ErrNotExist)
	}
	return data, nil
}

// ReadFiles reads those of the named files that an image has, through a
// container that is made and never started.
func (e *Engine) ReadFiles(ctx context.Context, image string, names []string) (map[string][]byte, error) {
	c, err := e.cli.ContainerCreate(ctx, &container.Config{Image: image, Cmd: []string{"/"}, Entrypoint: []string{},
		Labels: Box{Session: nobody}.labels("box")}, &container.HostConfig{NetworkMode: "none"}, nil, nil, "")
	if err != nil {
		return nil, fmt.Errorf("look into %s: %w", image, err)
	}
	defer func() { _ = e.remove(context.WithoutCancel(ctx), c.ID) }()
	found := map[string][]byte{}
	for _, name := range names {
		data, err := e.copyOut(ctx, c.ID, name, 8)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read %s of %s: %w", name, image, err)
		}
		found[name] = data
	}
	return found, nil
}

func (e *Engine) copyOut(ctx context.Context, id, name string, links int) ([]byte, error) {
	if links == 0 {
		return nil, fs.ErrNotExist
	}
	r, _, err := e.cli.CopyFromContainer(ctx, id, name)
	if errdefs.IsNotFound(err) || err != nil && strings.Contains(err.Error(), "no such file") {
		return nil, fs.ErrNotExist
	}
	if err != nil {
		return nil, err
	}
	defer r.Close()
	tr := tar.NewReader(bufio.NewReader(r))
	h, err := tr.Next()
	if err != nil {
		return nil, err
	}
	switch h.Typeflag {
	case tar.TypeSymlink:
		to := h.Linkname
		if !path.IsAbs(to) {
			to = path.Join(path.Dir(name), to)
		}
		return e.copyOut(ctx, id, to, links-1)
	case tar.TypeReg:
		return io.ReadAll(io.LimitReader(tr, maxRead))
	}
	return nil, fs.ErrNotExist
}

// archiveOf is files as the tar that goes into a container's root, with their
// directories. Everything belongs to root and may be read by all.
func archiveOf(files []File) (*bytes.Buffer, error) {
	dirs := map[string]bool{}
	for _, f := range files {
		for d := path.Dir(strings.TrimPrefix(f.Path, "/")); d != "." && d != "/"; d = path.Dir(d) {
			dirs[d] = true
		}
	}
	// Directories that every image has keep their modes.
	for _, d := range []string{"etc", "usr", "usr/local", "etc/ssl", "etc/ssl/certs"} {
		delete(dirs, d)
	}
	var out bytes.Buffer
	tw := tar.NewWriter(&out)
	for _, d := range slices.Sorted(maps.Keys(dirs)) {
		if err := tw.WriteHeader(&tar.Header{Name: d + "/", Typeflag: tar.TypeDir, Mode: 0o755}); err != nil {
			return nil, err
		}
	}
	for _, f := range files {
		if err := tw.WriteHeader(&tar.Header{Name: strings.TrimPrefix(f.Path, "/"), Mode: int64(f.Mode.Perm()), Size: int64(len(f.Data))}); err != nil {
			return nil, err
		}
		if _, err := tw.Write(f.Data); err != nil {
			return nil, err
		}
	}
	return &out, tw.Close()
}
