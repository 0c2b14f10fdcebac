package sandbox

import (
	"archive/tar"
	"cmp"
	"context"
	_ "embed" // the seccomp profile
	"fmt"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/ALRubinger/aileron/internal/procid"
	"github.com/ALRubinger/aileron/sandbox/engine"
	"github.com/ALRubinger/aileron/sandbox/internal/livetree"
	"github.com/ALRubinger/aileron/sandbox/internal/users"
)

// seccompProfile allows what programs need. Above all it allows no socket
// family but UNIX, INET, INET6 and NETLINK: AF_VSOCK is not confined by a
// network namespace, and engines' own profiles of some years let it through.
//
//go:embed seccomp.json
var seccompProfile string

// labels are those of a session's container.
func labels(session, role string) map[string]string {
	labels := map[string]string{labelSession: session, labelRole: role}
	if owner, err := procid.Of(os.Getpid()); err == nil {
		labels[labelOwner] = owner
	}
	return labels
}

// scratch is a container of an image that is never started, in which the
// image's files are read.
func scratch(img Image) engine.Config {
	return engine.Config{Name: scratchName(), Image: img.id, Command: []string{"/"}, User: "0:0", Network: "none",
		Labels: labels(noSession, "box")}
}

// createGateway makes the container that has the sandbox's only network. For a
// moment it has the capabilities that set it up.
func (e *Engine) createGateway(ctx context.Context, b box, seccomp string) (string, error) {
	sockets := engine.Mount{Source: b.Sockets, Target: "/run/aileron", ReadOnly: true}
	mounts := []engine.Mount{sockets, {Source: b.Binary, Target: "/aileron", ReadOnly: true}}
	var image string
	if b.carry != nil {
		image, sockets.Source, sockets.Volume = b.carry.image, "", b.name("sockets")
		mounts = []engine.Mount{sockets}
	} else {
		var err error
		if image, err = e.gatewayImage(ctx); err != nil {
			return "", err
		}
	}
	id, err := e.Create(ctx, engine.Config{
		Name: b.name("gw"), Labels: labels(b.Session, "gateway"), Image: image, Hostname: hostname,
		Command: []string{"/aileron", "gateway"}, User: "0:0", Dir: "/", Env: []string{"PATH=/"},
		Network: "none", ReadOnly: true, Seccomp: seccomp,
		CapAdd: []string{"NET_ADMIN", "SETUID", "SETGID", "SETPCAP"}, Mounts: mounts,
		Processes: 512, Memory: 256 << 20,
	})
	if err != nil {
		return "", fmt.Errorf("make the gateway: %w", err)
	}
	return id, nil
}

// createdBox is the command's container, which was made.
type createdBox struct {
	id      string
	user    string
	ownHome bool          // its user is to own the home
	home    []*tar.Header // to be put into it with its files, so that its user has a home
	trees   []*LiveTree
}

// createBox makes the container of the command. It has the gateway's network, or
// the engine's own where there is no gateway.
func (e *Engine) createBox(ctx context.Context, b box, gateway *engine.Container, seccomp string) (createdBox, error) {
	config, ownHome, err := e.boxConfig(ctx, b, seccomp)
	if err != nil {
		return createdBox{}, err
	}
	if b.Unsealed {
		config.HostAlias = true
	} else {
		names, err := nameFiles(b)
		if err != nil {
			return createdBox{}, err
		}
		config.Network, config.Hostname = "container:"+gateway.ID, hostname
		config.Mounts = slices.Concat(config.Mounts, names, b.mounted)
	}
	if b.ReadOnly {
		own, err := e.userFiles(ctx, b.Image, config.User)
		if err != nil {
			return createdBox{}, err
		}
		b.Files = append(own, b.Files...)
		files, err := mountFiles(b)
		if err != nil {
			return createdBox{}, err
		}
		config.Mounts = append(config.Mounts, files...)
	}
	if b.State.Program != "" {
		if err := e.mountState(ctx, b.State, &config); err != nil {
			return createdBox{}, err
		}
	}
	config.Name = b.name("box")
	id, err := e.Create(ctx, config)
	if err != nil && b.treesDir != "" && strings.Contains(err.Error(), b.treesDir) {
		// The engine does not see this host's memory: it may be in a container itself.
		trees, treesErr := b.mountOnDisk()
		if treesErr != nil {
			return createdBox{}, treesErr
		}
		b.mounted = trees
		for i, m := range config.Mounts {
			if at := slices.IndexFunc(trees, func(t engine.Mount) bool { return t.Target == m.Target }); at >= 0 {
				config.Mounts[i] = trees[at]
			}
		}
		id, err = e.Create(ctx, config)
	}
	made := createdBox{id: id, user: config.User, ownHome: ownHome}
	for i, m := range b.mounted {
		made.trees = append(made.trees, livetree.New(m.Source, b.trees[i].Files))
	}
	if err != nil {
		return made, fmt.Errorf("make the sandbox: %w", err)
	}
	return made, nil
}

// own makes the user of a container the owner of what is to be theirs.
func (e *Engine) own(ctx context.Context, b box, made *createdBox) error {
	if b.State.Program != "" {
		if err := e.chownState(ctx, b.State, made.id, made.user); err != nil {
			return err
		}
	}
	if err := e.ownVolumes(ctx, b, made); err != nil {
		return err
	}
	switch {
	case !made.ownHome:
		return nil
	case b.ReadOnly: // no file is put into it
		return e.chownHome(ctx, made.id, made.user)
	}
	made.home = []*tar.Header{homeOf(made.user)}
	return nil
}

