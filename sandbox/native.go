package sandbox

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/ALRubinger/aileron/internal/imagefs"
	"github.com/ALRubinger/aileron/sandbox/engine"
	"github.com/ALRubinger/aileron/sandbox/internal/livetree"
	"github.com/ALRubinger/aileron/sandbox/internal/users"
	"github.com/ALRubinger/aileron/sandbox/native"
)

// Native is the kind of a sandbox that takes no engine: package native makes it of this host's own programs.
const Native = "native"

// hostImage is what a native sandbox has in the place of an image.
func hostImage() Image { return Image{Ref: "host", tier: tierHost} }

// prepareNative is [Prepare] without an engine.
func prepareNative(s Spec, readEtc func() ([]byte, error)) (*Prepared, error) {
	if s.Proxy == "off" {
		return nil, &native.Refusal{Reason: "a sandbox without a gateway would have this host's network",
			Remedy: "leave out --sandbox-proxy=off, or use an engine: --sandbox=podman or --sandbox=docker"}
	}
	etc, err := readEtc()
	if err != nil {
		return nil, err
	}
	p := &Prepared{Image: hostImage(), Sealed: true, spec: s, etc: etc}
	if s.Limit != nil {
		p.Limits = s.Limit(engine.Limits{Memory: native.HostMemory(), CPUs: float64(runtime.NumCPU())})
	}
	engine.SweepDirs()
	return p, nil
}

// openHost returns the files of this host that a native sandbox has.
func (p *Prepared) openHost() (*ImageFS, error) {
	etc, err := imagefs.ReadTree(bytes.NewReader(p.etc))
	if err != nil {
		return nil, fmt.Errorf("look into this host's files: %w", err)
	}
	shown := func(name string) error {
		if at := "/" + name; !native.Shows(at) {
			return &fs.PathError{Op: "lstat", Path: at, Err: fs.ErrNotExist}
		}
		return nil
	}
	var places []string
	for _, m := range p.spec.Mounts {
		places = append(places, m.Target)
	}
	env := []string{"PATH=" + native.HostPath(places)}
	return &ImageFS{env: env, close: func() {}, FS: imagefs.New(etc, imagefs.Source{
		Lstat: func(name string) (imagefs.Node, error) {
			if err := shown(name); err != nil {
				return imagefs.Node{}, err
			}
			info, err := os.Lstat("/" + name)
			if err != nil {
				return imagefs.Node{}, err
			}
			node := imagefs.Node{Mode: info.Mode(), Size: info.Size()}
			if node.Mode&fs.ModeSymlink != 0 {
				node.Link, err = os.Readlink("/" + name)
			}
			return node, err
		},
		ReadFile: func(name string) ([]byte, error) {
			if err := shown(name); err != nil {
				return nil, err
			}
			info, err := os.Stat("/" + name)
			if err == nil && (!info.Mode().IsRegular() || info.Size() > imagefs.MaxFile) {
				err = errors.New("it is not a file that is read")
			}
			if err != nil {
				return nil, err
			}
			return os.ReadFile("/" + name)
		},
	})}, nil
}

// nativeOwner returns the user of a native sandbox: the person, or, for root, the owner of the project. Its group is
// the project's if the user has that on this host, or else one of the user's: nosuid is the sandbox's mount alone, and
// a program with its set-group-ID bit stays on this host.
func nativeOwner(dir string) (native.Owner, error) {
	owner := native.Owner{UID: os.Geteuid(), GID: os.Getegid()}
	if owner.UID != 0 {
		return owner, nil
	}
	info, err := os.Stat(dir)
	if err != nil {
		return owner, fmt.Errorf("look at the project: %w", err)
	}
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		uid, gid := int(st.Uid), int(st.Gid)
		id := users.OnHost(uid).Confine(users.ID{UID: uid, GID: gid}, gid)
		owner.UID, owner.GID = id.UID, id.GID
	}
	return owner, nil
}

