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
	"github.com/ALRubinger/aileron/spec/source"
	"github.com/ALRubinger/aileron/spec/store"
	"github.com/ALRubinger/aileron/vault"
)

type connectorInstallOptions struct {
	fetchOptions
	sources []string
	hash    string
	yes     bool
	by      publishers          // of what is to be installed
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
		Long: "Install connectors, each from the catalogue (connector list --catalog), a directory,\n" +
			"an aileron.tar.gz, or FQN@VERSION from the release of its publisher on GitHub, GitLab\n" +
			"or a hub. It prints what they grant and asks for confirmation; scripts pass --yes.\n" +
			"A version that is installed is not fetched again.\n" +
			"--secrets-file binds credentials too, as binding setup does.",
		Example: "  aileron connector install github npm pypi\n" +
			"  aileron connector install github://acme/tracker@1.2.0\n" +
			"  aileron connector install ./my-connector\n" +
			"  aileron connector install aileron.tar.gz --hash sha256:… --yes\n" +
			"  aileron connector install ./connectors/* --yes --secrets-file secrets.txt",
		Args: usageArgs(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.sources = args
			return opts.run(cmd.Context(), a)
		},
	}
	opts.fetchOptions.register(cmd)
	f := cmd.Flags()
	f.StringVar(&opts.hash, "hash", "", "the content hash that the connector must have (sha256:…)")
	f.BoolVarP(&opts.yes, "yes", "y", false, "grant what the connectors ask for, without confirmation")
	f.StringVar(&opts.bind.list, "secrets-file", "", listUsage)
	f.StringVar(&opts.bind.identity, "identity", "default", "with --secrets-file: name of the credentials")
	passphraseFlag(cmd, &opts.bind.passphraseFile)
	return cmd
}

