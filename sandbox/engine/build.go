package engine

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/build"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/image"
	"github.com/docker/docker/client"

	"github.com/ALRubinger/aileron/internal/procid"
	"github.com/ALRubinger/aileron/internal/system"
)

// Image is what an engine reports of an image.
type Image struct {
	ID           string
	Architecture string
	// The rest is of the image's configuration.
	User    string
	Env     []string
	Volumes map[string]struct{}
	Labels  map[string]string

	Layer Layer
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
		img.User, img.Env, img.Volumes, img.Labels = c.User, c.Env, c.Volumes, c.Labels
	}
	if _, socket := e.Local(); socket {
		img.Layer = layersOf(found)
	}
	return img, nil
}

// Load makes the images of a tar archive, as `docker save` writes it.
func (e *Engine) Load(ctx context.Context, archive io.Reader) error {
	output, err := e.cli.ImageLoad(ctx, archive, client.ImageLoadWithQuiet(true))
	if err != nil {
		return err
	}
	defer output.Body.Close()
	return new(buildOutput).read(output.Body, io.Discard)
}

// RemoveOtherTags removes the images of a repository but for that of a tag, as far as no container uses them.
func (e *Engine) RemoveOtherTags(ctx context.Context, repository, kept string) {
	list, err := e.cli.ImageList(ctx, image.ListOptions{Filters: filters.NewArgs(filters.Arg("reference", repository))})
	if err != nil {
		return // the next one removes them
	}
	for _, img := range list {
		for _, tag := range img.RepoTags {
			if strings.HasPrefix(tag, repository+":") && tag != kept {
				_, _ = e.cli.ImageRemove(ctx, tag, image.RemoveOptions{})
			}
		}
	}
}

// Recipe is what an image is built of.
type Recipe struct {
	Dockerfile []byte
	Context    []ContextFile // that it copies
	Args       map[string]string
	Target     string // the stage that is the image; "" is the last one
}

// ContextFile is a file, a directory or a link of a build's context.
type ContextFile struct {
	Path string // relative to the context
	Mode fs.FileMode
	Link string
	Data []byte
}

// Build builds an image. The build's output goes to progress, as it arrives. A
// build that fails, or that ctx ends, leaves nothing that it made. One that fails
// because an image was removed meanwhile is tried again.
func (e *Engine) Build(ctx context.Context, ref string, r Recipe, labels map[string]string, progress io.Writer) error {
	archive, err := buildContext(r)
	if err != nil {
		return fmt.Errorf("build %s: %w", ref, err)
	}
	values := map[string]*string{}
	for name, value := range r.Args {
		values[name] = &value
	}
	live, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	ending := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(ending)
		e.endBuild(live)
		cancel()
	})
	opts := build.ImageBuildOptions{
		Tags: []string{ref}, Dockerfile: recipeName, BuildArgs: values, Remove: true, ForceRemove: true, Target: r.Target,
		NetworkMode: "host", // engines without a bridge of their own build too
		Labels:      labels,
	}
	var output buildOutput
	err = e.build(live, opts, bytes.NewReader(archive), &output, progress)
	for tries := 1; tries < maxBuilds && isCacheGone(err) && ctx.Err() == nil; tries++ {
		e.removeSteps(ctx, &output, ref, labels)
		output = buildOutput{}
		err = e.build(live, opts, bytes.NewReader(archive), &output, progress)
	}
	if !stop() {
		cancel()
		<-ending
		err = ctx.Err()
	}
	if err == nil {
		return nil
	}
	e.removeSteps(ctx, &output, ref, labels)
	return fmt.Errorf("build %s: %w", ref, output.explain(err))
}

// maxBuilds is how often a build is tried while images are removed beside it.
const maxBuilds = 3

// isCacheGone reports whether a build failed because an image was removed while it
// looked for a step among all images. Podman's builder lists them, then reads each,
// and does not skip one that has gone: any removal beside a build can end it.
func isCacheGone(err error) bool {
	if err == nil || !strings.HasPrefix(err.Error(), "checking if cached image exists from a previous build: ") {
		return false
	}
	return strings.HasSuffix(err.Error(), "layer not known") || strings.HasSuffix(err.Error(), "image not known")
}

func (e *Engine) build(
	ctx context.Context, opts build.ImageBuildOptions, archive io.Reader, output *buildOutput, progress io.Writer,
) error {
	res, err := e.cli.ImageBuild(ctx, archive, opts)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	return output.read(res.Body, progress)
}

// recipeName is the Dockerfile in a context: no file that it copies has its name.
const recipeName = ".aileron.Dockerfile"

// buildContext returns the archive of a build. Its times are the same each time, so that an engine finds the step that
// copied the same files.
func buildContext(r Recipe) ([]byte, error) {
	var archive bytes.Buffer
	tw := tar.NewWriter(&archive)
	recipe := ContextFile{Path: recipeName, Mode: 0o644, Data: r.Dockerfile}
	for _, f := range append(slices.Clone(r.Context), recipe) { // the last one of a name counts
		h := &tar.Header{Name: f.Path, Typeflag: tar.TypeReg, Mode: int64(f.Mode.Perm()), Size: int64(len(f.Data))}
		switch {
		case f.Mode.IsDir():
			h.Name, h.Typeflag = f.Path+"/", tar.TypeDir
		case f.Mode&fs.ModeSymlink != 0:
			h.Typeflag, h.Linkname = tar.TypeSymlink, f.Link
		}
		if err := tw.WriteHeader(h); err != nil {
			return nil, err
		}
		if _, err := tw.Write(f.Data); err != nil {
			return nil, err
		}
	}
	if err := tw.Close(); err != nil {
		return nil, err
	}
	return archive.Bytes(), nil
}

