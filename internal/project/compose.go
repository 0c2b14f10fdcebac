package project

import (
	"context"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/ALRubinger/aileron/internal/config"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/internal/launch"
	"github.com/ALRubinger/aileron/internal/session"
	"github.com/ALRubinger/aileron/sandbox"
	"github.com/ALRubinger/aileron/sandbox/devcontainer"
	"github.com/ALRubinger/aileron/sandbox/engine"
	"github.com/ALRubinger/aileron/spec"
)

// useDevcontainer puts the project's devcontainer in force, after a person has agreed to what it asks for. o is nil for
// a command without a session, which needs the image alone, and runs nothing on this host.
func (a *Asker) useDevcontainer(ctx context.Context, u *Use, o *Session, s *Sandbox) error {
	if s.Devcontainer.Plan != nil {
		return nil
	}
	home, err := a.Home()
	if err != nil {
		return err
	}
	dir, err := projectDir(s, home)
	if err != nil {
		return err
	}
	plan, err := a.readDevcontainer(ctx, u, s, dir, home)
	if err != nil || plan == nil {
		return err
	}
	a.printWarnings(plan, nil)
	var before []Widening // that a person has agreed to for the host
	switch {
	case plan.OnHost == nil:
	case o == nil:
		a.Infof("aileron: %s: initializeCommand does not run: this command starts no sandbox; what it makes for the build "+
			"has to be there", devcontainer.Word(plan.File))
	case s.Devcontainer.HostCommands:
		if plan, before, err = a.initialize(ctx, u, plan, dir, home); err != nil {
			return err
		}
	}
	if err := refused(plan, s.Devcontainer.HostCommands || o == nil); err != nil {
		return err
	}
	known := plan.Warnings
	plan, fetched, err := a.fetchFeatures(ctx, u, plan, dir, home)
	if err != nil {
		return err
	}
	before = append(before, fetched...)
	a.printWarnings(plan, known)
	if err := refused(plan, true); err != nil {
		return err
	}
	d := &Use{Trust: u.Trust, File: &config.Project{Path: filepath.Join(dir, plan.File), Hash: plan.Digest}}
	d.useImageOf(plan)
	if err := d.useFeaturesOf(plan); err != nil {
		return devcontainerFault(plan, err)
	}
	if o != nil {
		if err := d.useSession(a, u, o, plan); err != nil {
			return devcontainerFault(plan, err)
		}
		if err := d.useSharedOf(s, plan, dir, home); err != nil {
			return devcontainerFault(plan, err)
		}
	}
	if err := a.agreeToProject(home, d); err != nil {
		return err
	}
	for _, w := range before { // for the audit log
		if !slices.ContainsFunc(d.Widens, func(o Widening) bool { return o.What == w.What }) {
			d.Widens = append(d.Widens, w)
		}
	}
	s.Devcontainer.Plan, s.Devcontainer.home, u.devcontainer = plan, home, d
	return nil
}

// printWarnings prints the warnings of a plan that are not among those that are known.
func (a *Asker) printWarnings(p *devcontainer.Plan, known []devcontainer.Note) {
	for _, n := range p.Warnings {
		if !slices.Contains(known, n) {
			a.Infof("aileron: %s: %s", devcontainer.Word(p.File), n)
		}
	}
}

// refused returns an error with all that a devcontainer is refused for.
func refused(p *devcontainer.Plan, hostCommands bool) error {
	all := slices.Clone(p.Refusals)
	if p.OnHost != nil && !hostCommands {
		all = append(all, devcontainer.Note{Property: p.OnHost.Phase, Text: "it would run on this host",
			Hint: "read it (aileron sandbox plan), then pass --host-commands; or remove it"})
	}
	if len(all) == 0 {
		return nil
	}
	var texts, hints []string
	for _, n := range all {
		texts = append(texts, n.String())
		if !slices.Contains(hints, n.Hint) {
			hints = append(hints, n.Hint)
		}
	}
	return hint.New(fmt.Errorf("use %s: %s", p.File, strings.Join(texts, "; ")),
		"%s; or start without the devcontainer: --devcontainer=off", strings.Join(hints, "; "))
}

