// Package devcontainer reads a project's devcontainer.json and composes what a sandbox has of it.
//
// [Find] returns the configurations of a project, [Choose] takes one, and [Compose] makes a [Plan] of it:
//
//	root, err := os.OpenRoot(project)
//	found, err := devcontainer.Find(root)
//	file, err := devcontainer.Choose(found, "")
//	in := devcontainer.Input{Root: root, Dir: project, File: file, Getenv: os.LookupEnv}
//	plan, err := devcontainer.Compose(ctx, in)
//
// The file belongs to the project: a repository brings it, and an agent may write it. The package grants nothing. A
// Plan is what the file asks for, with a digest of all that went in: the file, the variables of this host that it
// names, the Dockerfile and the files that its build reads. Each property is honoured, refused with what to do about
// it, or named in a warning; none is dropped in silence. What breaks the seal of a sandbox is refused.
//
// The format is that of https://containers.dev/implementors/json_reference. Comments and commas at the end of a list
// are accepted, as its reference implementation does; what is no JSON otherwise is an error here, and so is a property
// that is there twice: a person would read one of them, and the other would be in force.
package devcontainer

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/sys/unix"

	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/internal/regular"
)

// Bounds of a configuration. A person has to read what it asks for.
const (
	maxFile  = 256 << 10
	maxDepth = 32
	maxFound = 64 // configurations of a project

	maxSiblings = 10_000 // entries of the directory in which they are looked for
)

const (
	directory = ".devcontainer"
	fileName  = "devcontainer.json"
)

// Find returns the paths of the configurations of a project, relative to it: that of the directory .devcontainer, that
// of the project itself, and those of the directories in .devcontainer, sorted.
func Find(root *os.Root) ([]string, error) {
	var found []string
	for _, name := range []string{path.Join(directory, fileName), ".devcontainer.json"} {
		if is(root, name) {
			found = append(found, name)
		}
	}
	dir, err := openDir(root, directory)
	if err != nil {
		return found, nil // there is none, or it is no directory of the project
	}
	defer dir.Close()
	named, err := findNamed(root, dir)
	if err == nil && len(found)+len(named) > maxFound {
		err = hint.New(fmt.Errorf("read %s: it has more than %d configurations", directory, maxFound), hintOff)
	}
	return append(found, named...), err
}

const hintOff = "start without them: --devcontainer=off"

// findNamed returns the paths of the configurations in the directories of dir, which is .devcontainer, sorted.
func findNamed(root *os.Root, dir *os.File) (found []string, err error) {
	for looked := 0; ; {
		entries, err := dir.ReadDir(entriesAtOnce)
		if err != nil { // that of its end, or it is no directory
			slices.Sort(found)
			return found, nil //nolint:nilerr // as said
		}
		if looked += len(entries); looked > maxSiblings {
			return nil, hint.New(fmt.Errorf("read %s: it has more than %d entries", directory, maxSiblings), hintOff)
		}
		for _, entry := range entries {
			name := path.Join(directory, entry.Name(), fileName)
			if !entry.IsDir() || !is(root, name) {
				continue
			}
			if !printable(entry.Name()) {
				return nil, hint.New(fmt.Errorf("read %q: its name has a character that cannot be seen", name), "rename it")
			}
			found = append(found, name)
		}
	}
}

// openDir opens a directory, and nothing else: a pipe would be waited for.
func openDir(root *os.Root, name string) (*os.File, error) {
	return root.OpenFile(name, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NONBLOCK, 0)
}

func is(root *os.Root, name string) bool {
	_, err := root.Lstat(name)
	return err == nil
}

func printable(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) })
}

// ChoiceError is returned where a project has several configurations of which none comes first.
type ChoiceError struct{ Names []string }

func (e *ChoiceError) Error() string {
	return "choose a devcontainer: the project has " + hint.Listed(e.Names)
}

// Choose returns one of the configurations that were found: the one of the directory that name names, or "default" for
// that of .devcontainer or of the project itself. Without a name it is the default, or the only one; "" if there is
// none. The error is a [ChoiceError] if a person has to choose.
func Choose(found []string, name string) (string, error) {
	var names []string
	for _, file := range found {
		names = append(names, NameOf(file))
	}
	if at := slices.Index(names, name); at >= 0 {
		return found[at], nil
	}
	switch {
	case name != "" && len(found) == 0:
		return "", hint.New(fmt.Errorf("use the devcontainer %q: the project has none", name),
			"aileron sandbox init makes one")
	case name != "":
		return "", hint.New(fmt.Errorf("use the devcontainer %q: the project has none of that name", name),
			"name one of %s with --devcontainer, or start without: --devcontainer=off", hint.Listed(names))
	case len(found) == 0:
		return "", nil
	case len(found) == 1 || names[0] == defaultName:
		return found[0], nil
	}
	return "", hint.New(&ChoiceError{names}, "name one with --devcontainer, or start without: --devcontainer=off")
}

const defaultName = "default"

// NameOf returns the name by which [Choose] knows a configuration.
func NameOf(file string) string {
	if dir := path.Dir(file); path.Dir(dir) == directory {
		return path.Base(dir)
	}
	return defaultName
}

// Input is what [Compose] makes a plan of.
type Input struct {
	Root *os.Root // of the project, from which all files are read
	Dir  string   // its path, without links
	File string   // of the configuration, relative to it
	// Getenv looks a variable of this host up, for ${localEnv:NAME}.
	Getenv func(name string) (string, bool)
	// Verbatim keeps the variables of this host as they are written: the plan can be shown, and has no values of theirs.
	Verbatim bool
	// Unbuilt leaves the Dockerfile and the files of its build unread, and out of the plan: initializeCommand, which comes
	// before a build, may make them.
	Unbuilt bool
	// Fetched returns the features that were fetched for a request, or nil if they were not. Nil is that none were.
	Fetched func(*FeatureRequest) (*FeatureSet, error)
}

// Compose reads a configuration and returns what it asks for. The error is about a file that cannot be read as one,
// with its line and column, or that of ctx; what may not be done is among the refusals of the plan.
func Compose(ctx context.Context, in Input) (*Plan, error) {
	c, err := compose(ctx, in)
	if err != nil {
		return nil, err
	}
	return c.plan, nil
}

func compose(ctx context.Context, in Input) (*composer, error) {
	data, err := regular.ReadIn(in.Root, in.File, maxFile)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			err = errors.New("there is no such file")
		}
		return nil, fileError(in.File, err)
	}
	doc, err := parse(data)
	if err != nil {
		return nil, fileError(in.File, err)
	}
	c := &composer{Input: in, ctx: ctx, doc: doc, plan: newPlan(in.File)}
	if err := c.substitute(); err != nil {
		return nil, fileError(in.File, err)
	}
	c.compose()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	c.sum(data)
	return c, nil
}

// fileError adds the file and a hint to an error about its content.
func fileError(file string, err error) error {
	with := fmt.Errorf("read %s: %w", file, err)
	if hint.Of(err) != "" {
		return with
	}
	return hint.New(with, "correct the file, or start without it: --devcontainer=off")
}