const (
	// endBuildTime bounds how long a build that is to end is waited for.
	endBuildTime  = time.Minute
	endBuildPause = 50 * time.Millisecond
	// removeStepsTime bounds the removal of what a failed build made.
	removeStepsTime = 10 * time.Second
)

// endBuild ends the build of a service of ours, until ctx ends, which is when the
// build has. Docker's daemon ends a build whose client goes away. Podman goes on
// with it, and if its service is killed, it leaves the container of each step. So
// the commands of the build are killed, and it fails and removes them itself.
func (e *Engine) endBuild(ctx context.Context) {
	if e.service == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, endBuildTime)
	defer cancel()
	ticker := time.NewTicker(endBuildPause)
	defer ticker.Stop()
	for {
		killCommands(e.service.cmd.Process.Pid, inContainer(e.service.cmd.Process.Pid))
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

// removeSteps removes the images of steps that a build of ref has made, the last first.
// What was there before, or has another image on top of it, stays; but a step that
// was another build's of ours, which has failed since and could not remove it from
// below this one, goes too. An image that has another name stays: a command of the
// build may print the line that names the image of a step, with the id of any image.
func (e *Engine) removeSteps(ctx context.Context, output *buildOutput, ref string, labels map[string]string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), removeStepsTime)
	defer cancel()
	for _, id := range slices.Backward(output.made) {
		if step, err := e.cli.ImageInspect(ctx, id); err == nil && !named(step, ref) {
			e.removeStep(ctx, id)
		}
	}
	for _, id := range slices.Backward(output.reused) {
		step, err := e.cli.ImageInspect(ctx, id)
		if err != nil || named(step, "") || step.Config == nil || !labelled(step.Config.Labels, labels) {
			continue
		}
		// Whatever is built on it, or runs, keeps it; that build or its image removes it in the end.
		_, _ = e.cli.ImageRemove(ctx, id, image.RemoveOptions{})
	}
}

// named reports whether an image has a name other than ref: a tag, or the digest by
// which it was pulled. Podman lists an image with a tag under its repository and digest, too.
func named(about image.InspectResponse, ref string) bool {
	return slices.ContainsFunc(slices.Concat(about.RepoTags, about.RepoDigests), func(name string) bool {
		repository, _, byDigest := strings.Cut(name, "@")
		own := name == ref || byDigest && strings.HasPrefix(ref, repository+":")
		return !own && !strings.Contains(name, "<none>")
	})
}

// labelled reports whether an image has the labels that a build gives its own.
func labelled(has, want map[string]string) bool {
	for name, value := range want {
		if has[name] != value {
			return false
		}
	}
	return len(want) > 0
}

// removeStep removes the image of a step. Docker's daemon may still use it for a
// moment, for a build that was interrupted.
func (e *Engine) removeStep(ctx context.Context, id string) {
	for {
		// Without pruning: an engine would remove images below it that others have made.
		_, err := e.cli.ImageRemove(ctx, id, image.RemoveOptions{})
		if !errdefs.IsConflict(err) {
			return
		}
		select {
		case <-time.After(endBuildPause):
		case <-ctx.Done():
			return
		}
	}
}

// inContainer returns whether a process is in another PID namespace than a
// service: a command of a build, and not the runtime that cleans up after it.
func inContainer(service int) func(pid int) bool {
	namespace := func(pid int) string {
		at, _ := os.Readlink(filepath.Join("/proc", strconv.Itoa(pid), "ns/pid"))
		return at
	}
	own := namespace(service)
	return func(pid int) bool {
		at := namespace(pid)
		return at != "" && own != "" && at != own
	}
}

// killCommands kills the commands that builds of a service run: the processes
// below its own children that are in a container. The others are Podman's and its
// runtime's, and remove what the commands leave.
func killCommands(service int, contained func(pid int) bool) {
	parents := processParents()
	below := func(pid int) bool { // more than one generation
		depth := 0
		for ; pid > 1 && pid != service && depth < len(parents); depth++ {
			pid = parents[pid]
		}
		return pid == service && depth > 1
	}
	for pid := range parents {
		if !below(pid) || !contained(pid) {
			continue
		}
		_ = system.KillProcess(pid, func() bool { return parentOf(pid) == parents[pid] })
	}
}

// processParents returns the parent of each process of this machine.
func processParents() map[int]int {
	parents := map[int]int{}
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		if pid, err := strconv.Atoi(filepath.Base(dir)); err == nil {
			if parent := parentOf(pid); parent > 0 {
				parents[pid] = parent
			}
		}
	}
	return parents
}

// parentOf returns the parent of a process (proc_pid_stat(5)), or 0.
func parentOf(pid int) int {
	stat, err := procid.Stat(pid)
	if err != nil {
		return 0
	}
	parent, _ := strconv.Atoi(stat[procid.StatParent])
	return parent
}