// devcontainerFault adds the file and a hint to an error about its content.
func devcontainerFault(p *devcontainer.Plan, err error) error {
	with := fmt.Errorf("use %s: %w", p.File, err)
	if hint.Of(err) != "" {
		return with
	}
	return hint.New(with, "correct the file, or start without it: --devcontainer=off")
}

// useImageOf puts in force what is about the image.
func (u *Use) useImageOf(p *devcontainer.Plan) {
	if b := p.Build; b != nil {
		u.InForce = append(u.InForce, "the image of "+devcontainer.Word(b.Dockerfile))
		u.Widens = append(u.Widens, Widening{Brief: "build an image outside of the sandbox",
			What: fmt.Sprintf("build the image of %q, with %s of the project, outside of the sandbox: as root of a container, "+
				"with the network of the engine's machine, without mediation and without a row in the audit log", b.Dockerfile,
				hint.Plural(len(b.Files), "file")), Text: b.Data})
		for _, v := range b.Args {
			u.Widens = append(u.Widens, Widening{What: "give the build the argument " + strconv.Quote(v.Name),
				Value: ", which is " + strconv.Quote(v.Value)})
		}
		if b.Target != "" {
			u.widen("build its stage " + strconv.Quote(b.Target) + " alone")
		}
	} else {
		u.InForce = append(u.InForce, "image "+devcontainer.Word(p.Image))
		u.widen("run the image " + strconv.Quote(p.Image))
	}
	switch {
	case p.User == "":
	case p.UpdateUID:
		u.widen("run as the user " + strconv.Quote(p.User) + " of the image, if it owns the project")
	default:
		u.widenAs("choose the user", "run as the user "+strconv.Quote(p.User)+" of the image, and "+
			"not as the owner of the project")
	}
	u.readsOfHost(p)
	for _, name := range p.Packages {
		u.widenAs("install a package", "install the Debian package "+strconv.Quote(name)+
			" in the image, with the network of the engine's machine")
	}
}

// readsOfHost adds the variables of this host that a devcontainer names.
func (u *Use) readsOfHost(p *devcontainer.Plan) {
	for _, v := range p.Local {
		u.Widens = append(u.Widens, Widening{Brief: "read a variable of this host",
			What:  "read the variable " + strconv.Quote(v.Name) + " of this host",
			Value: ", which is " + strconv.Quote(v.Value)})
	}
}

// useSession puts in force what is about the session. What .aileron.toml says precedes it.
func (u *Use) useSession(a *Asker, file *Use, o *Session, p *devcontainer.Plan) error {
	u.File.Egress, u.File.Connectors = p.Egress, p.Connectors
	if file.File != nil && file.File.Egress != "" && p.Egress != "" {
		u.File.Egress = ""
		u.overruled = append(u.overruled, "egress")
	}
	if err := u.useEgress(a, o); err != nil {
		return err
	}
	if err := u.useConnectors(a, o); err != nil || u.Connectors == nil {
		return err
	}
	if file.Connectors == nil {
		file.Connectors = u.Connectors
		return nil
	}
	file.Connectors = slices.DeleteFunc(slices.Clone(file.Connectors), func(fqn spec.FQN) bool { // those that both name
		return !slices.Contains(u.Connectors, fqn)
	})
	return nil
}

// useSharedOf puts in force what the sandbox shares with this host, and what runs in it.
func (u *Use) useSharedOf(s *Sandbox, p *devcontainer.Plan, dir, home string) error {
	if err := u.useWorkspace(p, dir); err != nil {
		return err
	}
	if err := u.useVariablesOf(s, p); err != nil {
		return err
	}
	for _, port := range p.Ports {
		u.File.Ports = append(u.File.Ports, strconv.Itoa(port))
	}
	for _, m := range p.Mounts {
		if err := u.useMount(m); err != nil {
			return err
		}
	}
	if err := u.useShared(s, dir, home); err != nil {
		return err
	}
	for _, c := range p.Commands {
		u.InForce = append(u.InForce, c.Title())
		u.Widens = append(u.Widens, Widening{Brief: "run a command in the sandbox",
			What: "run " + c.Title() + " in the sandbox", Value: ": " + commandText(c)})
	}
	return nil
}

