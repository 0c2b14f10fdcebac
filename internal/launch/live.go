package launch

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/internal/session"
	"github.com/ALRubinger/aileron/internal/trust"
	"github.com/ALRubinger/aileron/sandbox"
	"github.com/ALRubinger/aileron/shims"
	"github.com/ALRubinger/aileron/spec"
)

// While a sandbox runs, its commands and its list of tools follow the grants of its session. It reads them in two
// directories of this host that are mounted read-only, so that nothing of the sandbox decides what is written:
//
//	/etc/aileron            tools.txt and bin, the programs of commands that came later, which is on PATH
//	/opt/aileron/manifests  the scripts of all commands, and the files of connectors and actions
//
// The programs in /usr/local/bin are those of the start, and lie in the sandbox itself. The script of one whose
// connector was removed says so.

const (
	aileronDir = "/etc/aileron"
	// laterDir has the programs of commands that came after the start.
	laterDir = aileronDir + "/bin"
	// profileFile adds laterDir to the PATH of login shells, which do not take that of their environment.
	profileFile = "/etc/profile.d/aileron.sh"
	profile     = "# Put here by aileron: the commands of connectors that come later.\n" +
		"case \":$PATH:\" in *:" + laterDir + ":*) ;; *) PATH=$PATH:" + laterDir + " ;; esac\n"
)

// live is what a running sandbox has of its session's grants.
type live struct {
	etc, manifests *sandbox.LiveTree // nil: it cannot be changed
	etcFiles       []sandbox.File    // of etc, but for tools.txt and the programs
	names          map[string]string // of commands: see [shims.Set.Names]
	known          map[string]bool   // tools and actions whose names were looked up
	starters       []string          // commands in /usr/local/bin
	had            []string          // commands that the sandbox has, or had
	told           map[string]bool   // connectors whose commands were left out
}

// inAileronDir takes the files below /etc/aileron out of those of a sandbox, for a tree. An image whose links lead
// elsewhere has no such files, and the sandbox keeps the list of its start.
func inAileronDir(files []sandbox.File) (tree, rest []sandbox.File) {
	tree, rest = belowAileronDir(files)
	if !slices.ContainsFunc(tree, func(f sandbox.File) bool { return f.Path == toolsFile }) {
		return nil, files
	}
	for i := range tree {
		tree[i].Path = strings.TrimPrefix(tree[i].Path, aileronDir+"/")
	}
	isDir := func(f sandbox.File) bool { return f.Path == aileronDir }
	return append(tree, sandbox.File{Path: path.Base(laterDir), Mode: fs.ModeDir | 0o755}), slices.DeleteFunc(rest, isDir)
}

// belowAileronDir returns the files below /etc/aileron, and the others.
func belowAileronDir(files []sandbox.File) (below, rest []sandbox.File) {
	for _, f := range files {
		if strings.HasPrefix(f.Path, aileronDir+"/") {
			below = append(below, f)
		} else {
			rest = append(rest, f)
		}
	}
	return below, rest
}

// noteTrees notes where the sandbox reads what may change.
func (b *sandboxed) noteTrees(trees []*sandbox.LiveTree) {
	b.live.manifests = trees[0]
	if len(trees) > 1 {
		b.live.etc = trees[1]
	}
	b.session.Follow(context.Background(), b.described().surface, b.redescribe)
}

// redescribe makes the commands of the running sandbox, and its list of tools, those of a surface.
func (b *sandboxed) redescribe(ctx context.Context, now session.Surface) error {
	set := b.withoutConflicts(setOf(now))
	if err := b.nameLater(ctx, set); err != nil {
		return err
	}
	set.Names = b.live.names
	commands := set.Commands()
	tree, programs := manifestsOf(now).Files, slices.Clone(b.live.etcFiles)
	is := map[string]bool{}
	for _, c := range commands {
		is[c.Name] = true
		tree = append(tree, scriptFile(c.Name, c.Script))
	}
	b.live.add(commands, is)
	for _, name := range b.live.had {
		if !is[name] {
			tree = append(tree, scriptFile(name, shims.Gone(name)))
		}
		if !slices.Contains(b.live.starters, name) {
			programs = append(programs, sandbox.File{Path: path.Join(path.Base(laterDir), name), Mode: 0o755,
				Data: shims.Command{Name: name}.Starter(scriptsDir)})
		}
	}
	err := b.live.manifests.Replace(tree)
	if err == nil && b.live.etc != nil {
		programs = append(programs, sandbox.File{Path: path.Base(toolsFile), Mode: 0o644, Data: set.ToolsFile()})
		err = b.live.etc.Replace(programs)
	}
	if errors.Is(err, sandbox.ErrNotLive) {
		return nil // it has ended
	}
	return err
}

