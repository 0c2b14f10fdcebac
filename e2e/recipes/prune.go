package recipes

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Prune removes the suites' images that no recipe makes any more, those with more
// packages on top of them, and the nameless ones that builds of aileron's images
// left. Those of other people stay.
func (s *Store) Prune(ctx context.Context) error {
	keep := current()
	for _, engine := range s.engines(ctx) {
		has, err := s.list(ctx, engine)
		if err != nil {
			return err
		}
		stale := s.stalePackages(ctx, engine, has, keep)
		for _, name := range slices.Sorted(maps.Keys(has)) {
			if !keep[name] && ours(name) {
				stale = append(stale, name) // after what is on top of it
			}
		}
		for _, name := range stale {
			// One that a container uses stays until the next time.
			if out, err := s.tool(ctx, engine, "rmi", name); err != nil {
				s.say("%s is not needed any more and could not be removed from %s: %s", name, engine, lastLine(out))
				continue
			}
			s.say("removed %s from %s: its recipe has changed", name, engine)
		}
		s.pruneNameless(ctx, engine)
	}
	return nil
}

// pruneNameless removes the nameless images that builds of aileron's images
// left. To a build that is under way they are its stages. They cost disk space
// and nothing else, so that a failure is only said.
func (s *Store) pruneNameless(ctx context.Context, engine string) {
	if s.building(ctx, engine) {
		s.say("nameless images stay in %s: one is being built, or a box runs", engine)
		return
	}
	if out, err := s.tool(ctx, engine, "image", "prune", "--force", "--filter", "label=aileron.image=1"); err != nil {
		s.say("nameless images could not be removed from %s: %s", engine, lastLine(out))
	}
}

// building reports whether an image of ours may be under way in an engine:
// Podman has a container for each build, Docker's inherit the image's label.
func (s *Store) building(ctx context.Context, engine string) bool {
	args := []string{"ps", "--quiet", "--filter", "label=aileron.image"}
	if engine == "podman" {
		args = []string{"ps", "--all", "--external", "--quiet", "--filter", "status=unknown"}
	}
	out, err := s.tool(ctx, engine, args...)
	return err != nil || len(bytes.TrimSpace(out)) > 0
}

// packagesName begins the names of aileron's images with more packages.
const packagesName = "localhost/aileron/packages:"

// stalePackages returns those of an engine's images with more packages that are on top of none that is kept. Their
// names are digests that do not tell of what. One on top of a current image is of a person, or of a test that runs.
// One that cannot be looked into stays.
func (s *Store) stalePackages(ctx context.Context, engine string, has, keep map[string]bool) (stale []string) {
	var kept []string
	for _, name := range slices.Sorted(maps.Keys(has)) {
		if keep[name] && strings.HasPrefix(name, "localhost/aileron/") {
			kept = append(kept, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(has)) {
		if keep[name] || !strings.HasPrefix(name, packagesName) {
			continue
		}
		is, err := s.isStale(ctx, engine, name, kept)
		if err != nil {
			s.say("%s stays in %s: %v", name, engine, err)
		} else if is {
			stale = append(stale, name)
		}
	}
	return stale
}

// isStale reports whether an image is not one of the kept with a layer on top.
func (s *Store) isStale(ctx context.Context, engine, name string, kept []string) (bool, error) {
	layers, err := s.layers(ctx, engine, name)
	if err != nil {
		return false, err
	}
	for _, k := range kept {
		below, err := s.layers(ctx, engine, k)
		if err != nil {
			return false, err
		}
		if len(layers) == len(below)+1 && slices.Equal(layers[:len(below)], below) {
			return false, nil
		}
	}
	return true, nil
}

// layers returns the layers of an image.
func (s *Store) layers(ctx context.Context, engine, name string) (layers []string, err error) {
	out, err := s.tool(ctx, engine, "image", "inspect", "--format", "{{json .RootFS.Layers}}", name)
	if err == nil {
		err = json.Unmarshal(out, &layers)
	}
	if err != nil {
		return nil, fmt.Errorf("look into %s of %s: %w\n%s", name, engine, err, out)
	}
	return layers, nil
}

// current are the names of all images that the recipes make.
func current() map[string]bool {
	names := map[string]bool{}
	var add func(images []Image)
	add = func(images []Image) {
		for _, img := range images {
			names[img.Ref] = true
			add(img.needs)
		}
	}
	for _, c := range chains() {
		for _, st := range c.steps {
			add(st.images)
		}
	}
	return names
}

// ours reports whether an image is one that suites make. An image of aileron's
// own may be one of a release that has another recipe: it builds that again.
func ours(name string) bool {
	repository, tag, _ := strings.Cut(name, ":")
	switch repository, ok := strings.CutPrefix(repository, "localhost/"); {
	case !ok:
		return false
	case repository == "aileron-matrix" || strings.HasPrefix(repository, "aileron-images/"):
		return true
	case repository == "aileron/sandbox-base" || repository == "aileron/toolbox" ||
		strings.HasPrefix(repository, "aileron/agent-"):
		// A tag with a version is of an aileron whose tags were not the recipe's digest.
		return !strings.Contains(tag, "-") || strings.Contains(tag, "-dev-")
	}
	return false
}

func lastLine(out []byte) string {
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	return lines[len(lines)-1]
}
