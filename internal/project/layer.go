package project

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/ALRubinger/aileron/internal/console"
	"github.com/ALRubinger/aileron/internal/failure"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/internal/launch"
	"github.com/ALRubinger/aileron/internal/session"
	"github.com/ALRubinger/aileron/sandbox"
	"github.com/ALRubinger/aileron/sandbox/agents"
	"github.com/ALRubinger/aileron/sandbox/devcontainer"
)

// MakeImage makes the image of a sandbox for a command without a session, as a launch of that agent does: on the image
// of a devcontainer that lacks the agent, a person agrees to one more layer with it.
func (a *Asker) MakeImage(ctx context.Context, e *sandbox.Engine, s *Sandbox, image sandbox.Image, agent,
	policy string) (sandbox.Image, error) {
	home, err := a.Home()
	if err != nil {
		return image, err
	}
	progress := a.NewBuildProgress(console.BuildLog(home))
	image.Build.Before = func(ctx context.Context) error { return a.checkArguments(ctx, s.Devcontainer.Plan) }
	image, err = e.EnsureImage(ctx, image, policy, progress)
	if err != nil {
		return image, err
	}
	known, _ := agents.Find(agent)
	l := a.layerOf(s, launch.LayerOf(known))
	if l == nil {
		return image, nil
	}
	return e.EnsureLayer(ctx, image, *l, policy, progress)
}

// checkArguments refuses a build whose arguments hold the secret of a binding, by a variable of this host. The vault is
// unlocked only if there are such arguments, and bindings.
func (a *Asker) checkArguments(ctx context.Context, p *devcontainer.Plan) error {
	if p == nil || a.Unlock == nil {
		return nil
	}
	var given []devcontainer.Variable
	if p.Build != nil {
		given = p.Build.Args
	}
	for _, f := range p.Features {
		given = slices.Concat(given, f.Options, f.Env)
	}
	var named []string
	for _, arg := range given {
		if slices.ContainsFunc(p.Local, func(v devcontainer.Variable) bool {
			return v.Value != "" && strings.Contains(arg.Value, v.Value)
		}) {
			named = append(named, arg.Name+"="+arg.Value)
		}
	}
	v, err := a.VaultOf()
	if err != nil || len(named) == 0 {
		return err
	}
	if bound, err := v.Bindings(); !v.Initialised() || err == nil && len(bound) == 0 {
		return nil
	}
	if v, err = a.Unlock(ctx); err != nil {
		return err
	}
	return launch.CheckSecrets(named, func(text string) (string, error) { return session.HoldsSecret(v, text) })
}

// layerOf returns what puts an agent on the image of the devcontainer in force, after a person has agreed to it. It is
// nil where there is none, or where the image is built on the agent's.
func (a *Asker) layerOf(s *Sandbox, agent *sandbox.Layer) *sandbox.Layer {
	p := s.Devcontainer.Plan
	if agent == nil || p == nil || p.Build != nil && p.Build.UsesBase {
		return nil
	}
	l := *agent
	l.Otherwise = agentAdvice(p)
	l.Env = func(image []string) (env []string) {
		for _, v := range p.Env {
			if value, err := v.In(s.Devcontainer.inContainer(image)); err == nil { // otherwise the start has the error
				env = append(env, v.Name+"="+value)
			}
		}
		return env
	}
	l.Agree = func(ctx context.Context, image string) error { return a.agreeToLayer(ctx, s, l.Name, image) }
	return &l
}

// UnansweredLayer reports whether a start of the agent may have to ask about a layer with it. A session that is
// detached cannot: what it needs is made before, with [Asker.MakeImage].
func (a *Asker) UnansweredLayer(s *Sandbox, agent string) bool {
	known, _ := agents.Find(agent)
	if a.layerOf(s, launch.LayerOf(known)) == nil {
		return false
	}
	name, _, err := s.layerConsent(agent)
	return err == nil && !(consents{s.Devcontainer.home}).has(name)
}

// layerConsent returns the name of the consent to a layer with the agent, and what it is for.
func (s *Sandbox) layerConsent(agent string) (name, note string, err error) {
	dir, err := projectDir(s, s.Devcontainer.home)
	if err != nil {
		return "", "", err
	}
	file := s.Devcontainer.Plan.File
	sum := sha256.Sum256([]byte(strings.Join([]string{dir, file, agent}, "\x00")))
	return "layer-" + hex.EncodeToString(sum[:]), agent + " for " + file + " in " + dir, nil
}

// agreeToLayer asks whether an agent may be put on the image of the devcontainer, unless a person agreed to that before
// for this devcontainer.
func (a *Asker) agreeToLayer(ctx context.Context, s *Sandbox, agent, image string) error {
	name, note, err := s.layerConsent(agent)
	if err != nil {
		return err
	}
	p, c := s.Devcontainer.Plan, consents{s.Devcontainer.home}
	if c.has(name) {
		return nil
	}
	if !s.Custom.Yes {
		if !a.Interactive() {
			return hint.New(fmt.Errorf("run %s in the image %q of %q: the image has none, and a person must agree to add it "+
				"as one more layer", agent, image, p.File), "aileron sandbox build --agent %s%s --yes; or %s", agent, s.flags(),
				agentAdvice(p))
		}
		question := fmt.Sprintf("the image %q of %q has no %s; add aileron's as one more layer?", image, p.File, agent)
		yes, err := a.Confirm(ctx, question, true)
		if err != nil {
			return err
		}
		if !yes {
			return hint.New(failure.Declined(fmt.Sprintf("add %s to the image %s: it was declined", agent, image)), "%s",
				agentAdvice(p))
		}
	}
	return c.add(name, note)
}

// flags returns the flags by which another command has the same project and devcontainer, after a space.
func (s *Sandbox) flags() string {
	text := ""
	if s.Dir != "" {
		text += " --dir " + hint.Word(s.Dir)
	}
	if s.Devcontainer.Name != "" {
		text += " --devcontainer " + hint.Word(s.Devcontainer.Name)
	}
	return text
}
