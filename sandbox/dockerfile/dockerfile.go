// Package dockerfile decides whether a Dockerfile that came with a project may be built, and which files its build
// reads. Call [Read]:
//
//	f, err := dockerfile.Read(data, dockerfile.WithContext)
//
// A build runs outside of any sandbox. What is refused is what would let it reach more than a container has: options
// that mount or change rights, images that name files of the host, and whatever builders read otherwise than a person
// does. Whether the commands of a Dockerfile are harmless is for a person to decide, who agrees to its bytes.
package dockerfile

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

// Max is the most bytes that a Dockerfile may have: a person is to read it.
const Max = 64 << 10

// Kind is what a build gets besides the Dockerfile.
type Kind int

const (
	// OnBase is a build without files, whose last stage is built on the build argument BASE.
	OnBase Kind = iota
	// WithContext is a build with files of the project, on any image.
	WithContext
)

// File is what is known of a Dockerfile that may be built.
type File struct {
	UsesBase bool // a stage is built on ${BASE}
	// Sources are the files and directories that it copies from the context: patterns of [path.Match] with slashes,
	// without a slash at the beginning, "." for all.
	Sources []string
}

// Read returns an error that names the line because of which a Dockerfile is not built: it asks for files that a build
// does not get, it is not on top of the base where it has to be, or it asks the engine for more than a container has.
//
// It must read the file as the engine's builder does. An option that is hidden from it is as good as an escape: by RUN
// --mount a build writes to the host's files where the builder has CVE-2024-1753, as Podman 4.3 has.
func Read(data []byte, kind Kind) (File, error) {
	var f File
	if len(data) > Max {
		return f, hint.New(fmt.Errorf("read the Dockerfile: it has more than %d KiB", Max>>10),
			"fetch large files with RUN")
	}
	text := strings.TrimPrefix(string(data), "\ufeff")
	if err := checkCharacters(text); err != nil {
		return f, err
	}
	from, last := 0, ""
	for _, in := range instructions(text) {
		sources, err := in.check(kind)
		if err != nil {
			return f, err
		}
		f.Sources = append(f.Sources, sources...)
		if args := strings.Fields(in.args); strings.EqualFold(in.word, "FROM") && len(args) > 0 {
			from, last = in.line, args[0]
			f.UsesBase = f.UsesBase || isBase(last)
		}
	}
	switch {
	case from == 0 && kind == OnBase:
		return f, hint.New(errors.New("read the Dockerfile: it has no FROM"),
			"begin it with the lines: ARG BASE, FROM ${BASE}")
	case from == 0:
		return f, hint.New(errors.New("read the Dockerfile: it has no FROM"), "begin it with FROM and an image")
	case kind == OnBase && !isBase(last):
		return f, refusedLine(from, "the last FROM is "+last,
			"the image must be built on the agent's: ARG BASE, FROM ${BASE}")
	}
	return f, nil
}

// isBase reports whether an argument of FROM is the build argument BASE.
func isBase(image string) bool { return image == "${BASE}" || image == "$BASE" }

func refusedLine(line int, why, help string) error {
	return hint.New(fmt.Errorf("read the Dockerfile, line %d: %s", line, why), "%s", help)
}

// twoBackslashes is the end of a line that some builders continue, and others do not.
var twoBackslashes = regexp.MustCompile(`\\\\[ \t]*$`)

// checkCharacters refuses what a person does not see, and what builders do not
// agree on: a no-break space after a backslash keeps the next line
// from being a continuation, and so do two backslashes for BuildKit.
func checkCharacters(text string) error {
	if strings.ContainsRune(text, 0) || !utf8.ValidString(text) {
		return hint.New(errors.New("read the Dockerfile: it is not text"), "save it as UTF-8")
	}
	for i, line := range strings.Split(text, "\n") {
		if twoBackslashes.MatchString(strings.TrimSuffix(line, "\r")) {
			return refusedLine(i+1, "two backslashes at its end, which builders read in different ways",
				"write one to continue it; else add something behind them")
		}
		for _, r := range strings.TrimSuffix(line, "\r") {
			if r != '\t' && !unicode.IsPrint(r) {
				return refusedLine(i+1, fmt.Sprintf("the character %U cannot be seen", r), "remove it")
			}
		}
	}
	return nil
}

// check returns the files of the context that an instruction reads, and an error for one that is not built.
func (in instruction) check(kind Kind) (sources []string, err error) {
	refused := func(why, help string) ([]string, error) { return nil, refusedLine(in.line, why, help) }
	args := strings.Fields(in.args)
	switch word := strings.ToUpper(in.word); {
	case strings.HasPrefix(in.word, "#") && (kind == OnBase || !ownFrontend.MatchString(in.word)):
		return refused("a directive for the builder", "remove the line: "+in.word)
	case strings.HasPrefix(in.word, "#"):
		return nil, nil
	case (word == "RUN" || word == "FROM") && len(args) > 0 && strings.HasPrefix(args[0], "-"):
		return refused(word+" with "+args[0], "options that mount or change rights are not allowed; use "+
			word+" without them")
	case (word == "RUN" || word == "COPY" || word == "ADD") && strings.Contains(in.args, "<<"):
		// Builders differ in whether the next lines are its text or instructions.
		return refused(word+" with <<", "here-documents are not allowed; use printf, or COPY --from= another stage")
	case word == "FROM" && len(args) > 0 && !isImage(args[0]):
		return refused("FROM "+args[0]+" may name a file of the host", "name an image of a registry or of the engine")
	case word == "COPY" && strings.HasPrefix(in.args, "--from="):
		return nil, in.checkCopy(args)
	case (word == "ADD" || word == "COPY") && kind == WithContext:
		return in.sources()
	case word == "ADD", word == "COPY":
		return refused(word+" has no files to take: a build gets the Dockerfile alone",
			"use RUN to fetch them, or COPY --from= another stage; the project is mounted at /home/agent/workspace")
	case word == "ONBUILD":
		return refused("ONBUILD", "write the instruction itself")
	case !slices.Contains(known(), word):
		return refused(fmt.Sprintf("there is no instruction %q", in.word), "see docs/sandbox.md, Dockerfile")
	}
	return nil, nil
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
	return isBase(name) || isNamed(name)
}

// IsImage reports whether a builder looks for the value of a build argument among images only, where it stands after
// FROM: see isImage.
func IsImage(value string) bool { return !strings.Contains(value, "$") && isNamed(value) }

func isNamed(name string) bool {
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
