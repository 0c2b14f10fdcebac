package project

import (
	"fmt"
	"maps"
	"strings"

	"github.com/ALRubinger/aileron/internal/approvals"
	"github.com/ALRubinger/aileron/internal/connectors"
	"github.com/ALRubinger/aileron/internal/failure"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/internal/home"
	"github.com/ALRubinger/aileron/spec"
)

// Session is what a command asks for of a session. The project's file adds to it.
type Session struct {
	Egress     string   // deny or passthrough
	Learn      bool     // as passthrough, and notes what requests are made of
	Binds      []string // CONNECTOR=IDENTITY
	Allow      []string // HOST[:PORT]
	Connectors []string // CONNECTOR[@VERSION]
	Approve    []string // METHOD PATH, see [approvals.ParsePattern]
	Budget     []string // NAME=AMOUNT, see [config.ParseBudget]
	Project    Use
	Given      func(flag string) bool // whether a flag is on the command line; nil where no project's file is used
}

// Bindings returns the identities that --bind chooses, or else the project's file.
func (s *Session) Bindings(d *home.Dir) (map[spec.FQN]string, error) {
	chosen, names := maps.Clone(s.Project.bindings), connectors.NewNames(d)
	if chosen == nil {
		chosen = map[spec.FQN]string{}
	}
	for _, b := range s.Binds {
		name, identity, _ := strings.Cut(b, "=")
		fqn := spec.FQN(name)
		if connectors.IsShortName(name) {
			var err error
			if fqn, err = names.Resolve(name); err != nil {
				return nil, err
			}
		}
		chosen[fqn] = identity
	}
	return chosen, nil
}

// Asks returns the requests that --approve and the project's file name, and those of kept, which config.toml has.
func (s *Session) Asks(kept ...string) (all []approvals.Pattern, err error) {
	for _, text := range s.Approve {
		p, err := approvals.ParsePattern(text)
		if err != nil {
			return nil, failure.Usagef("--approve: %v", err)
		}
		all = append(all, p)
	}
	for _, text := range kept {
		p, err := approvals.ParsePattern(text)
		if err != nil {
			return nil, hint.New(fmt.Errorf("ask before requests: approve of [approval] in config.toml: %w", err),
				"correct config.toml: docs/configuration.md lists the keys")
		}
		all = append(all, p)
	}
	return all, nil
}

// Used returns the connectors that --connector names, or else the project's file, nil for all, and the versions that
// are named with them.
func (s *Session) Used(d *home.Dir) (used []spec.FQN, versions map[spec.FQN]string, err error) {
	if len(s.Connectors) == 0 {
		return s.Project.Connectors, nil, nil
	}
	versions = map[spec.FQN]string{}
	for _, named := range s.Connectors {
		name, version, versioned := strings.Cut(named, "@")
		fqn, err := connectors.NewNames(d).Resolve(name)
		switch {
		case err != nil:
			return nil, nil, err
		case versioned && !spec.IsVersion(version):
			return nil, nil, failure.Usagef("--connector is %q; a version is MAJOR.MINOR.PATCH", named)
		case versioned && versions[fqn] != "" && versions[fqn] != version:
			return nil, nil, failure.Usagef("--connector names two versions of %s; a session uses one", fqn)
		case versioned:
			versions[fqn] = version
		}
		used = append(used, fqn)
	}
	return used, versions, nil
}
