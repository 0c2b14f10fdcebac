package launch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/ALRubinger/aileron/internal/session"
	"github.com/ALRubinger/aileron/internal/trust"
	"github.com/ALRubinger/aileron/sandbox"
	"github.com/ALRubinger/aileron/sandbox/devcontainer"
	"github.com/ALRubinger/aileron/shims"
	"github.com/ALRubinger/aileron/spec"
)

// commandImage is an image in which names for commands are looked up.
type commandImage interface {
	fs.ReadLinkFS
	Getenv(name string) string
}

// setOf returns what the commands of a session's sandbox are made of.
func setOf(s session.Surface) shims.Set {
	set := shims.Set{Connectors: s.Connectors, Unbound: s.Unbound}
	for _, a := range s.Actions {
		set.Actions = append(set.Actions,
			shims.Action{Name: a.Name, Version: a.Version, Description: a.Description, Inputs: a.Inputs})
	}
	return set
}

// described is how a sandbox learns of its connectors and actions.
type described struct {
	surface   session.Surface
	set       shims.Set
	commands  []shims.Command
	manifests sandbox.Tree
}

// beginDescription begins to render what the connectors and actions of the session are in the sandbox, which thousands
// of operations make take a while, and returns what waits for it. The engine is waited for meanwhile.
func (b *sandboxed) beginDescription(surface session.Surface, set shims.Set) func() described {
	done := make(chan described, 1)
	go func() { done <- described{surface, set, set.Commands(), manifestsOf(surface)} }()
	return sync.OnceValue(func() described { return <-done })
}

const (
	// manifestsDir is where a sandbox reads what it may use, as it is installed.
	manifestsDir = "/opt/aileron/manifests"
	// scripts is the directory in it of what the commands do. It is none of the manifests.
	scripts    = ".commands"
	scriptsDir = manifestsDir + "/" + scripts
)

// manifestsOf returns the files of a session's connectors and actions: of those bytes that were verified, and are in
// force.
func manifestsOf(s session.Surface) sandbox.Tree {
	tree := sandbox.Tree{Target: manifestsDir}
	for _, dir := range []string{"actions", "connectors"} {
		tree.Files = append(tree.Files, sandbox.File{Path: dir, Mode: fs.ModeDir | 0o755})
	}
	add := func(name string, data []byte) {
		tree.Files = append(tree.Files, sandbox.File{Path: name, Mode: 0o644, Data: data})
	}
	for _, c := range s.Connectors {
		if c.Hash == "" { // made by this session, of --allow
			continue
		}
		manifest, specification := c.Documents()
		dir := path.Join("connectors", strings.Replace(string(c.FQN), "://", "/", 1)+"@"+c.Version)
		add(path.Join(dir, spec.ManifestFile), manifest)
		add(path.Join(dir, spec.SpecFile), specification)
	}
	for _, a := range s.Actions {
		add(path.Join("actions", a.Name+".md"), a.Raw)
	}
	return tree
}

// otherPrefix begins the name of a command where the image has a program of its own name. No tool has such a name.
const otherPrefix = "aileron-"

// otherNames returns the names of commands that the image has as programs of its own, which remain what they are: the
// command of the connector has another name.
func otherNames(image commandImage, set shims.Set, infof func(string, ...any)) (map[string]string, error) {
	dirs, err := commandDirs(image)
	if err != nil {
		return nil, err
	}
	names := map[string]string{}
	for _, name := range set.ToolNames() {
		place, err := programIn(image, dirs, name)
		if err != nil {
			return nil, fmt.Errorf("look for the program %s in the image: %w", name, err)
		}
		if place != "" {
			names[name] = otherPrefix + name
			infof("aileron: the image has a program %s: the connector's command is %s", place, names[name])
		}
	}
	return names, nil
}

