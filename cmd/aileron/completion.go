package main

import (
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/ca"
	"github.com/ALRubinger/aileron/cmd/aileron/internal/cli"
	"github.com/ALRubinger/aileron/internal/connectors"
	"github.com/ALRubinger/aileron/internal/detached"
	"github.com/ALRubinger/aileron/internal/review"
	"github.com/ALRubinger/aileron/proxy"
	"github.com/ALRubinger/aileron/sandbox"
	"github.com/ALRubinger/aileron/sandbox/agents"
	"github.com/ALRubinger/aileron/spec/action"
	"github.com/ALRubinger/aileron/spec/catalog"
)

// words is a function that returns what a shell may complete a flag or an argument to. It prints nothing, and creates
// no home.
type words func(cmd *cobra.Command) []string

// completer completes words of what is installed and recorded.
type completer struct{ *cli.App }

// addCompletion registers the values of flags and arguments of every command below cmd for a shell's completion. Cobra
// completes the commands and flags themselves.
func (a completer) addCompletion(cmd *cobra.Command) {
	for name, values := range a.flagWords(cli.CommandName(cmd)) {
		if cmd.Flags().Lookup(name) == nil && cmd.PersistentFlags().Lookup(name) == nil {
			continue
		}
		_ = cmd.RegisterFlagCompletionFunc(name, values.complete) // an error: the command has its own
	}
	if values := a.argumentWords(cli.CommandName(cmd)); values != nil {
		cmd.ValidArgsFunction = values.complete
	}
	for _, sub := range cmd.Commands() {
		a.addCompletion(sub)
	}
}

// complete is a [cobra.CompletionFunc].
func (w words) complete(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	var left []string
	for _, word := range w(cmd) {
		if !slices.Contains(args, word) {
			left = append(left, word)
		}
	}
	return left, cobra.ShellCompDirectiveNoFileComp
}

// of returns words of a list that is made when a shell asks: every command that starts registers them all.
func of[T ~string](list func() []T) words {
	return func(*cobra.Command) (all []string) {
		for _, word := range list() {
			all = append(all, string(word))
		}
		return all
	}
}

// fixed returns words that never change.
func fixed(list ...string) words { return of(func() []string { return list }) }

// flagWords returns what the flags of a command can be, by their name.
func (a completer) flagWords(command string) map[string]words {
	all := map[string]words{
		"sandbox": of(sandbox.Kinds), "sandbox-build": fixed("auto", "always", "never"),
		"sandbox-proxy": fixed("auto", "on", "off"), "egress": fixed("deny", "passthrough"),
		"log-level": fixed("debug", "info", "warn", "error"),
		"agent":     of(agents.Names), "connector": a.installedWords, "bind": a.bindWords,
		"session": a.sessionWords, "decision": of(audit.Decisions),
		"event": of(audit.Events), "provider": providerWords,
		"by": of(review.StatKinds), "binding": a.bindingWords, "operation": a.operationWords,
		"reason": of(proxy.Reasons), "store": of(ca.StoreKinds),
	}
	switch command {
	case "launch", "setup":
		all["sandbox"] = of(func() []string { return append(sandbox.Runtimes(), "off") })
	case "sandbox run":
		all["sandbox"] = of(sandbox.Runtimes)
	case "demo":
		all["sandbox"] = of(func() []string { return append(sandbox.Kinds(), "off") })
	case "audit export":
		all["format"] = fixed("jsonl", "csv")
	case "spec match":
		delete(all, "connector") // also a directory
	}
	return all
}

// providerWords returns the connectors for the models of all agents, or of the one that is named.
func providerWords(cmd *cobra.Command) (all []string) {
	names := agents.Names()
	if cmd.Flags().NArg() > 0 {
		names = cmd.Flags().Args()[:1]
	}
	for _, name := range names {
		agent, _ := agents.Find(name)
		for _, c := range agent.Connectors {
			if !slices.Contains(all, c) {
				all = append(all, c)
			}
		}
	}
	return all
}