// boxConfig is the command's container but for its network and its name, and
// whether its user has to be made the owner of the home.
func (e *Engine) boxConfig(ctx context.Context, b box, seccomp string) (_ engine.Config, ownHome bool, _ error) {
	img, theirs, err := e.pin(ctx, b.Image)
	if err != nil {
		return engine.Config{}, false, err
	}
	if volume := volumeInProject(theirs); volume != "" {
		return engine.Config{}, false, &ImageError{Image: img.Ref,
			Missing: []string{"room for the project: its VOLUME " + volume + " lies over it"}}
	}
	as, err := e.boxUser(ctx, b, theirs)
	if err != nil {
		return engine.Config{}, false, err
	}
	config := engine.Config{
		Labels: labels(b.Session, "box"), Image: img.id, Command: b.argv(), User: as.user, Groups: as.groups,
		Dir: cmp.Or(b.composed().Dir, b.places()[0]),
		TTY: b.TTY, Stdin: b.Stdin != nil,
		// Process 1 ignores signals that it has no handler for: an init makes
		// Ctrl-C work for every command. Without one a second Ctrl-C kills.
		Init:    true,
		Seccomp: seccomp, Limits: b.Limits, Processes: MaxProcesses,
	}
	for _, place := range b.places() {
		config.Mounts = append(config.Mounts, engine.Mount{Source: b.Dir, Target: place})
	}
	if b.ReadOnly {
		config.ReadOnly = true
		config.Tmpfs = map[string]string{"/tmp": "exec,mode=1777", "/var/tmp": "exec,mode=1777", "/run": "mode=0755"}
		as.ownHome = e.mountHome(&config, as.user, as.ownHome)
	}
	config.Mounts = append(config.Mounts, b.Spec.Mounts...)
	if err := e.mountComposed(ctx, b, &config); err != nil {
		return engine.Config{}, false, err
	}
	for _, c := range b.covers {
		targets := []string{c.Path}
		if !path.IsAbs(c.Path) {
			targets = b.inPlaces(c.Path)
		}
		for _, at := range targets {
			config.Mounts = append(config.Mounts, engine.Mount{Source: c.Source, Target: at, ReadOnly: !c.Held})
		}
	}
	if config.Masks, err = masks(b); err != nil {
		return engine.Config{}, false, err
	}
	env, err := mergeEnv(b.Env, theirs.Env, b.AppendTo)
	if err != nil {
		return engine.Config{}, false, &ImageError{Image: img.Ref, Missing: []string{err.Error()}}
	}
	if b.ReadOnly || as.ownHome || !as.hasHome {
		env = append([]string{"HOME=" + path.Dir(Workspace)}, env...)
	}
	if more := b.composed().Env; more != nil {
		late, err := more(theirs.Env)
		if err != nil {
			return engine.Config{}, false, err
		}
		env = append(late, env...)
	}
	env = append(unset(b.Defaults, theirs.Env), env...)
	if b.TTY {
		env = append(env, e.terminalVariables(ctx, img)...)
	}
	if len(b.Path) > 0 {
		own := searchPath(append(slices.Clone(theirs.Env), env...))
		env = slices.DeleteFunc(env, func(pair string) bool { return strings.HasPrefix(pair, "PATH=") })
		env = append(env, "PATH="+strings.Join(append([]string{own}, b.Path...), ":"))
	}
	config.Env = env
	return config, as.ownHome, nil
}

// maxOwnValue bounds what is kept of an image's own value of a variable. The
// kernel takes 128 KiB as one string, ours included.
const maxOwnValue = 32 << 10

// mergeEnv returns env with the image's own values before those of the variables
// in appendTo, so that of two settings of one thing ours is the last. The error
// is what the image lacks.
func mergeEnv(env, image, appendTo []string) ([]string, error) {
	env = slices.Clone(env)
	for i, pair := range env {
		name, ours, _ := strings.Cut(pair, "=")
		own := envValue(image, name)
		switch {
		case own == "" || !slices.Contains(appendTo, name):
		case len(own) > maxOwnValue:
			return nil, fmt.Errorf("a short %s: its own has %d bytes, and what a sandbox adds needs room behind at most %d",
				name, len(own), maxOwnValue)
		default:
			env[i] = name + "=" + own + " " + ours
		}
	}
	return env, nil
}

// envValue is the last value of a variable, or "".
func envValue(env []string, name string) (value string) {
	for _, pair := range env {
		if v, ok := strings.CutPrefix(pair, name+"="); ok {
			value = v
		}
	}
	return value
}

// unset are the variables of defaults that an environment does not have.
func unset(defaults, env []string) []string {
	return slices.DeleteFunc(slices.Clone(defaults), func(pair string) bool {
		name, _, _ := strings.Cut(pair, "=")
		return slices.ContainsFunc(env, func(own string) bool { return strings.HasPrefix(own, name+"=") })
	})
}

// searchPath is the last PATH of an environment, or what runtimes take without
// one.
func searchPath(env []string) string {
	return cmp.Or(envValue(env, "PATH"), "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
}

// volumeInProject is a volume of the image that the engine would make inside the
// person's project. One in the place of the project has no effect: the project
// is mounted there.
func volumeInProject(image engine.Image) string {
	for volume := range image.Volumes {
		if at := path.Clean("/" + volume); at != Workspace && Within(at, Workspace) {
			return volume
		}
	}
	return ""
}

// hasHome reports whether the image's own user has a home of its own: one that
// the image's environment names, or the one of a named user, which the engine
// reads from the image.
func hasHome(image engine.Image, user string) bool {
	return user != "" && user != "root" && !users.Numeric(user) || namesHome(image.Env)
}

func namesHome(env []string) bool {
	return slices.ContainsFunc(env, func(pair string) bool { return strings.HasPrefix(pair, "HOME=/") })
}
