package project

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/ALRubinger/aileron/internal/failure"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/internal/launch"
	"github.com/ALRubinger/aileron/internal/session"
	"github.com/ALRubinger/aileron/sandbox/agents"
	"github.com/ALRubinger/aileron/sandbox/engine"
)

// Sandbox is what a command asks for of a sandbox. The project's file adds to it.
type Sandbox struct {
	Image    string // a person's own; "": aileron's
	Dir      string // of the project
	Native   bool   // it has this host's programs, and no image
	ReadOnly bool   // the root file system is read-only
	Protect  bool   // so are the project's files that the host would run
	Custom   Custom
	// Devcontainer is that of the project.
	Devcontainer Devcontainer
	Mounts       []string // SRC[:DST][:ro]
	Env          []string // K=V
	Ports        []string // [HOST:]PORT

	Shared *Shared // the last three, and those of the project's file; nil: not parsed yet
}

// Shared are what a sandbox shares with this host besides its project.
type Shared struct {
	Mounts []engine.Mount
	Env    []string
	Ports  []launch.Port
}

// Recorded returns it for the audit log.
func (o *Shared) Recorded() session.Shared {
	r := session.Shared{Variables: variableNames(o.Env)}
	for _, m := range o.Mounts {
		text := m.Source + ":" + m.Target
		if m.ReadOnly {
			text += ":ro"
		}
		r.Mounts = append(r.Mounts, text)
	}
	for _, p := range o.Ports {
		r.Ports = append(r.Ports, fmt.Sprintf("%d:%d", p.Host, p.Sandbox))
	}
	return r
}

// CheckShared returns a usage error for a variable that a sandbox cannot have and, without a sandbox (off), for flags
// that are for one: the others are whether they are there.
func (o *Sandbox) CheckShared(off, detach, keepGiven, proxyGiven bool) error {
	for _, text := range o.Env {
		if err := launch.CheckVariable(text); err != nil {
			return failure.Usage(err)
		}
	}
	if off && detach {
		return failure.Usagef("--detach is for a sandbox, and --sandbox=off is none; " +
			"run the command in tmux or screen to leave it on this host")
	}
	if off && len(o.Mounts)+len(o.Env)+len(o.Ports) > 0 {
		return failure.Usagef("--mount, --env and --port are for a sandbox, and --sandbox=off is none")
	}
	if off && keepGiven {
		return failure.Usagef("--keep is for a sandbox, and --sandbox=off is none: the agent uses its state on this host")
	}
	if off && (proxyGiven || o.ReadOnly || o.Protect || o.Custom.Asked()) {
		return failure.Usagef("--sandbox-proxy, --read-only, --protect, --packages and --dockerfile are for a sandbox, " +
			"and --sandbox=off is none")
	}
	return nil
}

// ParseShared parses --mount, --env and --port.
func (o *Sandbox) ParseShared(home string) error {
	if o.Shared != nil {
		return nil
	}
	shared := &Shared{Env: slices.Clone(o.Env)}
	for _, text := range o.Ports {
		p, err := launch.ParsePort(text)
		if err != nil {
			return failure.Usage(err)
		}
		shared.Ports = append(shared.Ports, p)
	}
	for _, text := range o.Mounts {
		m, err := launch.ParseMount(text, home)
		if err != nil {
			return err
		}
		shared.Mounts = append(shared.Mounts, m)
	}
	o.Shared = shared
	return nil
}

// useShared puts in force what a sandbox shares with this host besides its project: mounts, variables and ports. A
// flag for the same place, name or port takes precedence.
func (u *Use) useShared(s *Sandbox, dir, home string) error {
	if err := u.useMounts(s, dir, home); err != nil {
		return err
	}
	if err := u.useVariables(s); err != nil {
		return err
	}
	return u.usePorts(s)
}

