package launch

import (
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/ALRubinger/aileron/internal/trust"
	"github.com/ALRubinger/aileron/sandbox"
	"github.com/ALRubinger/aileron/shims"
)

const (
	toolsFile = "/etc/aileron/tools.txt"
	notesFile = "/etc/aileron/notes.md"
)

// descriptions returns the files that tell an agent where it runs and what it may do, with the commands for that.
func (b *sandboxed) descriptions(image commandImage) ([]trust.File, error) {
	d := b.described()
	set, commands := d.set, d.commands
	var err error
	if set.Names, err = b.otherNames(image, set); err != nil {
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
	b.tree = d.manifests
	b.tree.Files = slices.Clip(b.tree.Files)
	for _, c := range commands {
		// The scripts are megabytes where much is installed: they are mounted, and not copied by the engine.
		files = append(files, trust.File{Path: path.Join(shims.Dir, c.Name), Mode: 0o755, Data: c.Starter(scriptsDir)})
		b.tree.Files = append(b.tree.Files, sandbox.File{Path: path.Join(scripts, c.Name), Mode: 0o644, Data: c.Script})
	}
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
