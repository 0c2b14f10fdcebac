package project

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/ALRubinger/aileron/internal/config"
	"github.com/ALRubinger/aileron/internal/failure"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/sandbox"
	"github.com/ALRubinger/aileron/sandbox/devcontainer"
	"github.com/ALRubinger/aileron/sandbox/engine"
)

// Devcontainer is which devcontainer of the project a command uses.
type Devcontainer struct {
	Name string // of the flag: "" is the one that comes first, off is none
	// HostCommands allows its initializeCommand, which runs on this host. A person has to agree to it besides.
	HostCommands bool
	// Anew has its features fetched again, although they were.
	Anew bool

	Plan *devcontainer.Plan // nil: none is in force

	home  string                  // of aileron
	given []string                // variables, K=V, that a person or .aileron.toml passes
	late  []devcontainer.Variable // that have a value of the container's in theirs
	unset []string                // variables that the command does not have
}

// WithoutDevcontainer is the name with which a command starts without a devcontainer.
const WithoutDevcontainer = "off"

// PlanOf returns what the image of a sandbox is composed of, for people: own is aileron's image, on which the packages
// and the Dockerfile of flags and of the project's file go. Nothing is asked, built or put in force, and no value of a
// variable of this host is in it.
func (a *Asker) PlanOf(ctx context.Context, u *Use, s *Sandbox, own sandbox.Image) (*devcontainer.Plan, error) {
	home, conf, err := a.Settings()
	if err != nil {
		return nil, err
	}
	dir, err := projectDir(s, home)
	if err != nil {
		return nil, err
	}
	_, used, err := a.readProject(u, s)
	if err == nil && used != "" {
		err = u.useImage(s, dir)
	}
	if err != nil {
		return nil, err
	}
	plan, err := a.readDevcontainer(ctx, u, s, dir, home)
	if err != nil {
		return nil, err
	}
	s.Devcontainer.Plan = plan
	image, _, _, err := a.imageOf(s, own, conf.Sandbox.Packages)
	if err != nil {
		return nil, err
	}
	shown := devcontainer.None(dir, image.Tier())
	if plan != nil {
		in := devcontainer.Input{File: plan.File, Verbatim: true}
		if plan.Requested != nil { // that of the text with its variables is another one
			in.Fetched = func(*devcontainer.FeatureRequest) (*devcontainer.FeatureSet, error) {
				return features{home}.kept(plan.Requested)
			}
		}
		if shown, err = composeDevcontainer(ctx, dir, home, in); err != nil {
			return nil, err
		}
		if _, err := devcontainer.FindCLI(dir); err != nil && plan.Unfetched {
			plan.Refusals = append(plan.Refusals, devcontainer.Note{Property: "features", Text: err.Error(), Hint: hint.Of(err)})
		}
		plan.Refusals = append(plan.Refusals, refusedByStart(plan, dir, home)...)
		if plan.OnHost != nil {
			plan.Warnings = append(plan.Warnings, devcontainer.Note{Property: plan.OnHost.Phase,
				Text: "it runs on this host, and a start refuses it without --host-commands"})
		}
		shown.Digest, shown.Warnings, shown.Refusals = plan.Digest, unnamed(plan, plan.Warnings), unnamed(plan, plan.Refusals)
		shown.Image = withoutLocal(plan, image.Ref)
		return shown, nil
	}
	shown.Image = image.Ref
	return shown, nil
}

// refusedByStart returns what a start refuses besides what the file alone shows: places and variables of the session.
func refusedByStart(p *devcontainer.Plan, dir, home string) (notes []devcontainer.Note) {
	try := func(property string, one devcontainer.Plan) bool {
		one.File, one.Workspace = p.File, p.Workspace
		u := &Use{File: &config.Project{}}
		err := u.useFeaturesOf(&one)
		if err == nil {
			err = u.useSharedOf(&Sandbox{Shared: &Shared{}}, &one, dir, home)
		}
		if err != nil {
			notes = append(notes, devcontainer.Note{Property: property, Text: err.Error(),
				Hint: cmp.Or(hint.Of(err), "correct the file, or start without it: --devcontainer=off")})
		}
		return err == nil
	}
	if !try("workspaceFolder", devcontainer.Plan{}) {
		return notes // each of the others would be refused for it
	}
	for _, port := range p.Ports {
		try("forwardPorts", devcontainer.Plan{Ports: []int{port}})
	}
	for _, m := range p.Mounts {
		try("mounts", devcontainer.Plan{Mounts: []devcontainer.Mount{m}})
	}
	for _, v := range p.Env {
		try("the variable "+v.Name, devcontainer.Plan{Env: []devcontainer.Variable{v}})
	}
	for _, name := range p.Unset {
		try("the variable "+name, devcontainer.Plan{Unset: []string{name}})
	}
	for _, f := range p.Features {
		try("the feature "+f.Ref, devcontainer.Plan{Features: []devcontainer.Feature{f}})
	}
	return notes
}

// withoutLocal returns text with the names of variables of this host in place of their values, also where a message
// quotes them. The longest value is first: another one may be a part of it.
func withoutLocal(p *devcontainer.Plan, text string) string {
	longest := slices.SortedFunc(slices.Values(p.Local), func(a, b devcontainer.Variable) int {
		return cmp.Compare(len(b.Value), len(a.Value))
	})
	for _, v := range longest {
		if v.Value == "" {
			continue
		}
		quoted := strconv.Quote(v.Value)
		for _, form := range []string{v.Value, quoted[1 : len(quoted)-1]} {
			text = strings.ReplaceAll(text, form, "${localEnv:"+v.Name+"}")
		}
	}
	return text
}

