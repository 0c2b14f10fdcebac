package recipes

import (
	"context"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/ALRubinger/aileron/e2e/harness"
	"github.com/ALRubinger/aileron/sandbox/agents"
)

// step is images that an engine must have.
type step struct {
	engine string
	images []Image
}

// chain is steps that are made one after the other, for the suites that need
// them. Chains are made side by side.
type chain struct {
	suites string // their directories
	steps  []step
}

// chains are all images that the suites need, on both engines.
func chains() []chain {
	base := []Image{Base()}
	tools := []Image{Toolbox()}
	var agentImages []Image
	for _, name := range agents.Names() {
		if agent, _ := agents.Find(name); agent.Recipe != nil {
			agentImages = append(agentImages, Agent(name))
		}
	}
	agentImages = append(agentImages, Golang())
	return []chain{
		{"e2e e2e/day", []step{{"podman", agentImages}, {"docker", slices.Concat(base, agentImages)}}},
		{"cmd/aileron sandbox e2e/faults e2e/images e2e/seal e2e/serve", []step{{"podman", base}, {"docker", base}}},
		{"e2e/images", []step{{"podman", tools}, {"docker", tools}}},
		{"e2e/documents", []step{{"podman", append(tools, Kubectl())}}},
		{"e2e/kube", []step{{"podman", tools}}},
		{"e2e/oauth", []step{{"podman", append(base, Google())}}},
		{"e2e/matrix e2e/catalog", []step{{"podman", []Image{Services()}}}}, // with what it is on top of
		{"e2e/har", []step{{"podman", []Image{HAR()}}}},
		{"e2e/matrix", []step{{"docker", []Image{Clients("few")}}, {"podman", []Image{Clients("browsers")}}}},
		{"e2e/images", []step{{"podman", Kinds()}, {"docker", Kinds()}}},
	}
}

// chainsOfRun are those of this run, which may have few suites on Docker. What
// the others need stays current all the same: the nightly run takes it up.
func chainsOfRun() []chain {
	all := chains()
	if !harness.FewOnDocker() {
		return all
	}
	for i, c := range all {
		all[i].steps = slices.DeleteFunc(c.steps, func(s step) bool { return s.engine == "docker" })
	}
	all[0].steps = append(all[0].steps, step{"docker", []Image{Base(), Agent("claude"), Golang()}})
	return all
}

// EnsureFor builds what the suites in these directories of the module need and
// the engines do not have; with none, what all suites need.
func (s *Store) EnsureFor(ctx context.Context, dirs ...string) error {
	wanted := slices.DeleteFunc(chainsOfRun(), func(c chain) bool { return !c.needed(dirs) })
	if len(wanted) == 0 {
		return nil
	}
	engines := s.engines(ctx)
	group, inGroup := errgroup.WithContext(ctx)
	var shared []step // with images that are a part of another chain too
	for _, c := range wanted {
		if ref := c.steps[0].images[0].Ref; ref == Base().Ref || ref == Toolbox().Ref {
			shared = append(shared, c.steps...)
			continue
		}
		group.Go(func() error { return s.ensureSteps(inGroup, engines, c.steps) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	return s.ensureSteps(ctx, engines, shared)
}

func (c chain) needed(dirs []string) bool {
	return len(dirs) == 0 || slices.ContainsFunc(strings.Fields(c.suites),
		func(suite string) bool { return slices.Contains(dirs, suite) })
}

func (s *Store) ensureSteps(ctx context.Context, engines []string, steps []step) error {
	for _, st := range steps {
		if !slices.Contains(engines, st.engine) {
			continue
		}
		if err := s.Ensure(ctx, st.engine, st.images...); err != nil {
			return err
		}
	}
	return nil
}

// engines are those that answer. That one does not is said, and left to the
// suites to judge.
func (s *Store) engines(ctx context.Context) []string {
	var found []string
	for _, engine := range []string{"podman", "docker"} {
		if _, err := s.tool(ctx, engine, "version"); err != nil {
			s.say("%s does not answer, and gets no images", engine)
			continue
		}
		found = append(found, engine)
	}
	return found
}
