package cli

import (
	"maps"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/internal/connectors"
	"github.com/ALRubinger/aileron/internal/failure"
	"github.com/ALRubinger/aileron/internal/session"
	"github.com/ALRubinger/aileron/spec"
	"github.com/ALRubinger/aileron/spec/store"
	"github.com/ALRubinger/aileron/vault"
)

// SessionOptions are the flags of every verb that opens a session.
type SessionOptions struct {
	UpstreamOptions
	Egress         string
	Binds          []string
	Allow          []string
	Connectors     []string
	PassphraseFile string
	Capture        string
	Project        ProjectUse
	Given          func(flag string) bool // whether a flag is on the command line; nil where no project's file is used

	Optional []session.Request // of the command
	Opened   *vault.Vault      // unlocked before the session opens; nil: it unlocks the vault itself
	Reading  *store.Reading    // of the installed connectors, begun before the session opens; nil: the session reads them
	Quiet    bool              // no report at the end
	Reported bool              // a report at the end even without a terminal
	Shares   session.Shared    // for the audit log
}

// RegisterQuiet adds the flag of the verbs that report at the end.
func (o *SessionOptions) RegisterQuiet(cmd *cobra.Command) {
	cmd.Flags().BoolVarP(&o.Quiet, "quiet", "q", false, "do not report at the end what happened in the session")
}

func (o *SessionOptions) Register(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&o.Egress, "egress", "deny", "what happens to hosts that no connector names: deny or passthrough")
	o.UpstreamOptions.Register(cmd)
	f.StringArrayVar(&o.Binds, "bind", nil, "CONNECTOR=IDENTITY: which binding of a connector to use (repeatable)")
	f.StringSliceVar(&o.Allow, "allow", nil,
		"HOST[:PORT],…: allow requests to hosts that no connector names, for this session, without credentials (repeatable)")
	f.StringSliceVar(&o.Connectors, "connector", nil,
		"use only these of the installed connectors: CONNECTOR[@VERSION],… (repeatable)")
	f.StringVar(&o.Capture, "capture", "",
		"record requests and responses with headers and bodies, redacted, in this new HAR file")
	PassphraseFlag(cmd, &o.PassphraseFile)
}

func (o *SessionOptions) Check() error {
	if err := OneOf("egress", o.Egress, "deny", "passthrough"); err != nil {
		return err
	}
	for _, host := range o.Allow {
		if _, err := spec.ParseHost(host); err != nil {
			return failure.Usagef("--allow is %q; it must be HOST or HOST:PORT: %v", host, err)
		}
	}
	for _, b := range o.Binds {
		if fqn, identity, ok := strings.Cut(b, "="); !ok || fqn == "" || identity == "" {
			return failure.Usagef("--bind is %q; it must be CONNECTOR=IDENTITY", b)
		}
	}
	return nil
}

// Bindings returns the identities that --bind chooses, or else the project's file.
func (o *SessionOptions) Bindings(a *App) (map[spec.FQN]string, error) {
	chosen, names := maps.Clone(o.Project.bindings), connectors.NewNames(a.Dir)
	if chosen == nil {
		chosen = map[spec.FQN]string{}
	}
	for _, b := range o.Binds {
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

// Used returns the connectors that --connector names, or else the project's file, nil for all, and the versions that
// are named with them.
func (o *SessionOptions) Used(a *App) (used []spec.FQN, versions map[spec.FQN]string, err error) {
	if len(o.Connectors) == 0 {
		return o.Project.Connectors, nil, nil
	}
	versions = map[spec.FQN]string{}
	for _, named := range o.Connectors {
		name, version, versioned := strings.Cut(named, "@")
		fqn, err := connectors.NewNames(a.Dir).Resolve(name)
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