func (o *connectorInstallOptions) run(ctx context.Context, a *app) (err error) {
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
	fetched, err := o.newFetcher(a, s)
	if err != nil {
		return err
	}
	defer func() { err = fetched.closeAfter(err) }()
	sources, err := o.confirm(ctx, a, s, fetched)
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
func (o *connectorInstallOptions) confirm(ctx context.Context, a *app, s *store.Store, f *fetcher,
) (sources []store.Source, err error) {
	installed, _ := s.Current()
	var fresh []*spec.Connector
	o.by = publishers{}
	for _, name := range o.sources {
		src, there, err := o.locate(ctx, s, f, name)
		if err != nil {
			return nil, err
		}
		if !there {
			candidate, err := a.readSource(src)
			if err != nil {
				return nil, err
			}
			c := candidate.Connector
			by, err := a.admit(ctx, candidate)
			if err != nil {
				return nil, err
			}
			o.by[c.Hash] = by
			src.Checked, src.Signature = true, candidate.Signature
			if _, err := s.Load(c.Hash); err != nil || by.status.First {
				fresh = append(fresh, c)
			}
			src.Hash = c.Hash // the bytes that are printed are the bytes that are installed
		}
		sources = append(sources, src)
	}
	if err := a.admitTogether(ctx, sources, o.by); err != nil {
		return nil, err
	}
	return sources, o.ask(ctx, a, fresh, byName(installed))
}

// locate returns where a connector is, which is fetched if it has to be. It reports whether it is installed.
func (o *connectorInstallOptions) locate(ctx context.Context, s *store.Store, f *fetcher, name string,
) (src store.Source, there bool, err error) {
	src = store.Source{Src: name, Hash: o.hash}
	entry, inCatalog, err := catalogSource(name)
	switch {
	case err != nil:
		return src, false, err
	case inCatalog:
		src.Files = entry.Files
		return src, false, nil
	case !isRemote(name):
		return src, false, nil
	}
	ref, err := source.ParseRef(name)
	if err != nil {
		return src, false, usageError{err}
	}
	switch _, err := s.Find(ref.FQN, ref.Version); {
	case err == nil:
		return src, true, nil
	case errors.As(err, new(*store.ListError)):
		return src, false, err
	}
	src, err = f.fetch(ctx, ref, o.hash)
	return src, false, err
}

// readSource reads a connector that may be installed.
func (a *app) readSource(src store.Source) (*store.Candidate, error) {
	c, err := src.Read()
	var hash *store.HashError
	var name *store.NameError
	switch {
	case errors.As(err, &hash):
		return nil, hint.New(err, "nothing was installed; get the connector and its hash from its publisher again")
	case errors.As(err, &name):
		return nil, hint.New(err, "nothing was installed; tell its publisher")
	case err != nil:
		err = ofInput(a.sourceError(src.Src, refusedSource(src.Src, err)), reasonConnector)
		return nil, withNearSource(src.Src, err)
	}
	return c, nil
}

// readCandidate reads a connector from a directory, an archive or the catalogue.
func (a *app) readCandidate(src string) (*store.Candidate, error) {
	entry, inCatalog, err := catalogSource(src)
	if err != nil {
		return nil, err
	}
	from := store.Source{Src: src}
	if inCatalog {
		from.Files = entry.Files
	}
	return a.readSource(from)
}

// install installs connectors, and returns those that are installed with the error of the next.
func (o *connectorInstallOptions) install(ctx context.Context, a *app, s *store.Store, sources []store.Source,
) (installed []store.Installed, err error) {
	changes := a.newChanges()
	defer func() { err = changes.close(err) }()
	for _, src := range sources { // before what they sign, and by consent to that
		if by := o.by[src.Hash]; by.status.First {
			if err := a.rememberKey(ctx, changes, by); err != nil {
				return nil, err
			}
		}
	}
	record := func(c *spec.Connector, install func() error) error {
		about := o.by.of(c).mark(aboutConnector(string(c.FQN), c.Version, c.Hash))
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
		fmt.Fprintf(a.fittedOut(), "%s %s %s %s\n", verb, in.Connector.FQN, in.Connector.Version, in.Connector.Hash)
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
		j := describeSigned(in.Connector, o.by.of(in.Connector))
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

// ask prints what connectors grant, and returns an error unless --yes or the person at the terminal grants it. On a
// terminal, what is long is summarised just above the question. Of the catalogue, which is part of this program, the
// summary is all; another publisher's names of operations prove nothing, so its connectors are printed whole, too.
func (o *connectorInstallOptions) ask(
	ctx context.Context, a *app, fresh []*spec.Connector, installed map[string]*spec.Connector,
) error {
	isLong := a.interactive() && countOperations(fresh) > fewOperations
	out := bufio.NewWriter(a.stderr)
	for _, c := range fresh {
		if !isLong || !isOfCatalog(c) {
			printConnector(out, c, o.by.of(c), a.messageColumns())
		}
		if old := installed[string(c.FQN)]; old != nil {
			printChanges(out, old, c)
		}
	}
	for _, c := range fresh {
		if isLong {
			fmt.Fprintln(out)
			summariseConnector(out, c, o.by.of(c), a.columns())
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
	what, explain := "it", func() { a.printWhole(fresh, o.by) }
	if len(fresh) > 1 {
		what = fmt.Sprintf("these %d connectors", len(fresh))
	}
	question := fmt.Sprintf("install %s and grant this?", what)
	if isLong {
		question += " (? lists every operation)"
	}
	talk, err := a.converse()
	if err != nil {
		return err
	}
	defer talk.end()
	yes, err := talk.yesOr(ctx, question, false, explain)
	if err == nil && !yes {
		err = declined("not installed: it was not confirmed")
	}
	return err
}

// printWhole prints all that connectors grant.
func (a *app) printWhole(all []*spec.Connector, by publishers) {
	out := bufio.NewWriter(a.stderr)
	for _, c := range all {
		printConnector(out, c, by.of(c), a.messageColumns())
	}
	_ = out.Flush()
}