// unnamed returns notes without the values of variables of this host.
func unnamed(p *devcontainer.Plan, notes []devcontainer.Note) []devcontainer.Note {
	notes = slices.Clone(notes)
	for i := range notes {
		notes[i].Text, notes[i].Hint = withoutLocal(p, notes[i].Text), withoutLocal(p, notes[i].Hint)
	}
	return notes
}

// InitDevcontainer writes the files of a devcontainer for the project in dir, "" being the current directory, and
// returns their paths in it.
func (a *Asker) InitDevcontainer(dir string) ([]string, error) {
	home, err := a.Home()
	if err != nil {
		return nil, err
	}
	if dir, err = projectDir(&Sandbox{Dir: dir}, home); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return devcontainer.Scaffold(root)
}

// readDevcontainer returns the plan of the project's devcontainer, or nil if there is none, or something that a person
// has chosen precedes it. The latter is printed.
func (a *Asker) readDevcontainer(ctx context.Context, u *Use, s *Sandbox, dir, home string) (*devcontainer.Plan,
	error,
) {
	o := &s.Devcontainer
	if o.Name == WithoutDevcontainer || o.Name == "" && u.Ignore {
		return nil, nil //nolint:nilnil // there is none
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	found, err := devcontainer.Find(root)
	if err != nil {
		return nil, err
	}
	before := s.beforeDevcontainer(dir)
	switch {
	case o.Name == "" && (before == "" || len(found) == 0):
	case o.Name == "":
		a.Infof("aileron: %s takes precedence over %s", before, devcontainer.Word(found[0]))
		return nil, nil //nolint:nilnil // as above
	case s.Image != "":
		return nil, failure.Usagef("--image names another image than --devcontainer=%s; use one of them", o.Name)
	}
	file, err := devcontainer.Choose(found, o.Name)
	if several := (*devcontainer.ChoiceError)(nil); errors.As(err, &several) && a.Interactive() {
		name, askErr := a.PromptLine("Which devcontainer: " + hint.Alternatives(several.Names) + "?")
		if askErr != nil {
			return nil, askErr
		}
		file, err = devcontainer.Choose(found, name)
	}
	if err != nil || file == "" {
		return nil, err
	}
	in := devcontainer.Input{File: file}
	if o.Anew {
		in.Fetched = func(*devcontainer.FeatureRequest) (*devcontainer.FeatureSet, error) { return nil, nil }
	}
	return composeDevcontainer(ctx, dir, home, in)
}

// composeDevcontainer reads a configuration of the project in dir, with what home keeps of its features.
func composeDevcontainer(ctx context.Context, dir, home string, in devcontainer.Input) (*devcontainer.Plan, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	in.Root, in.Dir, in.Getenv = root, dir, os.LookupEnv
	if in.Fetched == nil {
		in.Fetched = features{home}.kept
	}
	return devcontainer.Compose(ctx, in)
}

// beforeDevcontainer returns what precedes a devcontainer that is not named, in words: what a person, or a file that is
// for aileron alone, says about the image.
func (s *Sandbox) beforeDevcontainer(dir string) string {
	switch {
	case s.Image != "":
		return "--image"
	case s.Custom.within != "":
		return "the Dockerfile of .aileron.toml"
	case s.Custom.Dockerfile != "" && s.Custom.Dockerfile != WithoutDevcontainer:
		return "--dockerfile"
	case len(s.Custom.Packages) > 0:
		return "what adds packages to aileron's own image"
	case s.Custom.Dockerfile != "":
		return ""
	}
	if _, err := os.Lstat(filepath.Join(dir, Dockerfile)); errors.Is(err, fs.ErrNotExist) {
		return ""
	}
	return Dockerfile
}

// devcontainerImage returns the image of a devcontainer. Its base is aileron's own where its Dockerfile is built on
// that, with the packages on it; asked are those that a flag or the project names. No packages go on any other image:
// what it is made of is not known.
func devcontainerImage(p *devcontainer.Plan, own sandbox.Image, packages, asked []string) (sandbox.Image, error) {
	asked = slices.Concat(asked, p.Packages)
	switch b := p.Build; {
	case b != nil && b.UsesBase:
		base, err := sandbox.CustomImage(own, slices.Concat(packages, p.Packages), nil)
		if err != nil {
			return base, err
		}
		return withFeatures(p, sandbox.BuiltImage(b.Data, buildOf(b), &base)), nil
	case len(asked) > 0:
		return sandbox.Image{}, hint.New(fmt.Errorf("add packages to the image of %s: it is not aileron's own", p.File),
			"add to its Dockerfile: RUN apt-get update && apt-get install -y %s", strings.Join(asked, " "))
	case b != nil:
		return withFeatures(p, sandbox.BuiltImage(b.Data, buildOf(b), nil)), nil
	case p.Tier == devcontainer.TierBYO:
		return sandbox.Image{Ref: p.Image}, nil
	}
	return withFeatures(p, sandbox.ProjectImage(p.Image)), nil
}

// buildOf returns what an image is built of.
func buildOf(b *devcontainer.Build) sandbox.Build {
	build := sandbox.Build{Args: map[string]string{}, Target: b.Target, Digest: b.Digest()}
	for _, v := range b.Args {
		build.Args[v.Name] = v.Value
	}
	for _, f := range b.Files {
		build.Context = append(build.Context, engine.ContextFile(f))
	}
	return build
}
