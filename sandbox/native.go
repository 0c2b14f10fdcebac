package sandbox

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/ALRubinger/aileron/internal/imagefs"
	"github.com/ALRubinger/aileron/sandbox/engine"
	"github.com/ALRubinger/aileron/sandbox/native"
)

// Native is the kind of a sandbox that takes no engine: package native makes it of this host's own programs.
const Native = "native"

// hostImage is what a native sandbox has in the place of an image.
func hostImage() Image { return Image{Ref: "host", tier: tierHost} }

// prepareNative is [Prepare] without an engine.
func prepareNative(s Spec) (*Prepared, error) {
	if s.Proxy == "off" {
		return nil, &native.Refusal{Reason: "a sandbox without a gateway would have this host's network",
			Remedy: "leave out --sandbox-proxy=off, or use an engine: --sandbox=podman or --sandbox=docker"}
	}
	etc, err := native.HostEtc()
	if err != nil {
		return nil, err
	}
	p := &Prepared{Image: hostImage(), Sealed: true, spec: s, etc: etc}
	if s.Limit != nil {
		p.Limits = s.Limit(engine.Limits{Memory: hostMemory(), CPUs: float64(runtime.NumCPU())})
	}
	engine.SweepDirs()
	return p, nil
}

// hostMemory is this host's memory in bytes; 0 is unknown.
func hostMemory() int64 {
	data, err := os.ReadFile("/proc/meminfo")
	var kib int64
	if err != nil {
		return 0
	}
	if _, err := fmt.Sscanf(string(data), "MemTotal: %d kB", &kib); err != nil {
		return 0
	}
	return kib << 10
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
	return &ImageFS{env: hostEnv(), close: func() {}, FS: imagefs.New(etc, imagefs.Source{
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

// hostEnv is the environment of a native sandbox in the place of an image's own: where this host's programs are.
func hostEnv() []string {
	var dirs []string
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		if filepath.IsAbs(dir) && native.Shows(filepath.Clean(dir)) && !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
	}
	for _, dir := range []string{"/usr/local/bin", "/usr/bin", "/bin"} { // the commands of connectors are in the first
		if !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
	}
	return []string{"PATH=" + strings.Join(dirs, ":")}
}

// nativeOwner returns the user of a native sandbox: the person, or, for root, the owner of the project.
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
		owner.UID, owner.GID = int(st.Uid), int(st.Gid)
	}
	return owner, nil
}

// runNative is [Prepared.Run] without an engine.
func (p *Prepared) runNative(ctx context.Context, b box) (code int, err error) {
	if b.mounts, err = engine.MakeDir(); err != nil {
		return 1, fmt.Errorf("make a directory for the sandbox's files: %w", err)
	}
	defer os.RemoveAll(b.mounts)
	if err := os.Chmod(b.mounts, 0o711); err != nil { //nolint:gosec // its names are random, and root's sandbox is another's
		return 1, err
	}
	if err := forbiddenMount(b, nil); err != nil {
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
		trees = append(trees, newLiveTree(m.Source, b.trees[i].Files))
	}
	defer func() {
		for _, t := range trees {
			t.end()
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
	return runNativeBox(ctx, b, config)
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
		if c.Program, err = nativeProgram(name, searchPath(c.Env), places); err != nil {
			return c, err
		}
	}
	return c, nil
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
	if b.State.Program == "" {
		return nil
	}
	dir, err := b.State.hostDir(owner)
	if err != nil {
		return fmt.Errorf("keep the state of %s: %w", b.State.Program, err)
	}
	add(engine.Mount{Source: dir, Target: StateDir})
	return nil
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
	users += fmt.Sprintf("%s:x:%d:%d::%s:/bin/sh\nnobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n", name,
		owner.UID, owner.GID, native.Home)
	groups += fmt.Sprintf("%s:x:%d:\nnogroup:x:65534:\n", name, owner.GID)
	files := []File{{"/etc/passwd", 0o644, []byte(users)}, {"/etc/group", 0o644, []byte(groups)},
		{"/etc/hostname", 0o644, []byte(native.Hostname + "\n")}}
	for name, text := range nameTexts() {
		files = append(files, File{"/etc/" + name, 0o644, []byte(text)})
	}
	return files
}

// nativeProgram returns where a native sandbox has a program. One in places cannot be known before.
func nativeProgram(name, dirs string, places []string) (string, error) {
	bad := &CommandError{Command: name, Image: "of this host", Code: 127, Engine: "no such file"}
	try := []string{name}
	if !strings.Contains(name, "/") {
		try = nil
		for _, dir := range filepath.SplitList(dirs) {
			try = append(try, path.Join("/", dir, name))
		}
	}
	for _, at := range try {
		if !path.IsAbs(at) || lying(places, path.Clean(at)) && strings.Contains(name, "/") {
			return at, nil
		}
		if !native.Shows(path.Clean(at)) && !lying(places, path.Clean(at)) {
			continue
		}
		switch info, err := os.Stat(at); {
		case err != nil:
		case info.IsDir() || info.Mode().Perm()&0o111 == 0:
			bad.Code, bad.Engine = 126, at+" is not executable"
		default:
			return at, nil
		}
	}
	return "", bad
}

// ProgramMounts returns what a native sandbox needs of this host to run a program that is on the PATH and not among the
// system's files: its directory, that to which its links lead, and those of its interpreter. They are read-only. check
// says which directory a sandbox may have at all; where it may not have a program's, it gets the file alone.
func ProgramMounts(name string, check func(engine.Mount) error) (mounts []engine.Mount) {
	const deep = 4 // an interpreter of an interpreter
	for range deep {
		if strings.Contains(name, "/") {
			return mounts
		}
		at, err := exec.LookPath(name)
		if err != nil {
			return mounts
		}
		real, err := filepath.EvalSymlinks(at)
		if err != nil {
			return mounts
		}
		for _, program := range []string{at, real} {
			if native.Shows(program) {
				continue
			}
			m := engine.Mount{Source: programDir(program), ReadOnly: true}
			m.Target = m.Source
			if src, err := filepath.EvalSymlinks(m.Source); err != nil || check(engine.Mount{Source: src, Target: m.Target}) != nil {
				m.Source, m.Target = real, program
			} else {
				m.Source = src
			}
			if !slices.Contains(mounts, m) {
				mounts = append(mounts, m)
			}
		}
		if name = interpreter(real); name == "" {
			return mounts
		}
	}
	return mounts
}

// programDir is the directory of a program: of one of a Node.js package, that of all packages beside it.
func programDir(at string) string {
	if before, _, ok := strings.Cut(at, "/node_modules/"); ok {
		return before + "/node_modules"
	}
	return filepath.Dir(at)
}

// interpreter returns the name of a script's interpreter that is looked for on the PATH, or "".
func interpreter(at string) string {
	f, err := os.Open(at)
	if err != nil {
		return ""
	}
	defer f.Close()
	head := make([]byte, 256)
	n, _ := f.Read(head)
	line, _, _ := strings.Cut(string(head[:n]), "\n")
	rest, ok := strings.CutPrefix(line, "#!")
	fields := strings.Fields(rest)
	if !ok || len(fields) < 2 || path.Base(fields[0]) != "env" {
		return ""
	}
	for _, word := range fields[1:] {
		if !strings.HasPrefix(word, "-") && !strings.Contains(word, "=") {
			return word
		}
	}
	return ""
}

// hostDir returns the directory of this host in which a state is, which it makes. It is not below the home of aileron:
// a sandbox can read where its mounts come from.
func (s State) hostDir(owner native.Owner) (string, error) {
	root, err := stateRoot()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(root, s.volume(strconv.Itoa(owner.UID)))
	if err := os.MkdirAll(root, 0o711); err != nil { //nolint:gosec // to be entered by the user of root's sandbox
		return "", err
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	if info, err := os.Lstat(dir); err != nil || !info.IsDir() {
		return "", cmp.Or(err, errors.New(dir+" is no directory"))
	}
	if os.Geteuid() == 0 {
		return dir, os.Lchown(dir, owner.UID, owner.GID)
	}
	return dir, nil
}

// SweepNative removes what a killed aileron has left of the native sandbox of a session. Its processes ended with it.
func SweepNative(session string) {
	native.Sweep(session)
	engine.SweepDirs()
}

// stateRoot is the directory of all states of native sandboxes.
func stateRoot() (string, error) {
	if dir := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "aileron-native"), nil
	}
	home, err := os.UserHomeDir()
	return filepath.Join(home, ".local", "state", "aileron-native"), err
}