// maxGone bounds the later commands of a sandbox that only say that they are gone.
const maxGone = 256

// add notes commands that the sandbox has from now on, and forgets the first of many that are gone.
func (l *live) add(commands []shims.Command, is map[string]bool) {
	for _, c := range commands {
		if !slices.Contains(l.had, c.Name) {
			l.had = append(l.had, c.Name)
		}
	}
	gone := func(name string) bool { return !is[name] && !slices.Contains(l.starters, name) }
	for len(l.had) > len(l.starters)+len(commands)+maxGone {
		i := slices.IndexFunc(l.had, gone)
		if i < 0 {
			return
		}
		l.had = slices.Delete(l.had, i, i+1)
	}
}

// scriptFile is the script of a command among the manifests.
func scriptFile(name string, script []byte) sandbox.File {
	return sandbox.File{Path: path.Join(scripts, name), Mode: 0o644, Data: script}
}

// withoutConflicts returns a set without those connectors and actions whose commands others have, those of the start
// first. The owner is told of each once; what it grants is granted.
func (b *sandboxed) withoutConflicts(set shims.Set) shims.Set {
	if set.Conflict(b.Command[0]) == nil {
		return set
	}
	later := func(names ...string) int {
		for _, name := range names {
			if !b.live.known[name] {
				return 1
			}
		}
		return 0
	}
	ofConnector := func(c *spec.Connector) int {
		var names []string
		for _, t := range c.Tools {
			names = append(names, t.Name)
		}
		return later(names...)
	}
	connectors, actions := slices.Clone(set.Connectors), slices.Clone(set.Actions)
	slices.SortStableFunc(connectors, func(a, b *spec.Connector) int { return ofConnector(a) - ofConnector(b) })
	slices.SortStableFunc(actions, func(a, b shims.Action) int { return later(a.Name) - later(b.Name) })
	out := shims.Set{Unbound: set.Unbound}
	for _, c := range connectors {
		with := out
		with.Connectors = append(slices.Clone(out.Connectors), c)
		if err := with.Conflict(b.Command[0]); err != nil {
			b.tellLeftOut(string(c.FQN)+"@"+c.Version, err)
			continue
		}
		out = with
	}
	for _, a := range actions {
		with := out
		with.Actions = append(slices.Clone(out.Actions), a)
		if err := with.Conflict(b.Command[0]); err != nil {
			b.tellLeftOut(a.Name, err)
			continue
		}
		out = with
	}
	return out
}

func (b *sandboxed) tellLeftOut(name string, err error) {
	if !b.live.told[name] {
		b.live.told[name] = true
		b.session.TellOwner("%s has no command in the running sandbox of %s: %v; %s", name, b.session.ID(), err, hint.Of(err))
	}
}

// nameLater looks up the names of commands that are new. Where the image cannot be looked into any more, they get one
// that no program has.
func (b *sandboxed) nameLater(ctx context.Context, set shims.Set) error {
	var later shims.Set
	for _, name := range set.ToolNames() {
		if !b.live.known[name] {
			later.Actions = append(later.Actions, shims.Action{Name: name})
		}
	}
	if len(later.Actions) == 0 {
		return nil
	}
	names, err := b.lookUpNames(ctx, later)
	if ctx.Err() != nil {
		return fmt.Errorf("look for programs in the image: %w", ctx.Err())
	}
	for _, a := range later.Actions {
		b.live.known[a.Name] = true
		switch other := names[a.Name]; {
		case err != nil:
			b.live.names[a.Name] = otherPrefix + a.Name
		case other != "":
			b.live.names[a.Name] = other
		}
	}
	return nil
}

// lookUpNames is otherNames for the image of the running sandbox, where nothing is printed over the command.
func (b *sandboxed) lookUpNames(ctx context.Context, set shims.Set) (map[string]string, error) {
	image, err := b.prepared.OpenImage(ctx)
	if err != nil {
		return nil, err
	}
	defer image.Close()
	return otherNames(image, set, func(string, ...any) {})
}

// profileIn returns the file by which login shells find later commands, where the image has others of the kind.
func profileIn(image fs.ReadLinkFS) []trust.File {
	info, err := image.Lstat(strings.TrimPrefix(path.Dir(profileFile), "/"))
	if err != nil || !info.IsDir() {
		return nil
	}
	return []trust.File{{Path: profileFile, Data: []byte(profile)}}
}