// useVariablesOf puts variables in force, those that are set and those that are taken away. What a person passes, or
// .aileron.toml, takes precedence.
func (u *Use) useVariablesOf(s *Sandbox, p *devcontainer.Plan) error {
	o := &s.Devcontainer
	o.given = slices.Clone(s.Shared.Env)
	given := variableNames(o.given)
	u.File.Env = map[string]string{}
	for _, v := range p.Env {
		if !strings.Contains(v.Value, "${containerEnv:") {
			u.File.Env[v.Name] = v.Value
			continue
		}
		if err := checkVariable(v.Name, v.Value); err != nil {
			return err
		}
		if slices.Contains(given, v.Name) {
			u.overruled = append(u.overruled, "the variable "+v.Name)
			continue
		}
		o.late = append(o.late, v)
		u.Widens = append(u.Widens, Widening{What: "set the variable " + v.Name, Value: " to " + strconv.Quote(v.Value)})
	}
	for _, name := range p.Unset {
		if err := checkVariable(name, ""); err != nil {
			return err
		}
		if slices.Contains(given, name) {
			u.overruled = append(u.overruled, "the variable "+name)
			continue
		}
		o.unset = append(o.unset, name)
		u.widen("take the variable " + name + " away")
	}
	return nil
}

// useMount puts a mount of a devcontainer in force. One of the project's files is among u.mounts then.
func (u *Use) useMount(m devcontainer.Mount) error {
	if err := launch.CheckTarget(m.Target); err != nil {
		return hint.New(err, "name another place, or start without the devcontainer: --devcontainer=off")
	}
	target, how := strconv.Quote(m.Target), ""
	if m.ReadOnly {
		how = ", read-only"
	}
	switch {
	case m.Type == devcontainer.Bind:
		u.mounts = append(u.mounts, engine.Mount{Source: m.Source, Target: m.Target, ReadOnly: m.ReadOnly})
	case m.Type == devcontainer.Tmpfs:
		u.widen("have an empty directory in memory at " + target + ", in place of the image's")
	case m.Source == "":
		u.widen("have a volume at " + target + how + ", which is removed with the sandbox")
	default:
		u.widen("keep the volume " + strconv.Quote(m.Source) + ", at " + target + how + ", from one sandbox to the next")
	}
	return nil
}

// useWorkspace puts in force where the project, or a part of it, is, and where the command begins. The error is for a
// place that a sandbox has something else at, and for a mount that lies over the project, or in its repository.
func (u *Use) useWorkspace(p *devcontainer.Plan, dir string) error {
	at := p.Workspace.Mount
	err := sandbox.CheckPlace(at)
	if sandbox.Within(at, "/usr/src") && at != "/usr/src" {
		err = nil // no part of a system
	}
	if err != nil {
		return fmt.Errorf("the project at %s: %w", at, err)
	}
	for _, m := range p.Mounts {
		for _, at := range []string{at, dir} {
			if sandbox.Within(at, m.Target) || sandbox.Within(m.Target, filepath.Join(at, ".git")) {
				return hint.New(fmt.Errorf("mount %s: it would lie over the project, or its repository", m.Target),
					"name another place, or start without the devcontainer: --devcontainer=off")
			}
		}
	}
	usual := path.Join("/workspaces", filepath.Base(dir))
	switch {
	case p.Workspace.Source != "":
		u.mounts = append(u.mounts, engine.Mount{Source: p.Workspace.Source, Target: at})
	case at != usual:
		u.widen("have the project at " + strconv.Quote(at) + ", too")
	}
	if p.Workspace.Folder != usual {
		u.widen("begin in " + strconv.Quote(p.Workspace.Folder))
	}
	return nil
}

// commandText returns what a command runs, for people.
func commandText(c devcontainer.Command) string {
	var all []string
	for _, part := range c.Parts {
		text := strconv.Quote(part.Shell)
		if part.Args != nil {
			text = fmt.Sprintf("%q", part.Args)
		}
		all = append(all, text)
	}
	return strings.Join(all, " and ")
}

