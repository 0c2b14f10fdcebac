// Package project puts a project's file, .aileron.toml, in force beside the flags of a command, and remembers what a
// person has agreed to. Open [Asker.UseProject] first; consent.go has the questions, image.go the Dockerfile.
package project

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ALRubinger/aileron/internal/approvals"
	"github.com/ALRubinger/aileron/internal/config"
	"github.com/ALRubinger/aileron/internal/connectors"
	"github.com/ALRubinger/aileron/internal/console"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/internal/home"
	"github.com/ALRubinger/aileron/internal/launch"
	"github.com/ALRubinger/aileron/sandbox/devcontainer"
	"github.com/ALRubinger/aileron/sandbox/engine"
	"github.com/ALRubinger/aileron/spec"
	"github.com/ALRubinger/aileron/vault"
)

// Use is a project's file and what is in force of it. Flags take precedence.
type Use struct {
	Trust, Ignore bool // flags

	File       *config.Project // nil: none is in force
	Connectors []spec.FQN      // the only ones that are used; nil: all
	bindings   map[spec.FQN]string
	Widens     []Widening     // what a person has to agree to
	InForce    []string       // in words
	overruled  []string       // by flags, in words
	mounts     []engine.Mount // besides those of File; a source is an absolute path, or relative to the project
	// devcontainer is that of the project, where it is in force.
	devcontainer *Use
	unused       []string // keys that are for a sandbox, where there is none
}

// Widening is one line of what a person has to agree to.
type Widening struct {
	What  string // of printable characters; what a project wrote is quoted in it
	Value string // follows it where a person decides, and is recorded nowhere
	Text  []byte // lines that are shown below it then
	Brief string // what it is in the line above the question, which has no names and values; "" is what is little
	// Each reports whether it is asked about at each start: what it is may change without the bytes of the file.
	Each bool
}

// widen adds to what a person has to agree to.
func (u *Use) widen(what string) { u.Widens = append(u.Widens, Widening{What: what}) }

// widenAs adds to what a person has to agree to, with a [Widening.Brief].
func (u *Use) widenAs(brief, what string) {
	u.Widens = append(u.Widens, Widening{What: what, Brief: brief})
}

// Asked returns what a person has to agree to, without values.
func (u *Use) Asked() (all []string) {
	for _, w := range u.Widens {
		all = append(all, w.What)
	}
	return all
}

// Asker puts projects' files in force, and asks the person at the console first.
type Asker struct {
	*console.Console
	*home.Dir
	// Unlock returns the vault, unlocked. It is called before an image is built, without a session, of what may be secret.
	Unlock func(ctx context.Context) (*vault.Vault, error)
	// Initialized reports whether another process has run the initializeCommand of the project's devcontainer for this
	// one.
	Initialized bool
}

// UseProject reads the file of the project and puts it in force, after a person has agreed to what it widens. s is nil
// for a command without a sandbox, whose project is the current directory.
func (a *Asker) UseProject(ctx context.Context, o *Session, s *Sandbox) error {
	if err := a.useProjectFile(o, s); err != nil || s == nil {
		return err
	}
	if home, err := a.Home(); err != nil {
		return err
	} else if err := s.ParseShared(home); err != nil {
		return err
	}
	return a.useDevcontainer(ctx, &o.Project, o, s)
}

// useProjectFile puts the project's file in force.
func (a *Asker) useProjectFile(o *Session, s *Sandbox) error {
	u := &o.Project
	home, dir, err := a.readProject(u, s)
	if err != nil || dir == "" {
		return err
	}
	for _, merge := range []func(*Asker, *Session) error{u.useEgress, u.useConnectors, u.UseBindings, u.useAllow,
		u.useApprove, u.useBudget} {
		if err := merge(a, o); err != nil {
			return u.fault(err)
		}
	}
	if s == nil {
		u.unused = u.File.ForSandbox()
	} else {
		if err := s.ParseShared(home); err != nil {
			return err
		}
		if err := u.useSandbox(s, dir, home); err != nil {
			return u.fault(err)
		}
	}
	return a.agreeToProject(home, u)
}

