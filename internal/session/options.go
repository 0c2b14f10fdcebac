package session

import (
	"context"
	"log/slog"

	"github.com/ALRubinger/aileron/internal/config"
	"github.com/ALRubinger/aileron/internal/filelock"
	"github.com/ALRubinger/aileron/internal/otlp"
	"github.com/ALRubinger/aileron/proxy/upstream"
	"github.com/ALRubinger/aileron/spec"
	"github.com/ALRubinger/aileron/spec/store"
	"github.com/ALRubinger/aileron/vault"
)

// Options describes the session that [Open] opens. Home and Vault are required.
type Options struct {
	Home  string // holds everything that aileron keeps
	Agent string // name of the command; "" for the proxy alone
	Mode  string // podman, docker, off or proxy
	// Detached marks a session whose command has no person's terminal, see package detached.
	Detached bool

	Config   config.Config
	Upstream upstream.Options // how upstreams are reached
	// Passthrough forwards requests that no connector allows, unmodified.
	Passthrough bool
	// Allow names hosts, as "host" or "host:port", that are allowed as they are besides what connectors allow, without
	// credentials. An installed connector that names one takes precedence.
	Allow []string
	// Store is the connector store of Home. Nil means that the session opens it.
	Store *store.Store
	// Reading is a reading of Store that was begun before. Nil means none: the session reads what is installed itself.
	Reading *store.Reading
	// Connectors are those of the installed connectors that the session uses: others are as if they were not installed.
	// Nil means all of them.
	Connectors []spec.FQN
	// Versions are the versions to use, by connector. Of others it is the highest that is installed, and a pre-release
	// only if there is nothing else.
	Versions map[spec.FQN]string
	// Bindings is the identity to use, by connector. It is needed for a connector
	// with several.
	Bindings map[spec.FQN]string

	// Export is the collector to which the rows of the log are exported. Its zero value is none.
	Export otlp.Target

	// Capture is the HAR file in which exchanges are recorded with headers and bodies; "" for none.
	Capture string

	// Optional are requests that the command sends of its own accord, and works without. Where they are denied, the
	// tally keeps them apart; the audit log does not.
	Optional []Request

	// Project is the project's file that is in force, for session.started. Its zero value means none.
	Project ProjectFile
	// Shared is what a sandbox shares with this host, for session.started. Its zero value means its project alone.
	Shared Shared

	// Version is that of aileron, for session.started.
	Version string
	// UpstreamCA is the file of the roots in Upstream, for session.started. "" is none.
	UpstreamCA string

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

// Shared describes what a sandbox shares with this host besides its project.
type Shared struct {
	Mounts    []string // SRC:DST, or SRC:DST:ro
	Variables []string // names: a value may be a secret that aileron does not know
	Ports     []string // HOST:PORT, of 127.0.0.1
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