// argumentWords returns what the arguments of a command can be, nil if a shell cannot know.
func (a completer) argumentWords(command string) words {
	switch command {
	case "launch":
		return func(cmd *cobra.Command) []string {
			if cmd.Flags().NArg() > 0 {
				return nil // one agent
			}
			return agents.Names()
		}
	case "connector install":
		return of(catalog.Names)
	case "connector show", "connector verify", "connector remove", "connector describe", "binding setup":
		return a.installedWords
	case "action show", "action run", "action remove":
		return a.actionWords
	case "binding inspect", "binding rebind", "binding revoke":
		return a.bindingWords
	case "audit used":
		return a.bindingWords
	case "session show", "session stop", "session attach", "session logs", "ca show", "ca trust", "ca untrust":
		return a.sessionWords
	}
	return nil
}

// hasHome reports whether there is a home: to look for words creates none.
func (a completer) hasHome() bool {
	home, err := a.HomePath()
	if err == nil {
		_, err = os.Stat(home)
	}
	return err == nil
}

// installedWords returns the names of the installed connectors: short ones where they are clear.
func (a completer) installedWords(_ *cobra.Command) (all []string) {
	names := connectors.NewNames(a.Dir)
	if !a.hasHome() || names.ReadInstalled() != nil {
		return nil
	}
	for _, fqn := range names.Installed {
		name, known := catalog.Name(fqn)
		if !known {
			name = fqn.Service()
		}
		if len(names.Candidates(name)) != 1 {
			name = string(fqn)
		}
		all = append(all, name)
	}
	return all
}

// actionWords returns the names of the actions.
func (a completer) actionWords(_ *cobra.Command) (all []string) {
	home, err := a.HomePath()
	if err != nil {
		return nil
	}
	files, _ := action.In(home).List() // an error: there are none
	for _, f := range files {
		all = append(all, f.Name)
	}
	return all
}

// operationWords returns the names of the operations of the installed connectors.
func (a completer) operationWords(_ *cobra.Command) (all []string) {
	if !a.hasHome() {
		return nil
	}
	connectors, _ := connectors.ToMatch(a.Dir, nil) // an error: none are known
	for _, c := range connectors {
		for _, t := range c.Tools {
			for _, op := range t.Operations {
				if !slices.Contains(all, op.Name) {
					all = append(all, op.Name)
				}
			}
		}
	}
	return all
}

// bindWords returns CONNECTOR=IDENTITY for each binding.
func (a completer) bindWords(_ *cobra.Command) (all []string) {
	if !a.hasHome() {
		return nil
	}
	v, err := a.VaultOf()
	if err != nil {
		return nil
	}
	bound, _ := v.Bindings() // an error: none that could be used
	for _, b := range bound {
		all = append(all, b.Connector+"="+b.Identity)
	}
	return all
}

// bindingWords returns the names of the bindings.
func (a completer) bindingWords(_ *cobra.Command) (all []string) {
	if !a.hasHome() {
		return nil
	}
	v, err := a.VaultOf()
	if err != nil {
		return nil
	}
	bound, _ := v.Bindings() // as above
	for _, b := range bound {
		all = append(all, b.Name)
	}
	return all
}

// mostSessions is how many sessions a shell shows.
const mostSessions = 20

// sessionWords returns the ids of the newest sessions that a command can be about.
func (a completer) sessionWords(cmd *cobra.Command) (all []string) {
	if !a.hasHome() {
		return nil
	}
	home, err := a.HomePath()
	if err != nil {
		return nil
	}
	lister := a.Lister(home)
	lister.Warn = func(audit.Notice) {}
	sessions, _ := lister.List(cmd.Context()) // an error: none are known
	command := cli.CommandName(cmd)
	for _, s := range slices.Backward(sessions) {
		fits := true
		switch command {
		case "session stop":
			fits = s.State == "running"
		case "session attach":
			fits = s.State == "running" && s.Attachable()
		case "session logs":
			fits = detached.Has(home, s.ID)
		}
		if fits && len(all) < mostSessions {
			all = append(all, s.ID)
		}
	}
	return all
}
