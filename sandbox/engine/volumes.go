package engine

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"syscall"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/mount"
	"github.com/docker/docker/api/types/volume"
)

// ErrForeign is returned for a volume that has the name of another one.
var ErrForeign = errors.New("it was not made by this aileron")

// EnsureVolume makes a volume with these labels, unless it is there. The error is
// [ErrForeign] if one of that name has other labels, or is more than a directory
// of the engine's own: a driver's options can lead it to any place of the host.
func (e *Engine) EnsureVolume(ctx context.Context, name string, labels map[string]string) error {
	v, err := e.cli.VolumeInspect(ctx, name)
	if errdefs.IsNotFound(err) {
		v, err = e.cli.VolumeCreate(ctx, volume.CreateOptions{Name: name, Driver: "local", Labels: labels})
	}
	switch {
	case err != nil:
		return fmt.Errorf("make the volume %s: %w", name, err)
	case v.Driver != "local" || len(v.Options) > 0 || !maps.Equal(v.Labels, labels):
		return fmt.Errorf("use the volume %s: %w", name, ErrForeign)
	}
	return nil
}

// Volumes returns the names of the volumes that have all of these labels.
func (e *Engine) Volumes(ctx context.Context, labels map[string]string) ([]string, error) {
	f := filters.NewArgs()
	for k, v := range labels {
		f.Add("label", k+"="+v)
	}
	list, err := e.cli.VolumeList(ctx, volume.ListOptions{Filters: f})
	if err != nil {
		return nil, fmt.Errorf("list volumes: %w", err)
	}
	var names []string
	for _, v := range list.Volumes {
		all := true // Podman 4 returns those that have any of them
		for k, want := range labels {
			all = all && v.Labels[k] == want
		}
		if all {
			names = append(names, v.Name)
		}
	}
	return names, nil
}

// VolumesLabelled returns the volumes that have a label, by their names.
func (e *Engine) VolumesLabelled(ctx context.Context, key, value string) (found []Listed, err error) {
	list, err := e.cli.VolumeList(ctx, volume.ListOptions{Filters: filters.NewArgs(filters.Arg("label", key+"="+value))})
	if err != nil {
		return nil, fmt.Errorf("list volumes: %w", err)
	}
	for _, v := range list.Volumes {
		if v.Labels[key] == value {
			found = append(found, Listed{ID: v.Name, Labels: v.Labels, Names: []string{v.Name}})
		}
	}
	return found, nil
}

// RemoveVolume removes a volume. One that a container uses is not removed.
func (e *Engine) RemoveVolume(ctx context.Context, name string) error {
	if err := e.cli.VolumeRemove(ctx, name, false); err != nil && !errdefs.IsNotFound(err) {
		return fmt.Errorf("remove the volume %s: %w", name, err)
	}
	return nil
}

// VolumesOf returns the names of the volumes of a container by their places in it, those without a name of a person's
// too.
func (e *Engine) VolumesOf(ctx context.Context, id string) (map[string]string, error) {
	c, err := e.cli.ContainerInspect(ctx, id)
	if err != nil {
		return nil, fmt.Errorf("list the volumes of a container: %w", err)
	}
	names := map[string]string{}
	for _, m := range c.Mounts {
		if m.Type == mount.TypeVolume {
			names[path.Clean(m.Destination)] = m.Name
		}
	}
	return names, nil
}

// Owner is whose a directory is, and who may do what in it.
type Owner struct {
	UID, GID int
	Mode     int64 // of permissions
}

// OwnerOf returns the owner of the root of a volume, which a container has at a place. It is not known (false) where
// neither the engine nor this host shows it.
func (e *Engine) OwnerOf(ctx context.Context, id, at, name string) (Owner, bool) {
	if !e.dialect.copiesOwners() {
		v, err := e.cli.VolumeInspect(ctx, name)
		if err != nil {
			return Owner{}, false
		}
		info, err := os.Lstat(v.Mountpoint)
		if err != nil || !info.IsDir() {
			return Owner{}, false
		}
		st, ok := info.Sys().(*syscall.Stat_t)
		if !ok {
			return Owner{}, false
		}
		return Owner{int(st.Uid), int(st.Gid), int64(st.Mode & 0o7777)}, true
	}
	r, err := e.ReadArchive(ctx, id, at)
	if err != nil {
		return Owner{}, false
	}
	defer func() { _ = r.Close() }() // the rest of it is not read
	header, err := tar.NewReader(r).Next()
	if err != nil || header.Typeflag != tar.TypeDir {
		return Owner{}, false
	}
	return Owner{header.Uid, header.Gid, header.Mode & 0o7777}, true
}

// SetOwner sets the owner of the root of a volume, which a container that does not run has at dir, in its root
// directory. Docker changes it as an entry of the directory above, and Podman as the directory itself. Of these, what
// an engine does not take for the volume has no effect on it.
func (e *Engine) SetOwner(ctx context.Context, id, dir string, to Owner) error {
	for _, entry := range []struct{ in, name string }{{path.Dir(dir), path.Base(dir)}, {dir, "."}} {
		var archive bytes.Buffer
		tw := tar.NewWriter(&archive)
		err := errors.Join(tw.WriteHeader(&tar.Header{Name: entry.name + "/", Typeflag: tar.TypeDir, Mode: to.Mode,
			Uid: to.UID, Gid: to.GID}), tw.Close())
		if err == nil {
			err = e.WriteArchive(ctx, id, entry.in, &archive)
		}
		if err != nil {
			return fmt.Errorf("change the owner of %s: %w", dir, err)
		}
	}
	return nil
}