// UseProjectImage reads the file of the project and puts in force what is about the image, as [Asker.UseProject] does.
func (a *Asker) UseProjectImage(ctx context.Context, u *Use, s *Sandbox) error {
	home, dir, err := a.readProject(u, s)
	if err != nil {
		return err
	}
	if dir != "" {
		if err := u.useImage(s, dir); err != nil {
			return u.fault(err)
		}
		if err := a.agreeToProject(home, u); err != nil {
			return err
		}
	}
	return a.useDevcontainer(ctx, u, nil, s)
}

// readProject reads the file of the project in dir, which is "" if there is none, or if it was put in force already.
func (a *Asker) readProject(u *Use, s *Sandbox) (home, dir string, err error) {
	if u.Ignore || u.File != nil {
		return "", "", nil
	}
	if home, err = a.Home(); err != nil {
		return "", "", err
	}
	if dir, err = projectDir(s, home); err != nil || dir == "" {
		return "", "", err
	}
	if u.File, err = config.ReadProject(dir); err != nil || u.File == nil {
		return "", "", err
	}
	return home, dir, nil
}

// agreeToProject puts in force what a person agrees to, and prints it.
func (a *Asker) agreeToProject(home string, u *Use) error {
	if err := a.ConsentToProject(home, u); err != nil {
		return err
	}
	a.printProject(u)
	return nil
}

// printProject prints what is in force of a project's file, and what is not.
func (a *Asker) printProject(u *Use) {
	file := devcontainer.Word(u.File.Path)
	for _, part := range []struct {
		what string
		all  []string
	}{
		{"in force by " + file, u.InForce},
		{"a flag takes precedence over " + file + " for", u.overruled},
		{"without a sandbox, " + file + " is not in force for", u.unused},
	} {
		if len(part.all) > 0 {
			a.Infof("aileron: %s: %s", part.what, strings.Join(part.all, "; "))
		}
	}
}

// projectDir returns the directory of the project, without links. It is "" if there is none: a command on this host
// runs in a directory that does not exist, too.
func projectDir(s *Sandbox, home string) (string, error) {
	if s != nil {
		dir, _, err := launch.Project(s.Dir, home)
		return dir, err
	}
	dir, err := os.Getwd()
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	if err != nil {
		return "", nil //nolint:nilerr // as above
	}
	return dir, nil
}

// fault adds the file to an error about its content.
func (u *Use) fault(err error) error {
	with := fmt.Errorf("use %s: %w", u.File.Path, err)
	if hint.Of(err) != "" {
		return with
	}
	return hint.New(with, "correct the file (docs/configuration.md lists its keys), or start without it: --ignore-project")
}

// useEgress puts egress in force.
func (u *Use) useEgress(_ *Asker, o *Session) error {
	switch {
	case u.File.Egress == "":
		return nil
	case o.Given("egress"), o.Learn:
		if o.Egress != u.File.Egress {
			u.overruled = append(u.overruled, "egress")
		}
		return nil
	}
	o.Egress = u.File.Egress
	u.InForce = append(u.InForce, "egress "+o.Egress)
	if o.Egress == "passthrough" {
		u.widenAs("let requests to all public hosts through",
			"let requests to all public hosts through, without credentials (egress passthrough)")
	}
	return nil
}

// useConnectors puts connectors in force. To use fewer is less, unless the hosts of the others are passed through then.
func (u *Use) useConnectors(a *Asker, o *Session) error {
	if u.File.Connectors == nil {
		return nil
	}
	if len(o.Connectors) > 0 {
		u.overruled = append(u.overruled, "connectors")
		return nil
	}
	u.Connectors = []spec.FQN{}
	names := connectors.NewNames(a.Dir)
	for _, name := range u.File.Connectors {
		fqn, err := names.ResolveInstalled(name)
		if err != nil {
			return err
		}
		if !slices.Contains(u.Connectors, fqn) {
			u.Connectors = append(u.Connectors, fqn)
		}
	}
	line := "connectors " + hint.Listed(u.Connectors)
	if len(u.Connectors) == 0 {
		line = "no connectors"
	}
	u.InForce = append(u.InForce, line)
	if o.Egress == "passthrough" {
		u.widenAs("let requests to other hosts through",
			"let requests to the hosts of other installed connectors through (use "+line+")")
	}
	return nil
}

