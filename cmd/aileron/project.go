package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/internal/config"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/internal/launch"
	"github.com/ALRubinger/aileron/spec"
	"github.com/ALRubinger/aileron/vault"
)

// projectUse is a project's file and what is in force of it. Flags take precedence.
type projectUse struct {
	trust, ignore bool // flags

	file       *config.Project // nil: none is in force
	connectors []spec.FQN      // the only ones that are used; nil: all
	bindings   map[spec.FQN]string
	widens     []widening // what a person has to agree to
	inForce    []string   // in words
	overruled  []string   // by flags, in words
	unused     []string   // keys that are for a sandbox, where there is none
}

// widening is one line of what a person has to agree to.
type widening struct {
	what  string // of printable characters
	value string // follows it where a person decides, and is recorded nowhere
}

// widen adds to what a person has to agree to.
func (u *projectUse) widen(what string) { u.widens = append(u.widens, widening{what: what}) }

// asked returns what a person has to agree to, without values.
func (u *projectUse) asked() (all []string) {
	for _, w := range u.widens {
		all = append(all, w.what)
	}
	return all
}

// registerProject adds the flags of the commands that use a project's file.
func (o *sessionOptions) registerProject(cmd *cobra.Command) {
	f := cmd.Flags()
	f.BoolVar(&o.project.trust, "trust-project", false,
		"agree to what the project's "+config.ProjectFile+" asks for, without a question")
	f.BoolVar(&o.project.ignore, "ignore-project", false, "start without the project's "+config.ProjectFile)
	cmd.MarkFlagsMutuallyExclusive("trust-project", "ignore-project")
	o.given = f.Changed
}

// useProject reads the file of the project and puts it in force, after a person has agreed to what it widens. s is nil
// for a command without a sandbox, whose project is the current directory.
func (a *app) useProject(o *sessionOptions, s *sandboxOptions) error {
	u := &o.project
	home, dir, err := a.readProject(u, s)
	if err != nil || dir == "" {
		return err
	}
	for _, merge := range []func(*app, *sessionOptions) error{u.useEgress, u.useConnectors, u.useBindings, u.useAllow} {
		if err := merge(a, o); err != nil {
			return u.fault(err)
		}
	}
	if s == nil {
		u.unused = u.file.ForSandbox()
	} else {
		if err := s.parseShared(home); err != nil {
			return err
		}
		if err := u.useSandbox(s, dir, home); err != nil {
			return u.fault(err)
		}
	}
	return a.agreeToProject(home, u)
}

// useProjectImage reads the file of the project and puts in force what is about the image, as useProject does.
func (a *app) useProjectImage(s *sandboxOptions) error {
	u := &s.project
	home, dir, err := a.readProject(u, s)
	if err != nil || dir == "" {
		return err
	}
	if err := u.useImage(s, dir); err != nil {
		return u.fault(err)
	}
	return a.agreeToProject(home, u)
}

// readProject reads the file of the project in dir, which is "" if there is none, or if it was put in force already.
func (a *app) readProject(u *projectUse, s *sandboxOptions) (home, dir string, err error) {
	if u.ignore || u.file != nil {
		return "", "", nil
	}
	if home, err = a.Home(); err != nil {
		return "", "", err
	}
	if dir, err = projectDir(s, home); err != nil || dir == "" {
		return "", "", err
	}
	if u.file, err = config.ReadProject(dir); err != nil || u.file == nil {
		return "", "", err
	}
	return home, dir, nil
}

// agreeToProject puts in force what a person agrees to, and prints it.
func (a *app) agreeToProject(home string, u *projectUse) error {
	if err := a.consentToProject(home, u); err != nil {
		return err
	}
	a.printProject(u)
	return nil
}

