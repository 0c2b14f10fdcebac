package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/spec"
	"github.com/ALRubinger/aileron/spec/store"
	"github.com/ALRubinger/aileron/vault"
)

type connectorInstallOptions struct {
	sources []string
	hash    string
	yes     bool
	bind    bindingSetupOptions // for --secrets-file
}

// isContentHash reports whether text is a content hash of a connector.
func isContentHash(text string) bool {
	digest, ok := strings.CutPrefix(text, "sha256:")
	return ok && len(digest) == 64 && strings.Trim(digest, "0123456789abcdef") == ""
}

func newConnectorInstallCommand(a *app) *cobra.Command {
	opts := &connectorInstallOptions{}
	cmd := &cobra.Command{
		Use:   "install SRC...",
		Short: "Install connectors, after showing what they grant",
		Long: "Install connectors, each from the catalogue (connector list --catalog), a directory\n" +
			"or an aileron.tar.gz. It prints what they grant and asks for confirmation; scripts\n" +
			"pass --yes. FQN@VERSION of another connector is accepted only if that version is\n" +
			"installed already: this release fetches nothing from the network.\n" +
			"--secrets-file binds credentials too, as binding setup does.",
		Example: "  aileron connector install github npm pypi\n" +
			"  aileron connector install ./my-connector\n" +
			"  aileron connector install aileron.tar.gz --hash sha256:… --yes\n" +
			"  aileron connector install ./connectors/* --yes --secrets-file secrets.txt",
		Args: usageArgs(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.sources = args
			return opts.run(cmd.Context(), a)
		},
	}
	f := cmd.Flags()
	f.StringVar(&opts.hash, "hash", "", "the content hash that the connector must have (sha256:…)")
	f.BoolVarP(&opts.yes, "yes", "y", false, "grant what the connectors ask for, without confirmation")
	f.StringVar(&opts.bind.list, "secrets-file", "", listUsage)
	f.StringVar(&opts.bind.identity, "identity", "default", "with --secrets-file: name of the credentials")
	passphraseFlag(cmd, &opts.bind.passphraseFile)
	return cmd
}

func (o *connectorInstallOptions) run(ctx context.Context, a *app) error {
	if o.hash != "" && !isContentHash(o.hash) {
		return usagef("--hash %q is not sha256: and 64 hexadecimal digits", o.hash)
	}
	if o.hash != "" && len(o.sources) > 1 {
		return usagef("--hash is of one connector, and %d are named", len(o.sources))
	}
	s, err := a.openStore()
	if err != nil {
		return err
	}
	if o.bind.list != "" {
		if o.bind.secrets, err = a.readSecrets(o.bind.list); err != nil {
			return err
		}
	}
	sources, err := o.confirm(a, s)
	if err != nil {
		return err
	}
	installed, err := o.install(ctx, a, s, sources)
	if !a.json {
		a.printInstalled(installed, o.bind.list == "")
	}
	if err != nil {
		return err
	}
	var bound []vault.Binding
	if o.bind.list != "" {
		if bound, err = o.bind.bind(ctx, a); err != nil {
			return err
		}
	}
	if a.json {
		return o.printJSON(a, installed, bound)
	}
	return nil
}

// confirm returns what is to be installed, which is valid, after it was printed and granted.
func (o *connectorInstallOptions) confirm(a *app, s *store.Store) (sources []store.Source, err error) {
	installed, _ := s.Current()
	var fresh []*spec.Connector
	for _, src := range o.sources {
		expected := o.hash
		entry, inCatalog, err := catalogSource(src)
		if err != nil {
			return nil, err
		}
		if inCatalog || !strings.Contains(src, "://") {
			c, err := a.readConnector(src)
			if err != nil {
				return nil, err
			}
			if o.hash != "" && o.hash != c.Hash {
				return nil, hint.New(&store.HashError{What: src, Want: o.hash, Got: c.Hash},
					"nothing was installed; get the connector and its hash from its publisher again")
			}
			if _, err := s.Load(c.Hash); err != nil {
				fresh = append(fresh, c)
			}
			expected = c.Hash // the bytes that are printed are the bytes that are installed
		}
		sources = append(sources, store.Source{Src: src, Hash: expected, Files: entry.Files})
	}
	return sources, o.ask(a, fresh, byName(installed))
}

