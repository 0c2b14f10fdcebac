package cli

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/internal/config"
	"github.com/ALRubinger/aileron/internal/failure"
	"github.com/ALRubinger/aileron/internal/project"
	"github.com/ALRubinger/aileron/internal/session"
	"github.com/ALRubinger/aileron/spec"
	"github.com/ALRubinger/aileron/spec/store"
	"github.com/ALRubinger/aileron/vault"
)

// SessionOptions are the flags of every verb that opens a session.
type SessionOptions struct {
	UpstreamOptions
	project.Session
	PassphraseFile string
	Capture        string

	Optional []session.Request // of the command
	Opened   *vault.Vault      // unlocked before the session opens; nil: it unlocks the vault itself
	Reading  *store.Reading    // of the installed connectors, begun before the session opens; nil: the session reads them
	Quiet    bool              // no report at the end
	Reported bool              // a report at the end even without a terminal
	Shares   session.Shared    // for the audit log
}

// RegisterProject adds the flags of the commands that use a project's file.
func (o *SessionOptions) RegisterProject(cmd *cobra.Command) {
	f := cmd.Flags()
	f.BoolVar(&o.Project.Trust, "trust-project", false,
		"agree to what the project's "+config.ProjectFile+" asks for, without a question")
	f.BoolVar(&o.Project.Ignore, "ignore-project", false, "start without the project's "+config.ProjectFile)
	cmd.MarkFlagsMutuallyExclusive("trust-project", "ignore-project")
	o.Given = f.Changed
}

// RegisterQuiet adds the flag of the verbs that report at the end.
func (o *SessionOptions) RegisterQuiet(cmd *cobra.Command) {
	cmd.Flags().BoolVarP(&o.Quiet, "quiet", "q", false, "do not report at the end what happened in the session")
}

// Register adds all flags.
func (o *SessionOptions) Register(cmd *cobra.Command) {
	o.RegisterTraffic(cmd)
	f := cmd.Flags()
	f.StringArrayVar(&o.Binds, "bind", nil, "CONNECTOR=IDENTITY: which binding of a connector to use (repeatable)")
	f.StringSliceVar(&o.Connectors, "connector", nil,
		"use only these of the installed connectors: CONNECTOR[@VERSION],… (repeatable)")
	PassphraseFlag(cmd, &o.PassphraseFile)
}

// RegisterTraffic adds the flags that are not about the store and the vault of the home.
func (o *SessionOptions) RegisterTraffic(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&o.Egress, "egress", "deny", "what happens to hosts that no connector names: deny or passthrough")
	f.BoolVar(&o.Learn, "learn", false,
		"let hosts that no connector names pass, as --egress=passthrough does, and note what aileron learn needs")
	cmd.MarkFlagsMutuallyExclusive("learn", "egress")
	o.UpstreamOptions.Register(cmd)
	f.StringSliceVar(&o.Allow, "allow", nil,
		"HOST[:PORT],…: allow requests to hosts that no connector names, for this session, without credentials (repeatable)")
	f.StringArrayVar(&o.Approve, "approve", nil,
		"METHOD PATH or METHOD HOST/PATH: ask before such requests, as in 'POST *' (repeatable)")
	f.StringArrayVar(&o.Budget, "budget", nil,
		"NAME=AMOUNT: deny requests once this session has used so much, as in output_tokens=2M (repeatable)")
	f.StringVar(&o.Capture, "capture", "",
		"record requests and responses with headers and bodies, redacted, in this new HAR file")
}

func (o *SessionOptions) Check() error {
	if o.Learn {
		o.Egress = "passthrough"
	}
	if err := OneOf("egress", o.Egress, "deny", "passthrough"); err != nil {
		return err
	}
	for _, host := range o.Allow {
		if _, err := spec.ParseHost(host); err != nil {
			return failure.Usagef("--allow is %q; it must be HOST or HOST:PORT: %v", host, err)
		}
	}
	for _, limit := range o.Budget {
		if _, _, err := config.ParseBudget(limit); err != nil {
			return failure.Usagef("--budget: %v", err)
		}
	}
	if _, err := o.Asks(); err != nil {
		return err
	}
	return CheckBinds(o.Binds)
}

// CheckBinds returns an error unless each value of --bind has its form.
func CheckBinds(binds []string) error {
	for _, b := range binds {
		if fqn, identity, ok := strings.Cut(b, "="); !ok || fqn == "" || identity == "" {
			return failure.Usagef("--bind is %q; it must be CONNECTOR=IDENTITY", b)
		}
	}
	return nil
}
