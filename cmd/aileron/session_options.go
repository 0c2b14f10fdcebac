package main

import (
	"maps"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/internal/session"
	"github.com/ALRubinger/aileron/spec"
	"github.com/ALRubinger/aileron/spec/store"
	"github.com/ALRubinger/aileron/vault"
)

// sessionOptions are the flags of every verb that opens a session.
type sessionOptions struct {
	upstreamOptions
	egress         string
	binds          []string
	allow          []string
	connectors     []string
	passphraseFile string
	capture        string
	project        projectUse
	given          func(flag string) bool // whether a flag is on the command line; nil where no project's file is used

	optional []session.Request // of the command
	opened   *vault.Vault      // unlocked before the session opens; nil: it unlocks the vault itself
	reading  *store.Reading    // of the installed connectors, begun before the session opens; nil: the session reads them
	quiet    bool              // no report at the end
	reported bool              // a report at the end even without a terminal
	shares   session.Shared    // for the audit log
}

// registerQuiet adds the flag of the verbs that report at the end.
func (o *sessionOptions) registerQuiet(cmd *cobra.Command) {
	cmd.Flags().BoolVarP(&o.quiet, "quiet", "q", false, "do not report at the end what happened in the session")
}

func (o *sessionOptions) register(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&o.egress, "egress", "deny", "what happens to hosts that no connector names: deny or passthrough")
	o.upstreamOptions.register(cmd)
	f.StringArrayVar(&o.binds, "bind", nil, "CONNECTOR=IDENTITY: which binding of a connector to use (repeatable)")
	f.StringSliceVar(&o.allow, "allow", nil,
		"HOST[:PORT],…: allow requests to hosts that no connector names, for this session, without credentials (repeatable)")
	f.StringSliceVar(&o.connectors, "connector", nil,
		"use only these of the installed connectors: CONNECTOR[@VERSION],… (repeatable)")
	f.StringVar(&o.capture, "capture", "",
		"record requests and responses with headers and bodies, redacted, in this new HAR file")
	passphraseFlag(cmd, &o.passphraseFile)
}

func (o *sessionOptions) check() error {
	if err := oneOf("egress", o.egress, "deny", "passthrough"); err != nil {
		return err
	}
	for _, host := range o.allow {
		if _, err := spec.ParseHost(host); err != nil {
			return usagef("--allow is %q; it must be HOST or HOST:PORT: %v", host, err)
		}
	}
	for _, b := range o.binds {
		if fqn, identity, ok := strings.Cut(b, "="); !ok || fqn == "" || identity == "" {
			return usagef("--bind is %q; it must be CONNECTOR=IDENTITY", b)
		}
	}
	return nil
}

// bindings returns the identities that --bind chooses, or else the project's file.
func (o *sessionOptions) bindings(a *app) (map[spec.FQN]string, error) {
	chosen, names := maps.Clone(o.project.bindings), a.connectorNames()
	if chosen == nil {
		chosen = map[spec.FQN]string{}
	}
	for _, b := range o.binds {
		name, identity, _ := strings.Cut(b, "=")
		fqn := spec.FQN(name)
		if isShortName(name) {
			var err error
			if fqn, err = names.resolve(name); err != nil {
				return nil, err
			}
		}
		chosen[fqn] = identity
	}
	return chosen, nil
}

// used returns the connectors that --connector names, or else the project's file, nil for all, and the versions that
// are named with them.
func (o *sessionOptions) used(a *app) (used []spec.FQN, versions map[spec.FQN]string, err error) {
	if len(o.connectors) == 0 {
		return o.project.connectors, nil, nil
	}
	versions = map[spec.FQN]string{}
	for _, named := range o.connectors {
		name, version, versioned := strings.Cut(named, "@")
		fqn, err := a.connectorNames().resolve(name)
		switch {
		case err != nil:
			return nil, nil, err
		case versioned && !spec.IsVersion(version):
			return nil, nil, usagef("--connector is %q; a version is MAJOR.MINOR.PATCH", named)
		case versioned && versions[fqn] != "" && versions[fqn] != version:
			return nil, nil, usagef("--connector names two versions of %s; a session uses one", fqn)
		case versioned:
			versions[fqn] = version
		}
		used = append(used, fqn)
	}
	return used, versions, nil
}
