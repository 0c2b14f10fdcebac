package session

import (
	"context"
	"log/slog"
	"maps"
	"os/exec"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/internal/approvals"
	"github.com/ALRubinger/aileron/internal/config"
	"github.com/ALRubinger/aileron/internal/filelock"
	"github.com/ALRubinger/aileron/internal/otlp"
	"github.com/ALRubinger/aileron/proxy"
	"github.com/ALRubinger/aileron/proxy/meter"
	"github.com/ALRubinger/aileron/proxy/upstream"
	"github.com/ALRubinger/aileron/proxy/wire"
	"github.com/ALRubinger/aileron/spec"
	"github.com/ALRubinger/aileron/spec/store"
	"github.com/ALRubinger/aileron/vault"
)

// Options describes the session that [Open] opens. Home is required, and Vault or Grants.
type Options struct {
	Home  string // holds everything that aileron keeps
	Agent string // name of the command; "" for the proxy alone
	Mode  string // podman, docker, native, off, proxy or serve; auto until the engine is found, see [Session.NoteMode]
	// Detached marks a session whose command has no person's terminal, see package detached.
	Detached bool

	Config   config.Config
	Upstream upstream.Options // how upstreams are reached
	// Passthrough forwards requests that no connector allows, unmodified.
	Passthrough bool
	// Learn passes requests on as Passthrough does, and notes the names in their queries and the types of their bodies in
	// a file of the session: see package learn.
	Learn bool
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

	// Approve names requests about which the owner is asked, besides those of operations that require it. Unasked is
	// whether a connector is the agent's model, which is not asked about for them; nil: none is.
	Approve []approvals.Pattern
	Unasked func(*spec.Connector) bool
	// Budget is what the session may use up, by the names of meters.
	Budget meter.Limits
	// Notifier notifies the owner of requests that wait. Nil means that they are listed alone.
	Notifier *approvals.Notifier
	// Decider is asked before the owner. Nil: none is.
	Decider *approvals.Decider

	// Project is the project's file that is in force, for session.started. Its zero value means none.
	Project ProjectFile
	// Shared is what a sandbox shares with this host, for session.started. Its zero value means its project alone.
	Shared Shared

	// Version is that of aileron, for session.started.
	Version string
	// UpstreamCA is the file of the roots in Upstream, for session.started. "" is none.
	UpstreamCA string

	// Grants takes the place of the store and the vault. The session opens without any of them, and has them from its
	// first [Session.Reload] on: what cannot be used is left out and recorded, also at the start. Nil: there are none.
	Grants Grants
	// Observe is called with each row of a request, an approval or a renewal when it is recorded. It must not block. Nil:
	// nothing is.
	Observe func(*audit.Row)

	// Vault is that of the home. Unlock returns it unlocked; it is called if a
	// credential is bound, and may ask for a passphrase until its context ends. With Grants, neither is used.
	Vault  *vault.Vault
	Unlock func(context.Context) (*vault.Vault, error)

	// Start starts the programs that print credentials; nil is [exec.Cmd.Start].
	Start func(*exec.Cmd) error

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
	o.Passthrough = o.Passthrough || o.Learn
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

// maxNamed is how many values of a flag session.started names. The number of all of them is in another field then.
const maxNamed = 64

// Sandbox describes the sandbox of a session's command. Its zero value is none.
type Sandbox struct {
	Image, ImageID string // as it was asked for, and what that stood for
	EngineVersion  string // of the engine that Options.Mode names
	Network        string // --sandbox-proxy: on, auto or off
	ReadOnly       bool   // the command cannot change the image's files
	Protect        bool   // nor the project's files that the host would run
	Keep           bool   // its state outlives the sandbox
	Unattended     bool   // the agent uses its tools without asking
}

// addTo adds the sandbox to the fields of session.started.
func (b Sandbox) addTo(fields map[string]any) {
	for name, text := range map[string]string{
		"image": b.Image, "image_id": b.ImageID, "engine_version": b.EngineVersion, "sandbox_proxy": b.Network,
	} {
		if text != "" {
			fields[name] = text
		}
	}
	for name, set := range map[string]bool{"read_only": b.ReadOnly, "protect": b.Protect, "keep": b.Keep,
		"unattended": b.Unattended} {
		if set {
			fields[name] = true
		}
	}
}

// addTo adds to the fields of session.started what the session uses that others do not.
func (o Options) addTo(fields map[string]any) {
	if o.Detached {
		fields["detached"] = true
	}
	if o.Learn {
		fields["learn"] = true
	}
	if o.Connectors != nil {
		names := make([]string, 0, len(o.Connectors))
		for _, fqn := range o.Connectors {
			names = append(names, string(fqn))
		}
		fields["connectors"] = names
		addNamed(fields, "connectors", names)
	}
	for name, values := range map[string][]string{
		"allow": o.Allow, "mounts": o.Shared.Mounts, "env": o.Shared.Variables, "ports": o.Shared.Ports,
		"tunnel": o.Config.Tunnel, "resolve": o.resolved(), "no_proxy": o.Upstream.NoProxy, "allow_ranges": o.allowedRanges(),
		"project_widens": o.Project.Widens, "approve": o.approve(), "budget": o.budget(),
	} {
		addNamed(fields, name, values)
	}
	for name, text := range map[string]string{
		"aileron": o.Version, "project_file": o.Project.Hash, "upstream_ca": o.UpstreamCA,
	} {
		if text != "" {
			fields[name] = text
		}
	}
	if proxy := o.Upstream.Proxy; proxy != nil {
		fields["upstream_proxy"] = proxy.Host // its URL may have a password
	}
}

// addNamed adds values to fields: at most [maxNamed] of them, and the number of all if there are more.
func addNamed(fields map[string]any, name string, values []string) {
	if len(values) > 0 {
		fields[name] = values[:min(len(values), maxNamed)]
	}
	if len(values) > maxNamed {
		fields[name+"_total"] = len(values)
	}
}

// approve returns the requests about which the owner is asked.
func (o Options) approve() (all []string) {
	for _, p := range o.Approve {
		all = append(all, p.String())
	}
	return all
}

// allowedRanges returns the special addresses that may be dialled.
func (o Options) allowedRanges() (all []string) {
	for _, p := range o.Upstream.Ranges {
		all = append(all, p.String())
	}
	return all
}

// resolved returns the hosts that are reached at an address of the user's, as HOST:PORT:ADDR.
func (o Options) resolved() []string {
	var all []string
	for _, host := range slices.Sorted(maps.Keys(o.Upstream.Resolve)) {
		all = append(all, host+":"+o.Upstream.Resolve[host].String())
	}
	return all
}

// cpus returns how many processors the session may use besides its sandbox, which may use as many; 0 is no bound.
func (o Options) cpus() float64 {
	switch {
	case o.Config.Sandbox.CPUs != nil:
		return float64(*o.Config.Sandbox.CPUs)
	case o.Mode == "podman", o.Mode == "docker", o.Mode == "native", o.Mode == "auto":
		return max(float64(runtime.NumCPU())-0.25, 0) // as the sandbox
	}
	return 0
}

// planeLimits returns the plane's limits for those of config.toml.
func (o Options) planeLimits() proxy.Limits {
	l := o.Config.Limits
	return proxy.Limits{
		CPUs: o.cpus(),
		Wire: wire.Limits{
			Head: l.HeadBytes, Fields: l.HeadFields, Body: l.BodyBytes,
			Header: time.Duration(l.HeadTimeout), Idle: time.Duration(l.IdleTimeout),
			Stalled: time.Duration(l.WriteTimeout), Progress: time.Duration(l.BodyTimeout),
			Pause: time.Duration(l.BodyPauseTimeout),
		},
		Connections: l.Connections, Requests: l.Requests, Rate: l.Rate, Memory: l.MemoryBytes,
		Handshake: time.Duration(l.HandshakeTimeout),
		Drain:     time.Duration(l.DrainTimeout),
	}
}

// StopRequest is a request to end a session, such as that of aileron session
// stop. It can be made at any time, before the session is open too, and cannot
// be withdrawn.
type StopRequest struct {
	requested chan struct{}
	once      sync.Once
}

// NewStopRequest returns a request that has not been made.
func NewStopRequest() *StopRequest { return &StopRequest{requested: make(chan struct{})} }

// Request makes the request.
func (r *StopRequest) Request() { r.once.Do(func() { close(r.requested) }) }

// Done is closed when the request is made.
func (r *StopRequest) Done() <-chan struct{} { return r.requested }

// Requested reports whether the request has been made.
func (r *StopRequest) Requested() bool {
	select {
	case <-r.requested:
		return true
	default:
		return false
	}
}

// WithStop returns a context that ends when the request is made.
func (r *StopRequest) WithStop(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		select {
		case <-r.requested:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}

// StoppedCause is the cause with which a session ends that was asked to stop.
const StoppedCause = "stopped by aileron session stop"

// ErrStopped is returned for a session that was stopped before its command
// began.
var ErrStopped error = stoppedError{}

type stoppedError struct{}

func (stoppedError) Error() string { return StoppedCause }

// ExitCode returns [StoppedCode].
func (stoppedError) ExitCode() int { return StoppedCode }

// StoppedCode is the exit code of ErrStopped: a command that has begun is
// stopped by SIGTERM.
const StoppedCode = 143
