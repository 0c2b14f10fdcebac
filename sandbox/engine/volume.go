package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/filters"
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

// RemoveVolume removes a volume. One that a container uses is not removed.
func (e *Engine) RemoveVolume(ctx context.Context, name string) error {
	if err := e.cli.VolumeRemove(ctx, name, false); err != nil && !errdefs.IsNotFound(err) {
		return fmt.Errorf("remove the volume %s: %w", name, err)
	}
	return nil
}