// runNative is [Prepared.Run] without an engine.
func (p *Prepared) runNative(ctx context.Context, b box) (code int, err error) {
	if b.mounts, err = engine.MakeDir(); err != nil {
		return 1, fmt.Errorf("make a directory for the sandbox's files: %w", err)
	}
	defer os.RemoveAll(b.mounts)
	if b.mounts, err = filepath.EvalSymlinks(b.mounts); err != nil {
		return 1, fmt.Errorf("make a directory for the sandbox's files: %w", err)
	}
	if err := os.Chmod(b.mounts, 0o711); err != nil { //nolint:gosec // entered by its user
		return 1, err
	}
	if err := forbiddenMount(b, engine.KnownSockets()); err != nil {
		return 1, err
	}
	if b.Protect != nil {
		if b.covers, err = b.Protect(filepath.Join(b.mounts, "protected")); err != nil {
			return 1, err
		}
		if err := checkHeld(b.covers); err != nil {
			return 1, err
		}
	}
	host, err := p.openHost()
	if err != nil {
		return 1, err
	}
	defer host.Close()
	if err := b.addFiles(func() (*ImageFS, error) { return host, nil }); err != nil {
		return 1, err
	}
	if b.mounted, err = mountTrees(b); err != nil {
		return 1, err
	}
	var trees []*LiveTree
	for i, m := range b.mounted {
		trees = append(trees, livetree.New(m.Source, b.trees[i].Files))
	}
	defer func() {
		for _, t := range trees {
			t.End()
		}
	}()
	config, err := p.nativeConfig(b, host)
	if bad := (*CommandError)(nil); errors.As(err, &bad) {
		return bad.Code, err
	}
	if err != nil {
		return 1, err
	}
	if b.Live != nil && len(trees) > 0 {
		b.Live(trees)
	}
	return runNativeBox(ctx, b, config, &p.beside)
}

// nativeConfig is what package native is asked for.
func (p *Prepared) nativeConfig(b box, host *ImageFS) (native.Config, error) {
	owner, err := nativeOwner(b.Dir)
	if err != nil {
		return native.Config{}, err
	}
	c := native.Config{
		Session: b.Session, Binary: b.Binary, Sockets: b.Sockets, Seccomp: seccompProfile, Owner: owner, Etc: p.etc,
		Command: b.argv(), Dir: b.places()[0], TTY: b.TTY, Processes: MaxProcesses,
		Memory: b.Limits.Memory, CPUs: b.Limits.CPUs,
	}
	if c.Env, err = b.nativeEnv(host); err != nil {
		return c, err
	}
	if err := b.nativeMounts(&c, owner); err != nil {
		return c, err
	}
	if c.Masks, err = masks(b); err != nil {
		return c, err
	}
	for _, f := range append(nativeNames(owner), b.Files...) {
		c.Files = append(c.Files, native.File(f))
	}
	places := append(b.places(), Workspace)
	for _, m := range c.Mounts {
		places = append(places, m.Target)
	}
	for _, name := range append(slices.Clone(b.Needs), b.Command[0], c.Command[0]) {
		c.Program, err = native.FindProgram(name, searchPath(c.Env), places)
		if bad := (*native.CommandError)(nil); errors.As(err, &bad) {
			return c, nativeCommandError(bad)
		}
	}
	return c, nil
}

// nativeCommandError is the error of a command that this host has not.
func nativeCommandError(bad *native.CommandError) error {
	return &CommandError{Command: bad.Command, Code: bad.Code, Engine: bad.Reason}
}

// nativeEnv returns the environment of the command.
func (b box) nativeEnv(host *ImageFS) ([]string, error) {
	env, err := mergeEnv(b.Env, host.env, b.AppendTo)
	if err != nil {
		return nil, err
	}
	env = slices.Concat(host.env, []string{"HOME=" + native.Home}, unset(b.Defaults, host.env), env)
	if b.TTY {
		env = append(env, terminalVariables(host.describesTerminal)...)
	}
	if len(b.Path) > 0 {
		env = append(env, "PATH="+strings.Join(append([]string{searchPath(env)}, b.Path...), ":"))
	}
	return lastOfEach(env), nil
}

// lastOfEach returns an environment in which each variable is once: the last one that was set.
func lastOfEach(env []string) []string {
	var out []string
	for i, pair := range env {
		name, _, _ := strings.Cut(pair, "=")
		again := func(later string) bool { return strings.HasPrefix(later, name+"=") }
		if !slices.ContainsFunc(env[i+1:], again) {
			out = append(out, pair)
		}
	}
	return out
}

