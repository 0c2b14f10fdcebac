package project

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ALRubinger/aileron/internal/failure"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/internal/launch"
	"github.com/ALRubinger/aileron/internal/regular"
	"github.com/ALRubinger/aileron/internal/termsafe"
	"github.com/ALRubinger/aileron/sandbox"
	"github.com/ALRubinger/aileron/sandbox/dockerfile"
)

// Dockerfile is the file of a project that is built on top of the image.
const Dockerfile = "aileron.Dockerfile"

// Custom is what is added to aileron's own images.
type Custom struct {
	Packages   []string
	Dockerfile string // a path; "" is the project's, if it has one
	within     string // the directory to which the path is relative and in which it stays; "" for a flag's
	Yes        bool   // the Dockerfile is built without a question
}

// Asked reports whether something is to be added.
func (o *Custom) Asked() bool {
	return len(o.Packages) > 0 || o.Dockerfile != "" && o.Dockerfile != "off"
}

// ImageOf returns the image that the flags select: one of the user's, that of the project's devcontainer, or aileron's
// own with what is added to it. A person has agreed to what is built.
func (a *Asker) ImageOf(opts *Sandbox, own sandbox.Image, packages []string) (sandbox.Image, error) {
	image, path, data, err := a.imageOf(opts, own, packages)
	if err != nil || data == nil {
		return image, err
	}
	home, err := a.Home()
	if err != nil {
		return image, err
	}
	return image, a.Consent(home, path, data, opts.Custom.Yes)
}

// imageOf is [Asker.ImageOf] before the question: data are the bytes of the Dockerfile in path to which a person has to
// agree, nil for none.
func (a *Asker) imageOf(opts *Sandbox, own sandbox.Image, packages []string) (
	image sandbox.Image, path string, data []byte, err error,
) {
	o := opts.Custom
	if opts.Native {
		return own, "", nil, a.checkNative(opts)
	}
	if opts.Image != "" {
		image, err = sandbox.CustomImage(sandbox.Image{Ref: opts.Image}, o.Packages, nil)
		return image, "", nil, err
	}
	if plan := opts.Devcontainer.Plan; plan != nil {
		image, err = devcontainerImage(plan, own, slices.Concat(packages, o.Packages), o.Packages)
		return image, "", nil, err
	}
	home, err := a.Home()
	if err != nil {
		return own, "", nil, err
	}
	dir, _, err := launch.Project(opts.Dir, home)
	if err != nil {
		return own, "", nil, err
	}
	if path, data, err = o.Read(dir); err != nil {
		return own, "", nil, err
	}
	if own.Lacks != "" && data == nil {
		return own, "", nil, hint.New(fmt.Errorf("make an image for %s: aileron has no recipe of it, because it knows no "+
			"hash of its releases", own.Lacks), "docs/agents.md has the lines of an %s that fetches and verifies a release; "+
			"or name an image that has it: --image NAME", Dockerfile)
	}
	image, err = sandbox.CustomImage(own, slices.Concat(packages, o.Packages), data)
	return image, path, data, err
}

// checkNative refuses what is to be added to the image of a sandbox that has none.
func (a *Asker) checkNative(opts *Sandbox) error {
	home, err := a.Home()
	if err != nil {
		return err
	}
	dir, _, err := launch.Project(opts.Dir, home)
	if err != nil {
		return err
	}
	path, data, err := opts.Custom.Read(dir)
	switch {
	case err != nil:
		return err
	case data != nil:
		return hint.New(fmt.Errorf("build %s: a native sandbox has this host's programs, and no image", path),
			"start without it: --dockerfile=off; or use an engine: --sandbox=podman or --sandbox=docker")
	case len(opts.Custom.Packages) > 0:
		return hint.New(errors.New("add packages: a native sandbox has this host's programs, and no image"),
			"install %s on this host, and leave out --packages and packages of the project's file; "+
				"or use an engine: --sandbox=podman or --sandbox=docker", hint.Listed(opts.Custom.Packages))
	}
	return nil
}

// Read returns the Dockerfile, or nil if there is none. What is read here is what is asked about and built.
func (o Custom) Read(dir string) (path string, data []byte, err error) {
	path = o.Dockerfile
	switch {
	case path == "off":
		return "", nil, nil
	case path == "":
		path = filepath.Join(dir, Dockerfile)
	}
	if o.within == "" {
		data, err = regular.Read(path, dockerfile.Max)
	} else {
		path = filepath.Join(o.within, path)
		data, err = o.readWithin()
	}
	if errors.Is(err, fs.ErrNotExist) && o.Dockerfile == "" {
		return "", nil, nil
	}
	if err != nil {
		return "", nil, hint.New(fmt.Errorf("read the Dockerfile %s: %w", path, err),
			"--dockerfile=off starts without it")
	}
	return path, data, nil
}

// readWithin reads the Dockerfile of a project's file. No link on its way leads out of the project.
func (o Custom) readWithin() ([]byte, error) {
	root, err := os.OpenRoot(o.within)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return regular.ReadIn(root, o.Dockerfile, dockerfile.Max)
}

// Consent asks whether a Dockerfile may be built, unless a person agreed to the same bytes before. The build is no part
// of the sandbox, and a repository may bring the file.
func (a *Asker) Consent(home, path string, file []byte, yes bool) error {
	sum := sha256.Sum256(file)
	digest := hex.EncodeToString(sum[:])
	name := "dockerfile-" + digest
	if (consents{home}).has(name) {
		return nil
	}
	what := fmt.Sprintf("%s (sha256:%s, %d lines)", path, digest, bytes.Count(file, []byte("\n")))
	if !yes {
		if !a.Interactive() {
			return hint.New(fmt.Errorf("build the image of %s: a person must agree to it first", what),
				"read the file, then pass --yes; or start without it: --dockerfile=off")
		}
		if err := a.askToBuild(what, file); err != nil {
			return err
		}
	}
	return consents{home}.add(name, path)
}

// askToBuild shows a Dockerfile and asks whether it may be built.
func (a *Asker) askToBuild(what string, file []byte) error {
	a.Infof("aileron: %s adds to the image:", what)
	for line := range strings.Lines(string(file)) {
		fmt.Fprintln(a.Stderr, "  | "+termsafe.Line(strings.TrimRight(line, "\r\n")))
	}
	a.Infof("aileron: building it runs these commands outside of the sandbox: as root of a container, with the network " +
		"of the engine's machine, without mediation and without a row in the audit log.")
	yes, err := a.Agreed("build it, and remember this content?")
	if err != nil {
		return err
	}
	if !yes {
		return hint.New(failure.Declined("build the image of the Dockerfile: it was declined"),
			"start without it: --dockerfile=off")
	}
	return nil
}
