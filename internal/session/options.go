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

	Config      config.Config
	Upstream    upstream.Options                            // how upstreams are reached
	Passthrough bool                                        // forward what no connector names, unmodified
	Bindings    map[spec.FQN]string                         // the identity to use, by connector; needed where several are bound
	Stop        *StopRequest                                // ends the session from the moment it is listed; nil: none but its own
	Locks       filelock.Locker                             // of the session's directory
	Vault       *vault.Vault                                // of the home, locked
	Unlock      func(context.Context) (*vault.Vault, error) // returns the vault unlocked; called if a credential is bound

	Log    *slog.Logger                     // nil: discard
	Infof  func(format string, args ...any) // prints a line for the user; nil: discard
	Report func(error)                      // prints an error that does not decide how the session ends; nil: discard
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