// useMounts puts mounts in force.
func (u *Use) useMounts(s *Sandbox, dir, home string) error {
	all, err := u.resolveMounts(dir, home)
	if err != nil {
		return err
	}
	flags, chosen := targets(s.Shared.Mounts), []string{}
	for _, m := range all {
		text := m.Source + ":" + m.Target
		switch {
		case slices.Contains(chosen, m.Target):
			return fmt.Errorf("mounts has two for %s", m.Target)
		// A path is shown to a person as its links lead, who reads one line.
		case strings.ContainsFunc(m.Source, func(r rune) bool { return !unicode.IsPrint(r) }):
			return fmt.Errorf("mount %q: %q has a control character", text, m.Source)
		case s.Protect && !m.ReadOnly:
			return hint.New(fmt.Errorf("mount %q: it is writable, and protect is in force", text),
				"write it as SRC:DST:ro, or start without the file: --ignore-project")
		}
		chosen = append(chosen, m.Target)
		if slices.Contains(flags, m.Target) {
			u.overruled = append(u.overruled, "the mount at "+m.Target)
			continue
		}
		how := "writable"
		if m.ReadOnly {
			how = "read-only"
		}
		s.Shared.Mounts = append(s.Shared.Mounts, m)
		u.InForce = append(u.InForce, "mount "+m.Target)
		u.widenAs("mount a part of the project", fmt.Sprintf("mount %q at %q, %s", m.Source, m.Target, how))
	}
	return nil
}

// resolveMounts returns the mounts of a project's file, as its links lead.
func (u *Use) resolveMounts(dir, home string) (all []engine.Mount, err error) {
	for _, text := range u.File.Mounts {
		m, err := launch.ParseProjectMount(text, dir, home)
		if err != nil {
			return nil, err
		}
		all = append(all, m)
	}
	for _, m := range u.mounts {
		if m, err = launch.ProjectMount(m, dir, home); err != nil {
			return nil, err
		}
		all = append(all, m)
	}
	return all, nil
}

// targets returns where mounts are in the sandbox.
func targets(mounts []engine.Mount) (all []string) {
	for _, m := range mounts {
		all = append(all, m.Target)
	}
	return all
}

// useVariables puts variables in force. A person is shown their values, which are recorded nowhere.
func (u *Use) useVariables(s *Sandbox) error {
	flags := variableNames(s.Shared.Env)
	for _, name := range slices.Sorted(maps.Keys(u.File.Env)) {
		value := u.File.Env[name]
		if err := checkVariable(name, value); err != nil {
			return err
		}
		if slices.Contains(flags, name) {
			u.overruled = append(u.overruled, "the variable "+name)
			continue
		}
		s.Shared.Env = append(s.Shared.Env, name+"="+value)
		u.InForce = append(u.InForce, "variable "+name)
		u.Widens = append(u.Widens, Widening{What: "set the variable " + name, Value: " to " + strconv.Quote(value)})
	}
	return nil
}

// checkVariable refuses a variable that a project must not set.
func checkVariable(name, value string) error {
	if err := launch.CheckVariable(name + "=" + value); err != nil {
		return err
	}
	if agents.SkipsQuestions(name) {
		return hint.New(fmt.Errorf("set the variable %s as the project asks: by it an agent may use its tools without "+
			"asking, which only its user decides", name), "take it out of the project's file; for yourself there are "+
			"--unattended and --env %s=…", name)
	}
	return nil
}

// variableNames returns the names of variables, K=V.
func variableNames(pairs []string) (names []string) {
	for _, pair := range pairs {
		name, _, _ := strings.Cut(pair, "=")
		names = append(names, name)
	}
	return names
}

// usePorts puts ports in force.
func (u *Use) usePorts(s *Sandbox) error {
	flags, chosen := slices.Clone(s.Shared.Ports), []launch.Port{}
	for _, text := range u.File.Ports {
		p, err := launch.ParsePort(text)
		if err != nil {
			return err
		}
		if slices.ContainsFunc(chosen, func(o launch.Port) bool { return o.Host == p.Host }) {
			return fmt.Errorf("ports has two for port %d of this host", p.Host)
		}
		chosen = append(chosen, p)
		if slices.ContainsFunc(flags, func(o launch.Port) bool { return o.Host == p.Host || o.Sandbox == p.Sandbox }) {
			u.overruled = append(u.overruled, fmt.Sprintf("port %d of the sandbox", p.Sandbox))
			continue
		}
		s.Shared.Ports = append(s.Shared.Ports, p)
		u.InForce = append(u.InForce, fmt.Sprintf("port %d of the sandbox", p.Sandbox))
		u.widenAs("publish a port",
			fmt.Sprintf("publish port %d of the sandbox as 127.0.0.1:%d, for all programs of this host",
				p.Sandbox, p.Host))
	}
	return nil
}