// printProject prints what is in force of a project's file, and what is not.
func (a *app) printProject(u *projectUse) {
	for _, part := range []struct {
		what string
		all  []string
	}{
		{"in force by " + u.file.Path, u.inForce},
		{"a flag takes precedence over " + u.file.Path + " for", u.overruled},
		{"without a sandbox, " + u.file.Path + " is not in force for", u.unused},
	} {
		if len(part.all) > 0 {
			a.infof("aileron: %s: %s", part.what, strings.Join(part.all, "; "))
		}
	}
}

// projectDir returns the directory of the project, without links. It is "" if there is none: a command on this host
// runs in a directory that does not exist, too.
func projectDir(s *sandboxOptions, home string) (string, error) {
	if s != nil {
		dir, _, err := launch.Project(s.dir, home)
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
func (u *projectUse) fault(err error) error {
	with := fmt.Errorf("use %s: %w", u.file.Path, err)
	if hint.Of(err) != "" {
		return with
	}
	return hint.New(with, "correct the file (docs/configuration.md lists its keys), or start without it: --ignore-project")
}

// useEgress puts egress in force.
func (u *projectUse) useEgress(_ *app, o *sessionOptions) error {
	switch {
	case u.file.Egress == "":
		return nil
	case o.given("egress"):
		if o.egress != u.file.Egress {
			u.overruled = append(u.overruled, "egress")
		}
		return nil
	}
	o.egress = u.file.Egress
	u.inForce = append(u.inForce, "egress "+o.egress)
	if o.egress == "passthrough" {
		u.widen("let requests to all public hosts through, without credentials (egress passthrough)")
	}
	return nil
}

// useConnectors puts connectors in force. To use fewer is less, unless the hosts of the others are passed through then.
func (u *projectUse) useConnectors(a *app, o *sessionOptions) error {
	if u.file.Connectors == nil {
		return nil
	}
	if len(o.connectors) > 0 {
		u.overruled = append(u.overruled, "connectors")
		return nil
	}
	u.connectors = []spec.FQN{}
	names := a.connectorNames()
	for _, name := range u.file.Connectors {
		fqn, err := names.resolveInstalled(name)
		if err != nil {
			return err
		}
		if !slices.Contains(u.connectors, fqn) {
			u.connectors = append(u.connectors, fqn)
		}
	}
	line := "connectors " + listed(u.connectors)
	if len(u.connectors) == 0 {
		line = "no connectors"
	}
	u.inForce = append(u.inForce, line)
	if o.egress == "passthrough" {
		u.widen("let requests to the hosts of other installed connectors through (use " + line + ")")
	}
	return nil
}

// useBindings puts identities in force. Which credential a session uses is for a person to choose.
func (u *projectUse) useBindings(a *app, o *sessionOptions) error {
	names, chosen := a.connectorNames(), map[spec.FQN]string{}
	flags, err := o.bindings(a)
	if err != nil {
		return err
	}
	used, _, err := o.used(a)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(u.file.Bindings)) {
		identity := u.file.Bindings[name]
		fqn, err := names.resolveInstalled(name)
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
		u.inForce = append(u.inForce, fmt.Sprintf("%s as %s", fqn, identity))
		u.widen(fmt.Sprintf("use the credential %q of %s", identity, fqn))
		if u.bindings == nil {
			u.bindings = map[spec.FQN]string{}
		}
		u.bindings[fqn] = identity
	}
	return nil
}

// checkIdentity returns an error unless a credential of the identity is bound to the connector.
func (a *app) checkIdentity(fqn spec.FQN, identity string) error {
	v, err := a.vaultOf()
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

// useAllow puts hosts in force.
func (u *projectUse) useAllow(_ *app, o *sessionOptions) error {
	for _, host := range u.file.Allow {
		if _, err := spec.ParseHost(host); err != nil {
			return fmt.Errorf("allow the host %q: %w", host, err)
		}
		if slices.Contains(o.allow, host) {
			continue
		}
		o.allow = append(o.allow, host)
		u.inForce = append(u.inForce, "allow "+host)
		u.widen("allow requests to " + host + ", without credentials")
	}
	return nil
}
