package doctor

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/ALRubinger/aileron/internal/connectors"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/internal/hosttrust"
	"github.com/ALRubinger/aileron/internal/session"
	"github.com/ALRubinger/aileron/sandbox"
	"github.com/ALRubinger/aileron/sandbox/agents"
	"github.com/ALRubinger/aileron/sandbox/engine"
	"github.com/ALRubinger/aileron/sandbox/native"
	"github.com/ALRubinger/aileron/spec"
	"github.com/ALRubinger/aileron/spec/signature"
	"github.com/ALRubinger/aileron/vault"
)

// checkConnectors checks what is installed, and whether what needs a credential has one.
func (d *Doctor) checkConnectors(context.Context) {
	s, err := d.OpenStore()
	if err != nil {
		d.add(failed("connectors", err, ""))
		return
	}
	current, faults := s.Current()
	for _, fault := range faults {
		d.add(failed("connectors", fault, "aileron connector verify; then install it again, or remove it"))
	}
	if len(current) == 0 {
		d.add(warning("connectors", "aileron setup, or: aileron connector install SRC",
			"none is installed: every request is denied"))
		return
	}
	for _, c := range current {
		if p := connectors.CheckInstalled(d.Dir, s, signature.ClaimOf(c)); p.Err != nil {
			d.add(warning("connectors", "install it again from the package that its publisher has signed, or: "+
				fmt.Sprintf("aileron connector remove %s@%s", c.FQN, c.Version),
				"%s@%s is still allowed, but its signature is refused: %s", c.FQN, c.Version, p.Why()))
		}
	}
	bound, err := d.boundConnectors()
	if err != nil {
		return // checkVault has it
	}
	unbound := 0
	for _, c := range current {
		if c.Credential() != nil && !slices.Contains(bound, c.FQN) {
			unbound++
			d.add(warning("connectors", "aileron binding setup "+string(c.FQN), "%s has no credential", c.FQN))
		}
	}
	if len(faults) == 0 {
		d.add(healthy("connectors", "%s installed, %d without the credential that they need",
			hint.Plural(len(current), "connector"), unbound))
	}
}

// boundConnectors returns the connectors that have a binding.
func (d *Doctor) boundConnectors() ([]spec.FQN, error) {
	v, err := d.VaultOf()
	if err != nil {
		return nil, err
	}
	bindings, err := v.Bindings()
	if err != nil && !errors.Is(err, vault.ErrNotInitialised) {
		return nil, err
	}
	var bound []spec.FQN
	for _, b := range bindings {
		bound = append(bound, spec.FQN(b.Connector))
	}
	return bound, nil
}

// checkAgents checks for each agent whether a connector for its model provider is installed.
func (d *Doctor) checkAgents(context.Context) {
	s, err := d.OpenStore()
	if err != nil {
		return
	}
	current, _ := s.Current()
	var ready []string
	for _, name := range agents.Names() {
		agent, _ := agents.Find(name)
		has := func(c *spec.Connector) bool { return connectors.IsModel(c, agent) }
		if slices.ContainsFunc(current, has) {
			ready = append(ready, name)
			continue
		}
		d.add(warning("agents", "aileron setup "+name, "%s has no connector for a model provider (%s)", name,
			strings.Join(agent.Connectors, ", ")))
	}
	if len(ready) > 0 {
		d.add(healthy("agents", "%s: a connector for the model provider is installed", strings.Join(ready, ", ")))
	}
}

// checkSessions looks for sessions that were killed.
func (d *Doctor) checkSessions(ctx context.Context) {
	home, err := d.Home()
	if err != nil {
		return
	}
	all, err := d.Sessions(home).List(ctx)
	if err != nil {
		d.add(failed("sessions", err, "aileron audit verify"))
		return
	}
	running, unclean := 0, 0
	for _, s := range all {
		switch s.State {
		case "running":
			running++
		case "unclean":
			unclean++
		}
	}
	if unclean > 0 {
		d.add(warning("sessions", "the next session records their end; aileron session list shows them, and aileron "+
			"sandbox prune removes their containers", "%s killed", hint.Plural(unclean, "session")+" "+wasWere(unclean)))
		return
	}
	d.add(healthy("sessions", "%d running", running))
}

func wasWere(n int) string {
	if n == 1 {
		return "was"
	}
	return "were"
}

// engineTime is how long an engine may take for all that doctor asks it. A launch waits longer: it is wanted.
const engineTime = 20 * time.Second

var errNoResponse = fmt.Errorf("it did not respond within %v", engineTime)

// checkEngines checks every engine that responds. One is enough.
func (d *Doctor) checkEngines(ctx context.Context) {
	var missing []error
	responding := 0
	for _, kind := range sandbox.Kinds() {
		if kind == "auto" {
			continue
		}
		switch err := d.checkKind(ctx, kind); {
		case err == nil:
			responding++
		case errors.Is(err, errNoResponse):
			d.add(warning(kind, "restart it, or look at what it does; a launch waits for it for minutes", "%v", err))
			missing = append(missing, err)
		default:
			missing = append(missing, err)
		}
	}
	if responding == 0 && ctx.Err() == nil {
		native := checkNative()
		if native.State == StateOK && !engine.Installed() {
			d.add(warning("engine", "nothing, for sandboxes are native then; or install Podman (apt-get install podman)",
				"neither Podman nor Docker is installed"))
		} else {
			_, err := exec.LookPath("podman")
			d.add(failed("engine", fmt.Errorf("neither Podman nor Docker responds: %w", errors.Join(missing...)),
				EngineFix(err == nil)))
		}
		d.add(native)
	}
}

