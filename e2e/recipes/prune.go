package recipes

import (
	"bytes"
	"context"
	"maps"
	"slices"
	"strings"
)

// Prune removes the suites' images that no recipe makes any more, and the
// nameless ones that builds of aileron's images left. Those of other people
// stay.
func (s *Store) Prune(ctx context.Context) error {
	keep := current()
	for _, engine := range s.engines(ctx) {
		has, err := s.list(ctx, engine)
		if err != nil {
			return err
		}
		for _, name := range slices.Sorted(maps.Keys(has)) {
			if keep[name] || !ours(name) {
				continue
			}
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
