package launch

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/sandbox"
	"github.com/ALRubinger/aileron/sandbox/engine"
	"github.com/ALRubinger/aileron/sandbox/native"
)

// nativeNotice is what is weaker than a container, for people.
const nativeNotice = "aileron: native: sealed without an engine, and weaker than a container in this: the command " +
	"runs this host's programs, reads this host's /usr, and to the kernel is the same user as you"

// useHostPrograms makes the user's own programs that the command needs part of a native sandbox, and refuses what takes
// an image.
func (b *sandboxed) useHostPrograms() error {
	if b.Engine == "auto" && b.canBeNative() && !engine.Installed() {
		b.Engine, b.withoutEngine = sandbox.Native, true
		b.Infof("aileron: neither Podman nor Docker is installed: the sandbox is native (--sandbox=native)")
	}
	if b.Engine != sandbox.Native {
		return nil
	}
	if b.Composed != nil {
		return hint.New(errors.New("run a native sandbox for this project: its devcontainer takes an image"),
			"--devcontainer=off, or an engine: --sandbox=podman or --sandbox=docker")
	}
	ofEngine := func(m native.Mount) engine.Mount {
		return engine.Mount{Source: m.Source, Target: m.Target, ReadOnly: m.ReadOnly}
	}
	check := func(m native.Mount) error { return checkMount(ofEngine(m), b.Home) }
	written, err := b.written()
	if err != nil {
		return err
	}
	for _, name := range append(slices.Clone(b.Needs), b.Command[0]) {
		for _, program := range native.ProgramMounts(name, written, check) {
			m := ofEngine(program)
			if err := check(program); err != nil {
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

// canBeNative reports whether the sandbox takes nothing of its image that this host may have not.
func (b *sandboxed) canBeNative() bool {
	return b.Image.Tier() == "base" && !b.Image.Added() && b.Composed == nil
}

// withoutEngineHint adds to the error of a sandbox that is native because there is no engine that one would do.
func (b *sandboxed) withoutEngineHint(err error) error {
	if !b.withoutEngine || !failedPreflight(err) {
		return err
	}
	const install = "install Podman: apt-get install podman"
	if other := hint.Of(err); other != "" {
		return hint.New(err, "%s; or %s", other, install)
	}
	return hint.New(err, "%s", install)
}

// offerNative adds to the error of an engine that does not respond that a sandbox can do without one, where that is so.
func (b *sandboxed) offerNative(err error) error {
	if !errors.As(err, new(*engine.FindError)) || !b.canBeNative() || sandbox.TryNative() != nil {
		return err
	}
	return hint.New(err, "this host can do without an engine, for a command that is installed on it: --sandbox=native")
}

// written returns whether this sandbox, or that of another session, may write to a path without links, by any name.
func (b *sandboxed) written() (func(path string) bool, error) {
	dirs := []string{b.dir}
	for _, m := range b.mounts {
		if !m.ReadOnly {
			dirs = append(dirs, m.Source)
		}
	}
	others, err := otherShares(b.Home, "")
	if err != nil {
		return nil, err
	}
	for _, other := range others {
		dirs = append(dirs, other.Writable...)
	}
	var infos []os.FileInfo
	for _, dir := range dirs {
		if info, err := os.Stat(dir); err == nil {
			infos = append(infos, info)
		}
	}
	return func(path string) bool {
		if slices.ContainsFunc(dirs, func(dir string) bool { return sandbox.Within(path, dir) }) {
			return true
		}
		info, err := os.Lstat(path)
		return err == nil && slices.ContainsFunc(infos, func(o os.FileInfo) bool { return os.SameFile(info, o) })
	}, nil
}