// commandDirs returns the directories of an image's PATH, and that of our commands, each once.
func commandDirs(image commandImage) ([]string, error) {
	list := cmp.Or(image.Getenv("PATH"), "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
	var dirs []string
	for _, dir := range append(strings.Split(list, ":"), shims.Dir) {
		dir = strings.TrimPrefix(path.Clean(dir), "/")
		info, err := image.Lstat(dir)
		if !path.IsAbs("/"+dir) || dir == "." || dir == "" {
			continue
		}
		if err == nil && info.Mode()&fs.ModeSymlink != 0 { // such as /bin, which is /usr/bin
			if to, err := image.ReadLink(dir); err == nil {
				if !path.IsAbs(to) {
					to = path.Join("/"+path.Dir(dir), to)
				}
				dir = strings.TrimPrefix(path.Clean(to), "/")
			}
		}
		switch {
		case errors.Is(err, fs.ErrNotExist), slices.Contains(dirs, dir):
		case err != nil:
			return nil, fmt.Errorf("look for programs in /%s of the image: %w", dir, err)
		default:
			dirs = append(dirs, dir)
		}
	}
	return dirs, nil
}

// programIn returns the path of a program of an image, or "" if it has none.
func programIn(image fs.ReadLinkFS, dirs []string, name string) (string, error) {
	for _, dir := range dirs {
		_, err := image.Lstat(path.Join(dir, name))
		if err == nil {
			return "/" + path.Join(dir, name), nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
	}
	return "", nil
}

const (
	toolsFile = "/etc/aileron/tools.txt"
	notesFile = "/etc/aileron/notes.md"
)

// descriptions returns the files that tell an agent where it runs and what it may do, with the commands for that.
func (b *sandboxed) descriptions(image commandImage) ([]trust.File, error) {
	d := b.described()
	set, commands := d.set, d.commands
	var err error
	if set.Names, err = otherNames(image, set, b.Infof); err != nil {
		return nil, err
	}
	if len(set.Names) > 0 {
		commands = set.Commands()
	}
	files, err := notesIn(image, b.NotesAt)
	if err != nil {
		return nil, err
	}
	files = append(files, trust.File{Path: toolsFile, Data: set.ToolsFile()})
	files = append(files, profileIn(image)...)
	b.live = live{names: set.Names, known: map[string]bool{}, told: map[string]bool{}}
	for _, name := range set.ToolNames() {
		b.live.known[name] = true
	}
	b.tree = d.manifests
	b.tree.Files = slices.Clip(b.tree.Files)
	for _, c := range commands {
		// The scripts are megabytes where much is installed: they are mounted, and not copied by the engine.
		files = append(files, trust.File{Path: path.Join(shims.Dir, c.Name), Mode: 0o755, Data: c.Starter(scriptsDir)})
		b.tree.Files = append(b.tree.Files, scriptFile(c.Name, c.Script))
		b.live.starters = append(b.live.starters, c.Name)
	}
	b.live.had = slices.Clone(b.live.starters)
	return files, nil
}

// notesIn returns the notes on a sandbox of an image. They are also at the place where the agent itself looks for them,
// unless that is "" or the image has something of its own there: it is an organisation's, and precedes ours.
func notesIn(image fs.ReadLinkFS, at string) ([]trust.File, error) {
	files := []trust.File{{Path: notesFile, Data: shims.Notes()}}
	if at == "" {
		return files, nil
	}
	_, err := image.Lstat(strings.TrimPrefix(at, "/"))
	if errors.Is(err, fs.ErrNotExist) {
		return append(files, trust.File{Path: at, Data: shims.Notes()}), nil
	}
	return files, err
}

// reportMetadata names what the image of a devcontainer asks for, and does not get.
func (b *sandboxed) reportMetadata(ctx context.Context) error {
	if b.Composed == nil {
		return nil
	}
	label, err := b.prepared.ImageLabel(ctx, devcontainer.MetadataLabel)
	if asked := devcontainer.AskedFor(label); asked != "" {
		b.Infof("aileron: the image asks for %s in its label %s, of which nothing is in force", asked,
			devcontainer.MetadataLabel)
		b.Infof("  hint: what you want of it, write into devcontainer.json")
	}
	return err
}
