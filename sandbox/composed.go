package sandbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"

	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/sandbox/engine"
	"github.com/ALRubinger/aileron/sandbox/internal/users"
)

// Composition is what a project asks for of its sandbox besides the image. None of it changes what seals the sandbox.
type Composition struct {
	// User is that of the command, by a name or numbers; "" is the image's. If it is not the owner of the project the
	// command runs as the owner all the same. With KeepUser that is an error, unless users of the sandbox are none of
	// this host.
	User     string
	KeepUser bool

	Workspace string // where the project is besides its other places
	Dir       string // in which the command begins

	Home    string // of aileron: each has volumes of its own
	Volumes []Volume
	Tmpfs   []string // places

	// Env returns more variables of the command, which those of the session take precedence over. The argument are those
	// of the image. Nil is none.
	Env func(image []string) ([]string, error)
}

// Volume is a directory of the engine's that a project keeps from one sandbox to the next. Its name is the project's
// own: no other project, and no other program of the engine, has it.
type Volume struct {
	Name     string // "" is one that is removed with the sandbox
	Target   string
	ReadOnly bool
}

// composed returns what the project asks for.
func (b box) composed() *Composition {
	if b.Composed == nil {
		return &Composition{}
	}
	return b.Composed
}

// targets returns the places of volumes and file systems.
func (c *Composition) targets() []string {
	targets := slices.Clone(c.Tmpfs)
	for _, v := range c.Volumes {
		targets = append(targets, v.Target)
	}
	return targets
}

// namedVolume is the name that an engine knows a volume by. It has the labels of the state, so that forgetting that of
// a project removes it.
func (s State) namedVolume(name string) string {
	return namePrefix + "volume-" + sum(strconv.Itoa(os.Getuid()), s.Home, s.Project, name)[:32]
}

// mountComposed mounts the volumes and file systems of a composition.
func (e *Engine) mountComposed(ctx context.Context, b box, config *engine.Config) error {
	c := b.composed()
	owner := State{Home: c.Home, Project: b.Dir}
	for _, v := range c.Volumes {
		m := engine.Mount{Target: v.Target, ReadOnly: v.ReadOnly}
		if v.Name != "" {
			m.Volume = owner.namedVolume(v.Name)
			err := e.EnsureVolume(ctx, m.Volume, owner.labels())
			if errors.Is(err, engine.ErrForeign) {
				return hint.New(fmt.Errorf("keep the volume %s: %w", v.Name, err), "remove it with: %s volume rm %s", e.Kind(),
					m.Volume)
			}
			if err != nil {
				return fmt.Errorf("keep the volume %s: %w", v.Name, err)
			}
		}
		delete(config.Tmpfs, v.Target) // of a read-only root
		config.Mounts = append(config.Mounts, m)
	}
	for _, at := range c.Tmpfs {
		if config.Tmpfs == nil {
			config.Tmpfs = map[string]string{}
		}
		config.Tmpfs[at] = "exec,mode=1777"
	}
	return nil
}

// ownVolumes makes the user of a created container the owner of the volumes of its composition, but for those that are
// read-only: Docker makes root the owner of one at a place that the image lacks, and the command cannot change that.
//
// What lies in a volume, and in the project, is the command's, so a place below may be a link. The owner is changed in
// another container, which never starts, and has the volumes where nothing else can be.
func (e *Engine) ownVolumes(ctx context.Context, b box, made *createdBox) error {
	volumes := slices.DeleteFunc(slices.Clone(b.composed().Volumes), func(v Volume) bool { return v.ReadOnly })
	if len(volumes) == 0 {
		return nil
	}
	// Without root, its own user is the sandbox's.
	if host, err := e.Host(ctx); err != nil || host.Rootless {
		return err
	}
	uid, gid := users.Numbers(made.user)
	names, err := e.VolumesOf(ctx, made.id)
	if err != nil {
		return err
	}
	var wrong []Volume
	var owners []engine.Owner
	for _, v := range volumes {
		if names[v.Target] == "" {
			return fmt.Errorf("make the volume at %s the user's: %s does not name it", v.Target, e.Kind())
		}
		is, known := e.OwnerOf(ctx, made.id, v.Target, names[v.Target])
		if !known {
			is = engine.Owner{UID: -1, Mode: 0o755}
		}
		if is.UID != uid {
			wrong, owners = append(wrong, v), append(owners, engine.Owner{UID: uid, GID: gid, Mode: is.Mode})
		}
	}
	if len(wrong) == 0 {
		return nil
	}
	place := func(i int) string { return "/aileron-volume-" + strconv.Itoa(i) }
	config := scratch(b.Image)
	for i, v := range wrong {
		config.Mounts = append(config.Mounts, engine.Mount{Volume: names[v.Target], Target: place(i)})
	}
	id, err := e.CreateScratch(ctx, config)
	if err != nil {
		return fmt.Errorf("make the volumes the user's: %w", err)
	}
	defer func() { _ = e.Remove(context.WithoutCancel(ctx), id) }()
	for i, v := range wrong {
		if err := e.SetOwner(ctx, id, place(i), owners[i]); err != nil {
			return fmt.Errorf("make the volume at %s the user's: %w", v.Target, copyError{err})
		}
	}
	return nil
}

// composedUser returns the user that a composition asks for in place of that of an image, and whether the command is to
// run as that user.
func (e *Engine) composedUser(ctx context.Context, b box, image engine.Image, host engine.Host, owner int) (
	user string, kept bool, err error,
) {
	c := b.composed()
	user = cmp.Or(c.User, image.User)
	if c.User == "" {
		return user, false, nil
	}
	missing, err := e.findUser(ctx, b.Image, c.User)
	if err != nil {
		return user, false, err
	}
	if len(missing) > 0 {
		return user, false, hint.New(&ImageError{Image: b.Image.Ref, Missing: []string{"the user " + c.User +
			" that devcontainer.json names"}}, "name another user there, or add this one in a Dockerfile; or start without "+
			"the devcontainer: --devcontainer=off")
	}
	if !c.KeepUser {
		return user, false, nil
	}
	id, err := e.identityOf(ctx, b.Image, user)
	if err == nil {
		err = checkKept(host, user, id.UID, owner)
	}
	return user, err == nil, err
}

// checkKept refuses a user that would be another user of this host in the project: what such a command leaves there may
// have its set-user-ID bit, and one as user 0 would leave programs of root's.
func checkKept(host engine.Host, user string, uid, owner int) error {
	if host.Remapped || uid == owner {
		return nil
	}
	return hint.New(fmt.Errorf("run as the user %q of the image: its number is %d, and that of the project's owner is "+
		"%d; on this engine it would be user %[2]d of this host, and could leave set-user-ID programs of that user in the "+
		"project", user, uid, owner), "remove updateRemoteUserUID from devcontainer.json, and the command runs as the "+
		"owner of the project; or start on an engine without root; or start without the devcontainer: --devcontainer=off")
}
