package sandbox

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/ALRubinger/aileron/internal/hint"
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
func CustomImage(base Image, packages []string, dockerfile []byte) (Image, error) {
	if base.Dockerfile == nil && (len(packages) > 0 || dockerfile != nil) {
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
		base.Help = "its last lines name the package; apt-cache search, or packages.debian.org, has those of Debian 12"
	}
	if dockerfile != nil {
		if err := checkDockerfile(dockerfile); err != nil {
			return Image{}, err
		}
		below := base
		base = ownImage("project", &below, dockerfile)
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

// MaxDockerfile is the most bytes that a Dockerfile may have: a person is to read it.
const MaxDockerfile = 64 << 10

// checkDockerfile returns an error that names the line because of which a
// Dockerfile is not built: it is not on top of the base, it asks for files that a
// build does not get, or it asks the engine for more than a container has.
func checkDockerfile(data []byte) error {
	refused := func(line int, why, help string) error {
		return hint.New(fmt.Errorf("read the Dockerfile, line %d: %s", line, why), "%s", help)
	}
	if len(data) > MaxDockerfile {
		return hint.New(fmt.Errorf("read the Dockerfile: it has more than %d KiB", MaxDockerfile>>10),
			"fetch large files with RUN")
	}
	if strings.ContainsRune(string(data), 0) {
		return hint.New(errors.New("read the Dockerfile: it is not text"), "save it as UTF-8")
	}
	from, last := 0, ""
	for _, in := range instructions(string(data)) {
		args := strings.Fields(in.args)
		switch word := strings.ToUpper(in.word); {
		case strings.HasPrefix(in.word, "#"):
			return refused(in.line, "a directive for the builder", "remove the line: "+in.word)
		case (word == "RUN" || word == "FROM") && len(args) > 0 && strings.HasPrefix(args[0], "--"):
			return refused(in.line, word+" with "+args[0], "options that mount or change rights are not allowed; use "+
				word+" without them")
		case word == "FROM" && len(args) > 0:
			from, last = in.line, args[0]
		case word == "ADD", word == "COPY" && !strings.HasPrefix(in.args, "--from="):
			return refused(in.line, word+" has no files to take: a build gets the Dockerfile alone",
				"use RUN to fetch them, or COPY --from= another stage; the project is mounted at "+Workspace)
		case word == "ONBUILD":
			return refused(in.line, "ONBUILD", "write the instruction itself")
		case !slices.Contains(known(), word):
			return refused(in.line, fmt.Sprintf("there is no instruction %q", in.word), "see docs/sandbox.md, Dockerfile")
		}
	}
	switch {
	case from == 0:
		return hint.New(errors.New("read the Dockerfile: it has no FROM"), "begin it with the lines: ARG BASE, FROM ${BASE}")
	case last != "${BASE}" && last != "$BASE":
		return refused(from, "the last FROM is "+last, "the image must be built on the agent's: ARG BASE, FROM ${BASE}")
	}
	return nil
}

// known are the instructions of a Dockerfile that are allowed. Those of how the
// image runs have no effect on a sandbox.
func known() []string {
	return []string{"ARG", "FROM", "RUN", "COPY", "ENV", "WORKDIR", "USER", "LABEL", "SHELL", "MAINTAINER",
		"ENTRYPOINT", "CMD", "EXPOSE", "VOLUME", "HEALTHCHECK", "STOPSIGNAL"}
}

// instruction is one of a Dockerfile, at its first line.
type instruction struct {
	line       int
	word, args string
}

// directive is a comment by which a Dockerfile changes how it is read: another
// frontend, which may be any program, or another escape character.
var directive = regexp.MustCompile(`^#\s*[A-Za-z]+\s*=`)

// instructions returns the instructions of a Dockerfile, and its directives as
// words that begin with #.
func instructions(text string) (all []instruction) {
	open, began := false, false
	for i, line := range strings.Split(strings.TrimPrefix(text, "\ufeff"), "\n") {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "#") {
			if !began && directive.MatchString(line) {
				all = append(all, instruction{line: i + 1, word: line})
			}
			continue
		}
		if line == "" {
			continue // also inside an instruction
		}
		part := strings.TrimSpace(strings.TrimSuffix(line, `\`))
		if open {
			all[len(all)-1].args += " " + part
		} else {
			word, args, _ := strings.Cut(strings.ReplaceAll(part, "\t", " "), " ")
			all = append(all, instruction{i + 1, word, strings.TrimSpace(args)})
		}
		began, open = true, strings.HasSuffix(line, `\`)
	}
	return all
}
