package session

import (
	"context"
	"log/slog"

	"github.com/ALRubinger/aileron/internal/config"
	"github.com/ALRubinger/aileron/internal/filelock"
	"github.com/ALRubinger/aileron/proxy/upstream"
	"github.com/ALRubinger/aileron/spec"
	"github.com/ALRubinger/aileron/vault"
)

// Options describes the session that [Open] opens. Home and Vault are required.
type Options struct {
	Home  string // holds everything that aileron keeps
	Agent string // name of the command; "" for the proxy alone
	Mode  string // podman, docker, off or proxy

	Config   config.Config
	Upstream upstream.Options // how upstreams are reached
	// Passthrough forwards requests that no connector allows, unmodified.
	Passthrough bool
	// Allow names hosts, as "host" or "host:port", that are allowed as they are besides what connectors allow, without
	// credentials. An installed connector that names one takes precedence.
	Allow []string
	// Connectors are those of the installed connectors that the session uses: others are as if they were not installed.
	// Nil means all of them.
	Connectors []spec.FQN
	// Bindings is the identity to use, by connector. It is needed for a connector
	// with several.
	Bindings map[spec.FQN]string

	// Project is the project's file that is in force, for session.started. Its zero value means none.
	Project ProjectFile

	// Vault is that of the home. Unlock returns it unlocked; it is called if a
	// credential is bound, and may ask for a passphrase until its context ends.
	Vault  *vault.Vault
	Unlock func(context.Context) (*vault.Vault, error)

	// Stop ends the session from the moment it is listed; nil means that only its
	// control socket does.
	Stop  *StopRequest
	Locks filelock.Locker // of the session's directory

	Log *slog.Logger // nil: discard
	// Infof prints a line for the user; nil means to discard it.
	Infof func(format string, args ...any)
	// Report prints an error that does not decide how the session ends; nil means
	// to discard it.
	Report func(error)
}

// ProjectFile describes the file of a project that decides about its session.
type ProjectFile struct {
	Hash   string   // of its bytes: sha256:…
	Widens []string // what a person has agreed to
}

// withDefaults returns the options with every callback set.
func (o Options) withDefaults() Options {
	if o.Stop == nil {
		o.Stop = NewStopRequest()
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Infof == nil {
		o.Infof = func(string, ...any) {}
	}
	if o.Report == nil {
		o.Report = func(error) {}
	}
	return o
}

// egress returns the word for what happens to hosts that no connector names.
func (o Options) egress() string {
	if o.Passthrough {
		return "passthrough"
	}
	return "deny"
}

// addTo adds to the fields of session.started what the session uses that others do not.
func (o Options) addTo(fields map[string]any) {
	if len(o.Allow) > 0 {
		fields["allow"] = o.Allow
	}
	if o.Connectors != nil {
		fields["connectors"] = o.Connectors
	}
	if o.Project.Hash != "" {
		fields["project_file"] = o.Project.Hash
	}
	if len(o.Project.Widens) > 0 {
		fields["project_widens"] = o.Project.Widens
	}
}