// checkNative tries what takes no engine.
func checkNative() Finding {
	err := sandbox.TryNative()
	if refused := (*native.Refusal)(nil); errors.As(err, &refused) {
		return warning(sandbox.Native, refused.Remedy, "%v", err)
	}
	if err != nil {
		return warning(sandbox.Native, "an engine does not take it", "%v", err)
	}
	return healthy(sandbox.Native, "works without an engine, for agents that are installed on this host: "+
		"aileron launch --sandbox=native AGENT (docs/native.md)")
}

// EngineFix returns what to do where no engine responds.
func EngineFix(hasPodman bool) string {
	if hasPodman {
		return "repair Podman, which is installed: podman info has the same error; or start Docker"
	}
	return "install Podman (apt-get install podman), or start Docker"
}

// checkKind checks one kind of engine, and returns an error if there is none that responds in time.
func (d *Doctor) checkKind(ctx context.Context, kind string) error {
	bounded, cancel := context.WithTimeout(ctx, engineTime)
	defer cancel()
	e, err := sandbox.Find(bounded, kind, d.Patience()) // config.toml may be what is wrong
	if err == nil {
		defer e.Close()
		d.checkEngine(bounded, e)
	}
	if bounded.Err() != nil && ctx.Err() == nil {
		return fmt.Errorf("%s: %w", kind, errNoResponse)
	}
	return err
}

// CheckStorage returns a finding about storage that works and is slow.
func CheckStorage(name string, about engine.About) []Finding {
	if about.Storage != "vfs" {
		return nil
	}
	return []Finding{warning(name, "docs/sandbox.md, under Known limits, has the setting of a fast one",
		"its storage is vfs: each sandbox begins with a copy of its image, of a gigabyte or more")}
}

// checkEngine checks what an engine says about itself, and which of aileron's images it has.
func (d *Doctor) checkEngine(ctx context.Context, e *sandbox.Engine) {
	name := e.Kind()
	about, err := e.About(ctx)
	if ctx.Err() != nil {
		return // its caller has it
	}
	if err != nil {
		d.add(failed(name, err, "aileron sandbox check --sandbox="+name+" --agent=sh"))
		return
	}
	d.add(healthy(name, "%s, storage %s, control groups %s", e.Describe(), about.Storage, about.Groups))
	d.add(CheckStorage(name, about)...)
	if missing := unlimited(about); len(missing) > 0 {
		d.add(warning(name, "docs/sandbox.md explains how to delegate control groups",
			"it does not enforce limits of %s", strings.Join(missing, ", ")))
	}
	if !about.Seccomp {
		d.add(failed(name, errors.New("it has no seccomp: a sandbox could call what aileron's profile forbids"),
			"use a kernel and an engine with seccomp"))
	}
	var built []string
	for _, agent := range agents.Names() {
		a, _ := agents.Find(agent)
		if a.Recipe == nil {
			continue
		}
		if _, err := e.Image(ctx, sandbox.AgentImage(a.Name, a.Recipe).Ref); err == nil {
			built = append(built, agent)
		}
	}
	if len(built) == 0 {
		d.add(warning(name, "aileron sandbox build AGENT, or the first launch, builds it", "no agent's image is built"))
		return
	}
	d.add(healthy(name, "images of %s are built", strings.Join(built, ", ")))
}

// unlimited returns what an engine cannot limit.
func unlimited(about engine.About) []string {
	var missing []string
	for _, limit := range []struct {
		name string
		has  bool
	}{{"memory", about.LimitsMemory}, {"CPUs", about.LimitsCPUs}, {"processes", about.LimitsProcesses}} {
		if !limit.has {
			missing = append(missing, limit.name)
		}
	}
	return missing
}

// checkTrust looks for roots in trust stores of this host that should not be there any more.
func (d *Doctor) checkTrust(context.Context) {
	home, err := d.Home()
	if err != nil {
		return
	}
	for _, r := range (hosttrust.Ledger{Home: home}).Records() {
		switch alive := session.Alive(home, r.Session); {
		case r.Err != nil:
			d.add(failed("trust", r.Err, ""))
		case alive && time.Now().Before(r.NotAfter):
			d.add(healthy("trust", "%s of this host trust the root of the session %s, until it ends",
				hint.Plural(len(r.Stores), "store"), r.Session))
		default:
			var stores []string
			for _, s := range r.Stores {
				stores = append(stores, s.String())
			}
			d.add(failed("trust", fmt.Errorf("the root of the session %s, which has ended, is in trust stores of this host: %s",
				r.Session, strings.Join(stores, ", ")), "aileron ca untrust "+r.Session))
		}
	}
}
