package sandbox

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	_ "embed" // the recipes
	"encoding/binary"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"strings"

	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/sandbox/engine"
)

// baseRecipe is the Dockerfile of the base image.
//
//go:embed image/Dockerfile
var baseRecipe []byte

// toolboxRecipe is the Dockerfile of the layer that the images of all agents
// share.
//
//go:embed image/toolbox.Dockerfile
var toolboxRecipe []byte

// Image is an image that a sandbox runs, and how it is made. Without a recipe it
// must be there.
type Image struct {
	Ref        string // what people call it
	Dockerfile []byte
	Base       *Image // made first; its name is the build argument BASE
	Help       string // the hint of the error of a build that fails; "" is none
	Lacks      string // the agent that has to be added to it; "" is none
	// Build is what it is built of besides, for one of [BuiltImage].
	Build    Build
	features *Features // on Base; nil for any other image
	// project: files of a project decide what is in it.
	project bool
	// added: packages or a Dockerfile were added to an image of aileron's own.
	added bool
	// tier is that of an image that a devcontainer composes; "" is base, or byo without a recipe.
	tier string

	// id is what Ref stood for when it was looked up; "" before. A tag may be
	// another image's a moment later, so what was looked into and what runs are
	// both named by it.
	id string
}

// Build is what an image is built of besides its Dockerfile and its base.
type Build struct {
	Context []engine.ContextFile
	Args    map[string]string
	Target  string
	Digest  string // of these and of the Dockerfile
	// Before is called before the image, or its base, is built, and its error ends that. Nil is nothing.
	Before func(ctx context.Context) error
}

// The tiers of images, as AILERON_SANDBOX_TIER has them.
const (
	tierBase, tierBYO = "base", "byo"
	tierDevcontainer  = "devcontainer"
	tierHost          = "host"
)

// Tier returns what composes the image: base is aileron, devcontainer a project's devcontainer.json, and byo is an
// image that is used as it is. host is a native sandbox, which has this host's programs.
func (i Image) Tier() string {
	switch {
	case i.tier != "":
		return i.tier
	case i.Dockerfile == nil:
		return tierBYO
	}
	return tierBase
}

// ProjectImage returns an image that a project's devcontainer.json names.
func ProjectImage(ref string) Image { return Image{Ref: ref, tier: tierDevcontainer, project: true} }

// BuiltImage returns an image of a project's devcontainer.json, whose base is nil unless its Dockerfile has the build
// argument BASE. Nothing is built yet. What [CustomImage] says of a Dockerfile is so for this one, too.
func BuiltImage(file []byte, build Build, base *Image) Image {
	below := ""
	if base != nil {
		below = base.Ref
	}
	return Image{Ref: "localhost/aileron/devcontainer:" + longDigest([]byte(below), []byte(build.Digest)),
		Dockerfile: file, Base: base, Build: build, tier: tierDevcontainer, project: true,
		Help: "correct the Dockerfile of the devcontainer, or start without it: --devcontainer=off"}
}

// Added reports whether packages or a Dockerfile were added to an image of aileron's own.
func (i Image) Added() bool { return i.added }

// ID returns the identifier of the image's content, sha256:…, or "" for an image that was not looked up.
func (i Image) ID() string { return i.id }

// BaseImage is aileron's own image, the substrate of the others.
func BaseImage() Image { return ownImage("sandbox-base", nil, baseRecipe) }

// ToolboxImage is the base with the tools of development: version control,
// compilers, Python, Node.js, an editor.
func ToolboxImage() Image {
	base := BaseImage()
	return ownImage("toolbox", &base, toolboxRecipe)
}

// AgentImage is an agent's image on top of the toolbox. Without a recipe it is the toolbox, which lacks the agent.
func AgentImage(agent string, recipe []byte) Image {
	base := ToolboxImage()
	if recipe == nil {
		base.Lacks = agent
		return base
	}
	return ownImage("agent-"+agent, &base, recipe)
}

// ownImage is an image of a recipe that is built on base. Its tag is a digest of
// the recipes of both and of nothing else: a changed recipe is built anew, and a
// new aileron whose recipe did not change builds nothing.
func ownImage(name string, base *Image, recipe []byte) Image {
	below := ""
	if base != nil {
		below = base.Ref
	}
	return Image{Ref: "localhost/aileron/" + name + ":" + digest([]byte(below), recipe), Dockerfile: recipe, Base: base}
}

// digest returns the tag of an image whose recipe is aileron's own.
func digest(parts ...[]byte) string {
	h := sha256.New()
	for _, p := range parts {
		h.Write(p)
	}
	return hex.EncodeToString(h.Sum(nil))[:12]
}