// UseBindings puts identities in force. Which credential a session uses is for a person to choose.
func (u *Use) UseBindings(a *Asker, o *Session) error {
	names, chosen := connectors.NewNames(a.Dir), map[spec.FQN]string{}
	flags, err := o.Bindings(a.Dir)
	if err != nil {
		return err
	}
	used, _, err := o.Used(a.Dir)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(u.File.Bindings)) {
		identity := u.File.Bindings[name]
		fqn, err := names.ResolveInstalled(name)
		if err != nil {
			return err
		}
		// Of a short name and an FQN for one connector, either could win.
		if _, twice := chosen[fqn]; twice {
			return fmt.Errorf("bindings has two identities for %s", fqn)
		}
		chosen[fqn] = identity
		if other, given := flags[fqn]; given || used != nil && !slices.Contains(used, fqn) {
			if given && other != identity {
				u.overruled = append(u.overruled, "the identity of "+string(fqn))
			}
			continue
		}
		if err := a.checkIdentity(fqn, identity); err != nil {
			return err
		}
		u.InForce = append(u.InForce, fmt.Sprintf("%s as %s", fqn, identity))
		u.widenAs("use a credential", fmt.Sprintf("use the credential %q of %s", identity, fqn))
		if u.bindings == nil {
			u.bindings = map[spec.FQN]string{}
		}
		u.bindings[fqn] = identity
	}
	return nil
}

// checkIdentity returns an error unless a credential of the identity is bound to the connector.
func (a *Asker) checkIdentity(fqn spec.FQN, identity string) error {
	v, err := a.VaultOf()
	if err != nil {
		return err
	}
	bound, _ := v.Bindings() // an error: none can be used
	if !slices.ContainsFunc(bound, func(b vault.Binding) bool {
		return b.Connector == string(fqn) && b.Identity == identity
	}) {
		return hint.New(fmt.Errorf("use %s with the identity %q: it is not bound", fqn, identity),
			"see what is bound with: aileron binding list; or start without the file: --ignore-project")
	}
	return nil
}

// useApprove puts in force which requests a person is asked about. It narrows.
func (u *Use) useApprove(_ *Asker, o *Session) error {
	for _, text := range u.File.Approve {
		if _, err := approvals.ParsePattern(text); err != nil {
			return fmt.Errorf("ask before requests: approve: %w", err)
		}
		if !slices.Contains(o.Approve, text) {
			o.Approve = append(o.Approve, text)
			u.InForce = append(u.InForce, "approve "+text)
		}
	}
	return nil
}

// useBudget puts limits in force: a session has at most them. It narrows.
func (u *Use) useBudget(_ *Asker, _ *Session) error {
	for _, name := range slices.Sorted(maps.Keys(u.File.Budget)) {
		u.InForce = append(u.InForce, fmt.Sprintf("at most %d %s", u.File.Budget[name], name))
	}
	return nil
}

// Budget returns the limits of the file that is in force.
func (u *Use) Budget() map[string]config.Amount {
	if u.File == nil {
		return nil
	}
	return u.File.Budget
}

// useAllow puts hosts in force.
func (u *Use) useAllow(_ *Asker, o *Session) error {
	for _, host := range u.File.Allow {
		if _, err := spec.ParseHost(host); err != nil {
			return fmt.Errorf("allow the host %q: %w", host, err)
		}
		if slices.Contains(o.Allow, host) {
			continue
		}
		o.Allow = append(o.Allow, host)
		u.InForce = append(u.InForce, "allow "+host)
		u.widenAs("allow requests to a host", "allow requests to "+host+", without credentials")
	}
	return nil
}