// nativeMounts adds what the sandbox has of this host besides the system.
func (b box) nativeMounts(c *native.Config, owner native.Owner) error {
	add := func(m engine.Mount) {
		c.Mounts = append(c.Mounts, native.Mount{Source: m.Source, Target: m.Target, ReadOnly: m.ReadOnly})
	}
	for _, place := range b.places() {
		add(engine.Mount{Source: b.Dir, Target: place})
	}
	for _, m := range b.Spec.Mounts {
		add(m)
	}
	for _, cover := range b.covers {
		targets := []string{cover.Path}
		if !path.IsAbs(cover.Path) {
			targets = b.inPlaces(cover.Path)
		}
		for _, at := range targets {
			add(engine.Mount{Source: cover.Source, Target: at, ReadOnly: !cover.Held})
		}
	}
	for _, m := range b.mounted {
		add(m)
	}
	dir, err := b.State.nativeDir(owner)
	if err == nil && dir != "" {
		add(engine.Mount{Source: dir, Target: StateDir})
	}
	return err
}

// nativeDir returns the directory of a state, which it makes; "" is that of none.
func (s State) nativeDir(owner native.Owner) (string, error) {
	if s.Program == "" {
		return "", nil
	}
	name := filepath.Join(s.ofHome(), sum(s.Project)[:32], fmt.Sprint(s.Program, "-", owner.UID))
	dir, err := native.StateDir(name, owner)
	if err != nil {
		return "", fmt.Errorf("keep the state of %s: %w", s.Program, err)
	}
	return dir, nil
}

// ofHome is the name of the directory with the states of a home, in one directory a project. It is a digest, as the
// labels of a volume: a sandbox can read where its mounts come from.
func (s State) ofHome() string { return sum(strconv.Itoa(os.Getuid()), s.Home)[:32] }

// RemoveNativeStates removes the states of native sandboxes that have what is set of s, and returns how many it
// removed. One that is in use is an error, and is left.
func RemoveNativeStates(s State, inUse func(dir string) bool) (removed int, err error) {
	project := "*"
	if s.Project != "" {
		project = sum(s.Project)[:32]
	}
	return native.RemoveStates(path.Join(s.ofHome(), project, cmp.Or(s.Program, "*")+"-*"), inUse)
}

// NativeState returns the directory of this host to which a native sandbox with a [State] may write, by its path
// without links. It is "" for any other sandbox.
func (p *Prepared) NativeState() (string, error) {
	if !p.IsNative() || p.spec.State.Program == "" {
		return "", nil
	}
	owner, err := nativeOwner(p.spec.Dir)
	if err != nil {
		return "", err
	}
	return p.spec.State.nativeDir(owner)
}

// nativeNames are the files by which the programs of a native sandbox resolve names, of hosts and of users.
func nativeNames(owner native.Owner) []File {
	users, groups := "", ""
	if owner.UID != 0 {
		users = "root:x:0:0:root:/root:/bin/sh\n"
	}
	if owner.GID != 0 {
		groups = "root:x:0:\n"
	}
	name := "agent"
	if owner.UID == 0 {
		name = "root"
	}
	users += fmt.Sprintf("%s:x:%d:%d::%s:/bin/sh\n", name, owner.UID, owner.GID, native.Home)
	groups += fmt.Sprintf("%s:x:%d:\nnogroup:x:65534:\n", name, owner.GID)
	texts := nameTexts()
	texts["passwd"], texts["group"], texts["hostname"] = users, groups, native.Hostname+"\n"
	var files []File
	for name, text := range texts {
		files = append(files, File{Path: "/etc/" + name, Mode: 0o644, Data: []byte(text)})
	}
	return files
}

// TryNative makes a native sandbox of this program, in which nothing runs, and removes it. The error is why there can
// be none on this host.
func TryNative() error {
	binary, err := os.Executable()
	if err != nil {
		return err
	}
	if binary, err = filepath.EvalSymlinks(binary); err != nil {
		return err
	}
	return native.Try(binary, seccompProfile)
}

// SweepNative removes what a killed aileron has left of the native sandbox of a session. Its processes ended with it.
func SweepNative(session string) {
	native.Sweep(session)
	engine.SweepDirs()
}
