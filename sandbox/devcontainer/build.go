package devcontainer

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/internal/regular"
	"github.com/ALRubinger/aileron/sandbox/dockerfile"
)

// imageName returns a value that has to be the name of an image.
func (c *composer) imageName(property string, value any) (string, bool) {
	name, ok := c.text(property, value)
	if ok && !dockerfile.IsImage(name) {
		c.refuse(property, fmt.Sprintf("%q is no name of an image", name), "write it as in docker pull")
		return "", false
	}
	return name, ok
}

func (c *composer) useImage(name string, value any) {
	if c.plan.Tier == TierBYO { // customizations come first
		return
	}
	image, ok := c.imageName(name, value)
	switch {
	case !ok:
	case c.plan.Build != nil:
		c.warn(name, "the Dockerfile takes precedence")
	default:
		c.plan.Image = image
	}
}

// useBuild reads how the image is built.
func (c *composer) useBuild(name string, value any) {
	object, ok := value.(map[string]any)
	if !ok {
		c.mistyped(name, "an object")
		return
	}
	args := map[string]string{}
	b := &Build{Context: "."}
	for _, key := range slices.Sorted(maps.Keys(object)) {
		property, value := name+"."+key, object[key]
		switch key {
		case "dockerfile":
			b.Dockerfile, _ = c.text(property, value)
		case "context":
			b.Context, _ = c.text(property, value)
		case "target":
			b.Target, _ = c.text(property, value)
		case "args":
			given, ok := value.(map[string]any)
			if !ok {
				c.mistyped(property, "an object of strings")
			}
			for arg, v := range given {
				args[arg] = fmt.Sprint(v)
			}
		case "cacheFrom":
			c.warn(property, "it has no effect: an image of a registry would be fetched with the credentials of this host, and "+
				"only the engine's own cache is used")
		case "options":
			c.useBuildOptions(property, value, args)
		default:
			c.warn(property, "there is no such property")
		}
	}
	if b.Dockerfile != "" {
		c.finishBuild(name+".dockerfile", b, args)
	}
}

// useLegacyBuild reads dockerFile and context, which are before build.
func (c *composer) useLegacyBuild() {
	name, legacy := c.doc.root["dockerFile"], "dockerFile"
	if name == nil {
		return
	}
	b, args := &Build{Context: "."}, map[string]string{}
	b.Dockerfile, _ = c.text(legacy, name)
	if value := c.doc.root["context"]; value != nil {
		b.Context, _ = c.text("context", value)
	}
	if object, ok := c.doc.root["build"].(map[string]any); ok { // both may be there
		if given, ok := object["args"].(map[string]any); ok {
			for arg, v := range given {
				args[arg] = fmt.Sprint(v)
			}
		}
		if target, ok := object["target"].(string); ok {
			b.Target = target
		}
	}
	if b.Dockerfile != "" {
		c.finishBuild(legacy, b, args)
	}
}

// useBuildOptions reads arguments of docker build. Each that is not known is refused: builds run outside of a sandbox.
func (c *composer) useBuildOptions(property string, value any, args map[string]string) {
	options, ok := c.texts(property, value)
	if !ok {
		return
	}
	for len(options) > 0 {
		option, given, hasValue := strings.Cut(options[0], "=")
		options = options[1:]
		switch option {
		case "--pull", "--no-cache", "--quiet", "-q", "--rm", "--force-rm":
			c.warn(property, option+" has no effect")
			continue
		case "--build-arg", "--progress", "--label", "--network":
			if !hasValue && len(options) > 0 {
				given, options = options[0], options[1:]
			}
		}
		switch option {
		case "--build-arg":
			arg, text, _ := strings.Cut(given, "=")
			args[arg] = text
		case "--progress", "--label":
			c.warn(property, option+" has no effect")
		case "--network":
			if given != "host" && given != "default" {
				c.refuse(property, option+" "+given+" is not for a build here", "remove it")
			}
		default:
			c.refuse(property, option+" is not known here", "remove it, or build the image yourself and name it: image")
		}
	}
}

// finishBuild reads the Dockerfile and the files that its build reads, all below the project.
func (c *composer) finishBuild(property string, b *Build, args map[string]string) {
	if c.plan.Tier == TierBYO {
		return
	}
	if c.plan.Image != "" {
		c.warn("image", "the Dockerfile takes precedence")
		c.plan.Image = ""
	}
	// FROM ${BASE} is aileron's own image, unless the project names another.
	if base, ok := args["BASE"]; ok && !dockerfile.IsImage(base) {
		c.refuse(property, fmt.Sprintf("the build argument BASE is %q, which may name a file of the host", base),
			"name an image of a registry or of the engine, or leave it to aileron")
		return
	}
	b.Args = sorted(args)
	if c.Unbuilt {
		return
	}
	at := path.Dir(c.File)
	for _, p := range []*string{&b.Dockerfile, &b.Context} {
		named := *p
		if path.IsAbs(named) {
			rel, ok := c.inProject(named)
			if !ok {
				c.refuse(property, named+" is not in the project", "name a path relative to "+at)
				return
			}
			*p = rel
			continue
		}
		if *p = path.Join(at, named); !fs.ValidPath(*p) {
			c.refuse(property, named+" is not in the project",
				"a build reads files of the project; move it there, or start without the file: --devcontainer=off")
			return
		}
	}
	var err error
	if b.Data, err = regular.ReadIn(c.Root, b.Dockerfile, dockerfile.Max); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			err = errors.New("there is no such file in the project")
		}
		c.refuse(property, fmt.Sprintf("read %s: %v", b.Dockerfile, err), "correct the path; it is relative to "+at)
		return
	}
	read, err := dockerfile.Read(b.Data, dockerfile.WithContext)
	if err == nil {
		b.UsesBase = read.UsesBase && !slices.ContainsFunc(b.Args, func(v Variable) bool { return v.Name == "BASE" })
		b.Reads = slices.Compact(slices.Sorted(slices.Values(read.Sources)))
		b.Files, err = readContext(c.ctx, c.Root, b.Context, b.Dockerfile, b.Reads)
	}
	if err != nil {
		c.refuse(property, fmt.Sprintf("%s: %v", b.Dockerfile, err), hint.Of(err))
		return
	}
	if b.Reads == nil {
		b.Reads = []string{}
	}
	c.plan.Build = b
}