// Into adds to a launch what the flags, the project's file and its devcontainer ask for of the sandbox. The layer of
// its agent is left where the devcontainer's image may need it.
func (a *Asker) Into(s *Sandbox, l *launch.Sandbox) {
	l.Layer = a.layerOf(s, l.Layer)
	l.Dir, l.ReadOnly, l.Protect = s.Dir, s.ReadOnly, s.Protect
	l.Mounts, l.Variables, l.Ports = s.Shared.Mounts, s.Shared.Env, s.Shared.Ports
	p := s.Devcontainer.Plan
	if p == nil {
		return
	}
	l.Composed = s.Devcontainer.composition()
	if l.Setup = p.Script(s.Devcontainer.unset); l.Setup != "" {
		l.Needs = append(slices.Clone(l.Needs), "sh")
	}
	searched := slices.Concat(p.Local, p.Container, s.Devcontainer.late)
	if p.Build != nil {
		searched = append(searched, p.Build.Args...)
	}
	for _, f := range p.Features {
		searched = slices.Concat(searched, f.Options, f.Env)
	}
	for _, v := range searched {
		l.Searched = append(l.Searched, v.Name+"="+v.Value)
	}
	if p.Build != nil && !p.Build.UsesBase || p.Build == nil {
		l.Advice = agentAdvice(p)
	}
}

// agentAdvice returns what to do about an image of a devcontainer that lacks the agent.
func agentAdvice(p *devcontainer.Plan) string {
	file := "a Dockerfile (aileron sandbox init shows one)"
	if p.Build != nil {
		file = p.Build.Dockerfile
	}
	return "build it on the agent's image: begin the last stage of " + file + " with ARG BASE and FROM ${BASE}, or " +
		"install the agent there; or start without the devcontainer: --devcontainer=off"
}

// composition returns what the devcontainer asks for of its sandbox.
func (d *Devcontainer) composition() *sandbox.Composition {
	p := d.Plan
	c := &sandbox.Composition{User: p.User, KeepUser: !p.UpdateUID, Workspace: p.Workspace.Mount, Dir: p.Workspace.Folder,
		Home: d.home}
	if p.Workspace.Source != "" {
		c.Workspace = "" // a mount as any other
	}
	for _, m := range p.Mounts {
		switch m.Type {
		case devcontainer.Volume:
			c.Volumes = append(c.Volumes, sandbox.Volume{Name: m.Source, Target: m.Target, ReadOnly: m.ReadOnly})
		case devcontainer.Tmpfs:
			c.Tmpfs = append(c.Tmpfs, m.Target)
		}
	}
	c.Env = func(image []string) (env []string, err error) {
		for _, v := range d.late {
			value, err := v.In(d.inContainer(image))
			if err != nil {
				return nil, fmt.Errorf("use %s: %w", p.File, err)
			}
			env = append(env, v.Name+"="+value)
		}
		return env, nil
	}
	return c
}

// inContainer looks a variable of the container up: one that a person passes, of the configuration, or of the image.
func (d *Devcontainer) inContainer(image []string) func(name string) (string, bool) {
	var own []string
	for _, v := range d.Plan.Container {
		own = append(own, v.Name+"="+v.Value)
	}
	return func(name string) (string, bool) {
		for _, variables := range [][]string{d.given, own, image} {
			if value, ok := valueOf(variables, name); ok {
				return value, true
			}
		}
		return "", false
	}
}

// valueOf returns the last value of a variable.
func valueOf(env []string, name string) (value string, ok bool) {
	for _, pair := range env {
		if v, is := strings.CutPrefix(pair, name+"="); is {
			value, ok = v, true
		}
	}
	return value, ok
}

// ProjectFile returns what the audit log has of the files of the project.
func (s *Session) ProjectFile() (f session.ProjectFile) {
	for _, u := range []*Use{&s.Project, s.Project.devcontainer} {
		if u == nil || u.File == nil {
			continue
		}
		f.Hash, f.Widens = u.File.Hash, append(f.Widens, u.Asked()...)
	}
	return f
}
