package sandbox

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/ALRubinger/aileron/internal/hint"
)

// MaxDockerfile is the most bytes that a Dockerfile may have: a person is to read it.
const MaxDockerfile = 64 << 10

// checkDockerfile returns an error that names the line because of which a
// Dockerfile is not built: it is not on top of the base, it asks for files that a
// build does not get, or it asks the engine for more than a container has.
//
// It must read the file as the engine's builder does. An option that is hidden
// from it is as good as an escape: by RUN --mount a build writes to the host's
// files where the builder has CVE-2024-1753, as Podman 4.3 has.
func checkDockerfile(data []byte) error {
	if len(data) > MaxDockerfile {
		return hint.New(fmt.Errorf("read the Dockerfile: it has more than %d KiB", MaxDockerfile>>10),
			"fetch large files with RUN")
	}
	text := strings.TrimPrefix(string(data), "\ufeff")
	if err := checkCharacters(text); err != nil {
		return err
	}
	from, last := 0, ""
	for _, in := range instructions(text) {
		if err := in.check(); err != nil {
			return err
		}
		if args := strings.Fields(in.args); strings.EqualFold(in.word, "FROM") && len(args) > 0 {
			from, last = in.line, args[0]
		}
	}
	switch {
	case from == 0:
		return hint.New(errors.New("read the Dockerfile: it has no FROM"), "begin it with the lines: ARG BASE, FROM ${BASE}")
	case last != "${BASE}" && last != "$BASE":
		return refusedLine(from, "the last FROM is "+last, "the image must be built on the agent's: ARG BASE, FROM ${BASE}")
	}
	return nil
}

func refusedLine(line int, why, help string) error {
	return hint.New(fmt.Errorf("read the Dockerfile, line %d: %s", line, why), "%s", help)
}

// checkCharacters refuses what a person does not see, and what builders do not
// agree is white space: a no-break space after a backslash keeps the next line
// from being a continuation.
func checkCharacters(text string) error {
	if strings.ContainsRune(text, 0) || !utf8.ValidString(text) {
		return hint.New(errors.New("read the Dockerfile: it is not text"), "save it as UTF-8")
	}
	for i, line := range strings.Split(text, "\n") {
		for _, r := range strings.TrimSuffix(line, "\r") {
			if r != '\t' && !unicode.IsPrint(r) {
				return refusedLine(i+1, fmt.Sprintf("the character %U cannot be seen", r), "remove it")
			}
		}
	}
	return nil
}

// check returns an error for an instruction that is not built.
func (in instruction) check() error {
	refused := func(why, help string) error { return refusedLine(in.line, why, help) }
	args := strings.Fields(in.args)
	switch word := strings.ToUpper(in.word); {
	case strings.HasPrefix(in.word, "#"):
		return refused("a directive for the builder", "remove the line: "+in.word)
	case (word == "RUN" || word == "FROM") && len(args) > 0 && strings.HasPrefix(args[0], "-"):
		return refused(word+" with "+args[0], "options that mount or change rights are not allowed; use "+
			word+" without them")
	case (word == "RUN" || word == "COPY") && strings.Contains(in.args, "<<"):
		// Builders differ in whether the next lines are its text or instructions.
		return refused(word+" with <<", "here-documents are not allowed; use printf, or COPY --from= another stage")
	case word == "FROM" && len(args) > 0 && !isImage(args[0]):
		return refused("FROM "+args[0]+" may name a file of the host", "name an image of a registry or of the engine")
	case word == "ADD", word == "COPY" && !strings.HasPrefix(in.args, "--from="):
		return refused(word+" has no files to take: a build gets the Dockerfile alone",
			"use RUN to fetch them, or COPY --from= another stage; the project is mounted at "+Workspace)
	case word == "COPY":
		return in.checkCopy(args)
	case word == "ONBUILD":
		return refused("ONBUILD", "write the instruction itself")
	case !slices.Contains(known(), word):
		return refused(fmt.Sprintf("there is no instruction %q", in.word), "see docs/sandbox.md, Dockerfile")
	}
	return nil
}

// checkCopy returns an error for a COPY that may take something of the host.
func (in instruction) checkCopy(args []string) error {
	for i, arg := range args {
		name, isFrom := strings.CutPrefix(arg, "--from=")
		if isFrom && (i > 0 || strings.Contains(name, "$") || !isImage(name)) {
			return refusedLine(in.line, "COPY with "+arg+" may name a file of the host",
				"name another stage or an image of a registry")
		}
	}
	return nil
}

// imageName is an image or a stage, with variables after its first part only.
var imageName = regexp.MustCompile(`^([A-Za-z0-9][A-Za-z0-9._-]*)([:/@][A-Za-z0-9._:/@{}$+-]*)?$`)

// isImage reports whether a builder looks for a name among images and stages only.
// Before a colon, Podman's builder takes the names of its transports too
// (containers-transports(5)): tarball:/home/me/backup.tar reads that file.
func isImage(name string) bool {
	if name == "${BASE}" || name == "$BASE" {
		return true
	}
	found := imageName.FindStringSubmatch(name)
	if found == nil {
		return false
	}
	switch strings.ToLower(found[1]) {
	case "tarball", "dir", "oci", "oci-archive", "docker-archive", "docker-daemon", "containers-storage",
		"ostree", "sif", "atomic":
		return !strings.HasPrefix(found[2], ":")
	}
	// A transport that is not known here is followed by a path.
	return !strings.HasPrefix(found[2], ":/")
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

// continued is a line that the next one continues, as builders know it.
var continued = regexp.MustCompile(`\\[ \t]*$`)

// instructions returns the instructions of a Dockerfile, and its directives as
// words that begin with #. The parts of one that has several lines are joined as
// builders join them, without a space: -\ and -mount are --mount.
func instructions(text string) []instruction {
	var all []instruction
	var whole []strings.Builder // of each in all
	open, began := false, false
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimSuffix(line, "\r")
		trimmed := strings.Trim(line, " \t")
		comment := strings.HasPrefix(trimmed, "#")
		switch {
		case trimmed == "", comment && (began || !directive.MatchString(trimmed)):
			continue // also inside an instruction
		case !open:
			all, whole = append(all, instruction{line: i + 1}), append(whole, strings.Builder{})
		}
		if !comment {
			began, open = true, continued.MatchString(line)
			line = continued.ReplaceAllString(line, "")
		}
		whole[len(whole)-1].WriteString(line)
	}
	for i := range all {
		text := strings.Trim(whole[i].String(), " \t")
		if all[i].word = text; !strings.HasPrefix(text, "#") {
			word, args, _ := strings.Cut(strings.ReplaceAll(text, "\t", " "), " ")
			all[i].word, all[i].args = word, strings.Trim(args, " ")
		}
	}
	return all
}

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
