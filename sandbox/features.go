package sandbox

import (
	"context"
	"fmt"
	"io"
	"sync"

	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/sandbox/engine"
)

// Features are what a devcontainer installs on its image. A person has agreed to them: what they run while they are
// built runs outside of any sandbox, as root of a container.
type Features struct {
	Digest string // of all that is installed
	// Recipe returns the Dockerfile, on the build argument BASE, and the files that it copies. The argument is the user of
	// the image below, "" for none.
	Recipe func(user string) (file []byte, context []engine.ContextFile, err error)
}

// FeaturesImage returns base with features on it. Nothing is built yet.
func FeaturesImage(base Image, f Features) Image {
	below := base
	return Image{Ref: featuresRef([]byte(base.Ref), f), Dockerfile: base.Dockerfile, Base: &below, features: &f,
		tier: base.Tier(), project: true,
		Help: "leave out the feature that fails, or start without the devcontainer: --devcontainer=off"}
}

func featuresRef(below []byte, f Features) string {
	return "localhost/aileron/devcontainer-features:" + longDigest(below, []byte(f.Digest))
}

// ensureFeatures makes an image with features. Its name is a digest of the id of the image below, which another one may
// take the name of, and of the features.
func (e *Engine) ensureFeatures(ctx context.Context, img Image, policy string, progress io.Writer) (Image, error) {
	before := sync.OnceValue(func() error {
		if img.Build.Before == nil {
			return nil
		}
		return img.Build.Before(ctx)
	})
	below := *img.Base
	below.Build.Before = func(context.Context) error { return before() }
	base, err := e.EnsureImage(ctx, below, policy, progress)
	if err != nil {
		return img, err
	}
	img.Ref = featuresRef([]byte(base.id), *img.features)
	img.id = ""
	found, _, err := e.pin(ctx, img)
	switch here := err == nil; {
	case !here && !engine.IsNotFound(err):
		return img, err
	case here && policy != "always":
		return found, nil
	case policy == "never":
		return img, fmt.Errorf("find the image of %s with its features: it is not built yet, and --sandbox-build=never "+
			"forbids building it", base.Ref)
	}
	if triggers, err := e.OnBuild(ctx, base.id); err != nil {
		return img, fmt.Errorf("look for ONBUILD in the image %s: %w", base.Ref, err)
	} else if len(triggers) > 0 {
		return img, hint.New(fmt.Errorf("install features on the image %s: its ONBUILD would run outside of the sandbox",
			base.Ref), "%s", img.Help)
	}
	if err := before(); err != nil {
		return img, err
	}
	_, config, err := e.pin(ctx, base)
	if err != nil {
		return img, err
	}
	made := img
	if made.Dockerfile, made.Build.Context, err = img.features.Recipe(config.User); err != nil {
		return img, err
	}
	if err := e.build(ctx, made, map[string]string{"BASE": plainID(base.id)}, progress); err != nil {
		return img, err
	}
	found, _, err = e.pin(ctx, img)
	return found, err
}