// readConnector reads a connector from a directory, an archive or the catalogue.
func (a *app) readConnector(src string) (*spec.Connector, error) {
	entry, inCatalog, err := catalogSource(src)
	if err != nil {
		return nil, err
	}
	if inCatalog {
		return store.ReadFS(entry.Files)
	}
	c, err := store.Read(src)
	if err != nil {
		return nil, withNearSource(src, a.sourceError(src, err))
	}
	return c, nil
}

// install installs connectors, and returns those that are installed with the error of the next.
func (o *connectorInstallOptions) install(ctx context.Context, a *app, s *store.Store, sources []store.Source,
) (installed []store.Installed, err error) {
	changes := a.newChanges()
	defer func() { err = changes.close(err) }()
	record := func(c *spec.Connector, install func() error) error {
		about := aboutConnector(string(c.FQN), c.Version, c.Hash)
		return changes.enact(ctx, change{what: audit.ChangeConnectorInstall, about: about}, install)
	}
	installed, err = s.InstallAll(ctx, sources, record)
	var version *store.VersionError
	if errors.As(err, &version) {
		return installed, hint.New(err, "raise the version, or remove it first with: aileron connector remove %s",
			version.Entry)
	}
	if err != nil {
		return installed, a.sourceError(sources[len(installed)].Src, err)
	}
	return installed, nil
}

// printInstalled prints connectors that were installed, and with next what to do then.
func (a *app) printInstalled(installed []store.Installed, next bool) {
	var unbound []string
	for _, in := range installed {
		verb := "installed"
		if in.Already {
			verb = "already installed"
		} else if in.Connector.Credential() != nil {
			unbound = append(unbound, string(in.Connector.FQN))
		}
		fmt.Fprintf(a.stdout, "%s %s %s %s\n", verb, in.Connector.FQN, in.Connector.Version, in.Connector.Hash)
	}
	switch {
	case !next || len(unbound) == 0:
	case len(unbound) == 1:
		a.infof("next: aileron binding setup %s", unbound[0])
	default:
		a.infof("next: aileron binding setup --secrets-file FILE, with a line CONNECTOR=SECRET for each")
	}
}

// printJSON prints one connector as an object, several as an array, and connectors with bindings as an object of both.
func (o *connectorInstallOptions) printJSON(a *app, installed []store.Installed, bound []vault.Binding) error {
	all := []connectorJSON{}
	for _, in := range installed {
		j := describeConnector(in.Connector)
		j.Already = in.Already
		all = append(all, j)
	}
	switch {
	case o.bind.list != "":
		return a.printJSON(map[string]any{"connectors": all, "bindings": bound})
	case len(all) == 1:
		return a.printJSON(all[0])
	}
	return a.printJSON(all)
}

// aboutConnector returns what the audit events of every change to a connector have.
func aboutConnector(fqn, version, hash string) audit.Row {
	return audit.Row{ConnectorFQN: fqn, ConnectorVersion: version, Fields: map[string]any{"hash": hash}}
}

// ask prints what connectors grant, and returns an error unless --yes or the person at the terminal grants it.
func (o *connectorInstallOptions) ask(a *app, fresh []*spec.Connector, installed map[string]*spec.Connector) error {
	out := bufio.NewWriter(a.stderr)
	for _, c := range fresh {
		printConnector(out, c)
		if old := installed[string(c.FQN)]; old != nil {
			printAdded(out, old, c)
		}
	}
	if err := conflictWith(installed, fresh); err != nil {
		fmt.Fprintf(out, "\nwarning: no session will start while both are installed: %v\n", err)
	}
	_ = out.Flush()
	if o.yes || len(fresh) == 0 {
		return nil
	}
	if !a.interactive() {
		return usagef("there is no terminal to ask for confirmation on; pass --yes to grant this")
	}
	what := "it"
	if len(fresh) > 1 {
		what = fmt.Sprintf("these %d connectors", len(fresh))
	}
	fmt.Fprintf(a.stderr, "install %s and grant this? [y/N] ", what)
	line, _ := bufio.NewReader(a.stdin).ReadString('\n')
	switch strings.ToLower(strings.TrimSpace(line)) {
	case "y", "yes":
		return nil
	}
	return errors.New("not installed: it was not confirmed")
}
