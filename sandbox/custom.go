package sandbox

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/sandbox/dockerfile"
)

// CustomImage returns an image of aileron's own with Debian packages and a
// Dockerfile on top of it, which are both optional. Its tag is a digest of all of
// that. Nothing is built yet.
//
// What builds it runs outside of any sandbox, with the network of the engine's
// host. A Dockerfile that a person has not agreed to must not be built. It
// decides what is in the image, as in any other image, and nothing that Run
// enforces: the seal, the user, the command, the mounts and the session's own
// variables and files.
func CustomImage(base Image, packages []string, file []byte) (Image, error) {
	if base.Dockerfile == nil && (len(packages) > 0 || file != nil) {
		return Image{}, hint.New(fmt.Errorf("add to the image %s: it is not one of aileron's own", base.Ref),
			"add what is missing to the image itself, or leave out --image")
	}
	if len(packages) > 0 {
		recipe, err := packagesRecipe(packages)
		if err != nil {
			return Image{}, err
		}
		below := base
		base = ownImage("packages", &below, recipe)
		base.added = true
		base.Help = "its last lines name the package; apt-cache search, or packages.debian.org, has those of Debian 12"
	}
	if file != nil {
		if _, err := dockerfile.Read(file, dockerfile.OnBase); err != nil {
			return Image{}, err
		}
		below := base
		base = ownImage("project", &below, file)
		base.project = true
		base.added = true
		base.Ref = "localhost/aileron/project:" + longDigest([]byte(below.Ref), file)
		base.Help = "correct the Dockerfile, or start without it: --dockerfile=off"
	}
	return base, nil
}

// debianPackage is the name of a package (Debian Policy 5.6.7), perhaps with a
// version. None begins with a hyphen, which would be an option, or ends with one,
// which would remove the package.
var debianPackage = regexp.MustCompile(`^[a-z0-9][a-z0-9+.-]*[a-z0-9+.](=[A-Za-z0-9.+~:-]*[A-Za-z0-9.+~])?$`)

// maxPackages bounds the arguments of one command.
const maxPackages = 500

// packagesRecipe returns the recipe of an image with more packages. Their order
// does not matter.
func packagesRecipe(packages []string) ([]byte, error) {
	sorted := slices.Compact(slices.Sorted(slices.Values(packages)))
	for _, name := range sorted {
		if !debianPackage.MatchString(name) || len(name) > 200 {
			return nil, hint.New(fmt.Errorf("install the package %q: it is not the name of a Debian package", name),
				"names are such as ripgrep, g++ or golang-go, and a version follows an =")
		}
	}
	if len(sorted) > maxPackages {
		return nil, hint.New(fmt.Errorf("install %d packages: at most %d can be added", len(sorted), maxPackages),
			"install a package that depends on them, or use a Dockerfile")
	}
	return []byte(`ARG BASE
FROM ${BASE}
USER root
RUN set -eu; \
    export DEBIAN_FRONTEND=noninteractive; \
    apt-get update -qq; \
    apt-get install -y -q --no-install-recommends ` + strings.Join(sorted, " ") + `; \
    rm -rf /var/lib/apt/lists/* /var/cache/apt/* /var/log/apt /var/log/dpkg.log
USER agent
`), nil
}