// longDigest returns the tag of an image that a project has a hand in. An image is found by its tag alone, so it must
// be out of reach to find a second recipe for the tag of an image that another project trusts.
func longDigest(parts ...[]byte) string {
	h := sha256.New()
	for _, p := range parts {
		h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(p))))
		h.Write(p)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// EnsureImage makes an image when it is missing (policy auto), in any case
// (always), or not at all (never). The output of the build goes to progress, as
// it arrives; a progress with a method BuildEnded(error) learns of the end of each
// build. The image that is returned stays the same one, whatever becomes of its
// name.
func (e *Engine) EnsureImage(ctx context.Context, img Image, policy string, progress io.Writer) (_ Image, err error) {
	defer e.Explain(&err)
	if img.features != nil {
		return e.ensureFeatures(ctx, img, policy, progress)
	}
	unknown := img
	unknown.id = ""
	found, _, err := e.pin(ctx, unknown)
	here := err == nil
	switch {
	case !here && !engine.IsNotFound(err):
		return img, err
	case here && (policy != "always" || img.Dockerfile == nil):
		return found, nil
	case img.Dockerfile == nil:
		return img, hint.New(fmt.Errorf("find the image %s: it is not on this host; pull or build it first with %s",
			img.Ref, e.Kind()), "%s pull %s", e.Kind(), img.Ref)
	case policy == "never":
		return img, fmt.Errorf("find the image %s: it is not built yet, and --sandbox-build=never forbids building it",
			img.Ref)
	}
	if img.Build.Before != nil {
		if err := img.Build.Before(ctx); err != nil {
			return img, err
		}
	}
	args := maps.Clone(img.Build.Args)
	if args == nil {
		args = map[string]string{}
	}
	if img.Base != nil {
		base, err := e.EnsureImage(ctx, *img.Base, policy, progress)
		if err != nil {
			return img, err
		}
		args["BASE"] = base.Ref
		if bytes.Contains(img.Dockerfile, []byte("EXTRA_CA")) {
			if args["EXTRA_CA"], err = e.extraRoots(ctx, base); err != nil {
				return img, err
			}
		}
	}
	if err := e.build(ctx, img, args, progress); err != nil {
		return img, err
	}
	found, _, err = e.pin(ctx, img)
	return found, err
}

// build builds an image, and reports the end of it to a progress that has a
// method BuildEnded.
func (e *Engine) build(ctx context.Context, img Image, args map[string]string, progress io.Writer) error {
	fmt.Fprintf(progress, "aileron: building %s with %s (once)\n", img.Ref, e.Kind())
	recipe := engine.Recipe{Dockerfile: img.Dockerfile, Context: img.Build.Context, Args: args, Target: img.Build.Target}
	err := e.Build(ctx, img.Ref, recipe, map[string]string{"aileron.image": "1"}, progress)
	if p, ok := progress.(interface{ BuildEnded(err error) }); ok {
		p.BuildEnded(err)
	}
	if errors.Is(err, engine.ErrFull) {
		return hint.New(err, "free some space where %[1]s keeps its images (%[1]s system df), and run it again", e.Kind())
	}
	if err != nil && img.Help != "" {
		return hint.New(err, "%s", img.Help)
	}
	return err
}

// pin looks an image up, by its name only when it is looked up for the first
// time.
func (e *Engine) pin(ctx context.Context, img Image) (Image, engine.Image, error) {
	if known, ok := e.pinned.Load(img.id); ok {
		return img, known.(engine.Image), nil
	}
	found, err := e.Image(ctx, cmp.Or(img.id, img.Ref))
	if err != nil {
		return img, found, fmt.Errorf("look at the image %s: %w", img.Ref, err)
	}
	img.id = found.ID
	e.pinned.Store(img.id, found)
	return img, found, nil
}

// ImageLabel returns a label of the image that will run, "" if it has none.
func (p *Prepared) ImageLabel(ctx context.Context, name string) (string, error) {
	_, found, err := p.Engine.pin(ctx, p.Image)
	return found.Labels[name], err
}

// extraRoots are roots that this host trusts and a base image does not, such
// as those of a network that inspects TLS: builds need them to fetch.
func (e *Engine) extraRoots(ctx context.Context, base Image) (string, error) {
	const bundle = "/etc/ssl/certs/ca-certificates.crt"
	own, err := os.ReadFile(bundle)
	if err != nil {
		return "", nil // no bundle, no extra roots
	}
	files, err := e.OpenImage(ctx, base)
	if err != nil {
		return "", err
	}
	defer files.Close()
	theirs, err := files.ReadFile(strings.TrimPrefix(bundle, "/"))
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
