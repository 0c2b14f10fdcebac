package launch

import (
	"errors"
	"fmt"
	"slices"

	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/sandbox"
	"github.com/ALRubinger/aileron/sandbox/engine"
)

// nativeNotice is what is weaker than a container, for people.
const nativeNotice = "aileron: native: sealed without an engine. It is weaker than a container in this: the command runs " +
	"this host's own programs, reads this host's /usr, and is you to the kernel, in whatever it can reach."

// useHostPrograms gives a native sandbox the programs of its command that are the person's own, and refuses what takes
// an image.
func (b *sandboxed) useHostPrograms() error {
	if b.Engine != sandbox.Native {
		return nil
	}
	if b.Composed != nil {
		return hint.New(errors.New("run a native sandbox for this project: its devcontainer takes an image"),
			"--devcontainer=off, or an engine: --sandbox=podman or --sandbox=docker")
	}
	check := func(m engine.Mount) error { return checkMount(m, b.Home) }
	for _, name := range append(slices.Clone(b.Needs), b.Command[0]) {
		for _, m := range sandbox.ProgramMounts(name, check) {
			if sandbox.Within(m.Source, b.dir) {
				continue // the sandbox has it
			}
			if err := check(m); err != nil {
				return fmt.Errorf("give the sandbox the program %s: %w", name, err)
			}
			if !slices.Contains(b.mounts, m) {
				b.mounts = append(b.mounts, m)
				b.Infof("aileron: native: %s is in the sandbox, read-only, for %s", m.Source, name)
			}
		}
	}
	return nil
}
