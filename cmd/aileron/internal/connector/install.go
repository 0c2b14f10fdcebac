package connector

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/cmd/aileron/internal/binding"
	"github.com/ALRubinger/aileron/cmd/aileron/internal/cli"
	"github.com/ALRubinger/aileron/internal/changes"
	"github.com/ALRubinger/aileron/internal/connectors"
	"github.com/ALRubinger/aileron/internal/failure"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/spec"
	"github.com/ALRubinger/aileron/spec/source"
	"github.com/ALRubinger/aileron/spec/store"
	"github.com/ALRubinger/aileron/vault"
)

type ConnectorInstallOptions struct {
	FetchOptions
	Sources []string
	Hash    string
	Yes     bool
	by      connectors.Publishers       // of what is to be installed
	bind    binding.BindingSetupOptions // for --secrets-file
}

// isContentHash reports whether text is a content hash of a connector.
func isContentHash(text string) bool {
	digest, ok := strings.CutPrefix(text, "sha256:")
	return ok && len(digest) == 64 && strings.Trim(digest, "0123456789abcdef") == ""
}

func newConnectorInstallCommand(a *cli.App) *cobra.Command {
	opts := &ConnectorInstallOptions{}
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
		Args: cli.UsageArgs(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.Sources = args
			return opts.Run(cmd.Context(), a)
		},
	}
	opts.FetchOptions.Register(cmd)
	f := cmd.Flags()
	f.StringVar(&opts.Hash, "hash", "", "the content hash that the connector must have (sha256:…)")
	f.BoolVarP(&opts.Yes, "yes", "y", false, "grant what the connectors ask for, without confirmation")
	f.StringVar(&opts.bind.List, "secrets-file", "", binding.ListUsage)
	f.StringVar(&opts.bind.Identity, "identity", "default", "with --secrets-file: name of the credentials")
	cli.PassphraseFlag(cmd, &opts.bind.PassphraseFile)
	return cmd
}

func (o *ConnectorInstallOptions) Run(ctx context.Context, a *cli.App) (err error) {
	if o.Hash != "" && !isContentHash(o.Hash) {
		return failure.Usagef("--hash %q is not sha256: and 64 hexadecimal digits", o.Hash)
	}
	if o.Hash != "" && len(o.Sources) > 1 {
		return failure.Usagef("--hash is of one connector, and %d are named", len(o.Sources))
	}
	s, err := a.OpenStore()
	if err != nil {
		return err
	}
	if o.bind.List != "" {
		if o.bind.Secrets, err = binding.ReadSecrets(a, o.bind.List); err != nil {
			return err
		}
	}
	fetched, err := o.NewFetcher(a, s)
	if err != nil {
		return err
	}
	defer func() { err = fetched.CloseAfter(err) }()
	sources, err := o.Confirm(ctx, a, s, fetched)
	if err != nil {
		return err
	}
	installed, err := o.Install(ctx, a, s, sources)
	if !a.JSON {
		printInstalled(a, installed, o.bind.List == "")
	}
	if err != nil {
		return err
	}
	var bound []vault.Binding
	if o.bind.List != "" {
		if bound, err = o.bind.Bind(ctx, a); err != nil {
			return err
		}
	}
	if a.JSON {
		return o.printJSON(a, installed, bound)
	}
	return nil
}

// Confirm returns what is to be installed, which is valid, after it was printed and granted.
func (o *ConnectorInstallOptions) Confirm(ctx context.Context, a *cli.App, s *store.Store, f *connectors.Fetcher,
) (sources []store.Source, err error) {
	installed, _ := s.Current()
	var fresh []*spec.Connector
	o.by = connectors.Publishers{}
	for _, name := range o.Sources {
		src, there, err := o.locate(ctx, s, f, name)
		if err != nil {
			return nil, err
		}
		if !there {
			candidate, err := readSource(a, src)
			if err != nil {
				return nil, err
			}
			c := candidate.Connector
			by, err := connectors.Admit(ctx, a.Dir, candidate)
			if err != nil {
				return nil, err
			}
			o.by[c.Hash] = by
			src.Checked, src.Signature = true, candidate.Signature
			if _, err := s.Load(c.Hash); err != nil || by.Status.First {
				fresh = append(fresh, c)
			}
			src.Hash = c.Hash // the bytes that are printed are the bytes that are installed
		}
		sources = append(sources, src)
	}
	if err := connectors.AdmitTogether(ctx, a.Dir, sources, o.by); err != nil {
		return nil, err
	}
	return sources, o.ask(ctx, a, fresh, cli.ByName(installed))
}

// locate returns where a connector is, which is fetched if it has to be. It reports whether it is installed.
func (o *ConnectorInstallOptions) locate(ctx context.Context, s *store.Store, f *connectors.Fetcher, name string,
) (src store.Source, there bool, err error) {
	src = store.Source{Src: name, Hash: o.Hash}
	entry, inCatalog, err := connectors.CatalogSource(name)
	switch {
	case err != nil:
		return src, false, err
	case inCatalog:
		src.Files = entry.Files
		return src, false, nil
	case !connectors.IsRemote(name):
		return src, false, nil
	}
	ref, err := source.ParseRef(name)
	if err != nil {
		return src, false, failure.Usage(err)
	}
	switch _, err := s.Find(ref.FQN, ref.Version); {
	case err == nil:
		return src, true, nil
	case errors.As(err, new(*store.ListError)):
		return src, false, err
	}
	src, err = f.Fetch(ctx, ref, o.Hash)
	return src, false, err
}

// readSource reads a connector that may be installed.
func readSource(a *cli.App, src store.Source) (*store.Candidate, error) {
	c, err := src.Read()
	var hash *store.HashError
	var name *store.NameError
	switch {
	case errors.As(err, &hash):
		return nil, hint.New(err, "nothing was installed; get the connector and its hash from its publisher again")
	case errors.As(err, &name):
		return nil, hint.New(err, "nothing was installed; tell its publisher")
	case err != nil:
		err = failure.OfInput(sourceError(a, src.Src, connectors.RefusedSource(src.Src, err)), failure.ReasonConnector)
		return nil, connectors.WithNearSource(src.Src, err)
	}
	return c, nil
}

// readCandidate reads a connector from a directory, an archive or the catalogue.
func readCandidate(a *cli.App, src string) (*store.Candidate, error) {
	entry, inCatalog, err := connectors.CatalogSource(src)
	if err != nil {
		return nil, err
	}
	from := store.Source{Src: src}
	if inCatalog {
		from.Files = entry.Files
	}
	return readSource(a, from)
}

// Install installs connectors, and returns those that are installed with the error of the next.
func (o *ConnectorInstallOptions) Install(ctx context.Context, a *cli.App, s *store.Store, sources []store.Source,
) (installed []store.Installed, err error) {
	batch := a.NewBatch()
	defer func() { err = batch.Close(err) }()
	for _, src := range sources { // before what they sign, and by consent to that
		if by := o.by[src.Hash]; by.Status.First {
			if err := connectors.RememberKey(ctx, a.Dir, batch, by); err != nil {
				return nil, err
			}
		}
	}
	record := func(c *spec.Connector, install func() error) error {
		about := o.by.Of(c).Mark(connectors.AboutConnector(string(c.FQN), c.Version, c.Hash))
		return batch.Enact(ctx, changes.Change{What: audit.ChangeConnectorInstall, About: about}, install)
	}
	installed, err = s.InstallAll(ctx, sources, record)
	var version *store.VersionError
	if errors.As(err, &version) {
		return installed, hint.New(err, "raise the version, or remove it first with: aileron connector remove %s",
			version.Entry)
	}
	if err != nil {
		return installed, sourceError(a, sources[len(installed)].Src, err)
	}
	return installed, nil
}

// printInstalled prints connectors that were installed, and with next what to do then.
func printInstalled(a *cli.App, installed []store.Installed, next bool) {
	var unbound []string
	for _, in := range installed {
		verb := "installed"
		if in.Already {
			verb = "already installed"
		} else if in.Connector.Credential() != nil {
			unbound = append(unbound, string(in.Connector.FQN))
		}
		fmt.Fprintf(a.FittedOut(), "%s %s %s %s\n", verb, in.Connector.FQN, in.Connector.Version, in.Connector.Hash)
	}
	switch {
	case !next || len(unbound) == 0:
	case len(unbound) == 1:
		a.Infof("next: aileron binding setup %s", unbound[0])
	default:
		a.Infof("next: aileron binding setup --secrets-file FILE, with a line CONNECTOR=SECRET for each")
	}
}

// printJSON prints one connector as an object, several as an array, and connectors with bindings as an object of both.
func (o *ConnectorInstallOptions) printJSON(a *cli.App, installed []store.Installed, bound []vault.Binding) error {
	all := []connectors.ConnectorJSON{}
	for _, in := range installed {
		j := connectors.DescribeSigned(in.Connector, o.by.Of(in.Connector))
		j.Already = in.Already
		all = append(all, j)
	}
	switch {
	case o.bind.List != "":
		return a.PrintJSON(map[string]any{"connectors": all, "bindings": bound})
	case len(all) == 1:
		return a.PrintJSON(all[0])
	}
	return a.PrintJSON(all)
}

// ask prints what connectors grant, and returns an error unless --yes or the person at the terminal grants it. On a
// terminal, what is long is summarised just above the question. Of the catalogue, which is part of this program, the
// summary is all; another publisher's names of operations prove nothing, so its connectors are printed whole, too.
func (o *ConnectorInstallOptions) ask(
	ctx context.Context, a *cli.App, fresh []*spec.Connector, installed map[string]*spec.Connector,
) error {
	isLong := a.Interactive() && connectors.CountOperations(fresh) > connectors.FewOperations
	out := bufio.NewWriter(a.Stderr)
	for _, c := range fresh {
		if !isLong || !connectors.IsOfCatalog(c) {
			connectors.PrintConnector(out, c, o.by.Of(c), a.MessageColumns())
		}
		if old := installed[string(c.FQN)]; old != nil {
			connectors.PrintChanges(out, old, c)
		}
	}
	for _, c := range fresh {
		if isLong {
			fmt.Fprintln(out)
			connectors.SummariseConnector(out, c, o.by.Of(c), a.Columns())
		}
	}
	if err := connectors.ConflictWith(installed, fresh); err != nil {
		fmt.Fprintf(out, "\nwarning: no session will start while both are installed: %v\n", err)
	}
	_ = out.Flush()
	if o.Yes || len(fresh) == 0 {
		return nil
	}
	if !a.Interactive() {
		return failure.Usagef("there is no terminal to ask for confirmation on; pass --yes to grant this")
	}
	what, explain := "it", func() { PrintWhole(a, fresh, o.by) }
	if len(fresh) > 1 {
		what = fmt.Sprintf("these %d connectors", len(fresh))
	}
	question := fmt.Sprintf("install %s and grant this?", what)
	if isLong {
		question += " (? lists every operation)"
	}
	talk, err := a.Converse()
	if err != nil {
		return err
	}
	defer talk.End()
	yes, err := talk.YesOr(ctx, question, false, explain)
	if err == nil && !yes {
		err = failure.Declined("not installed: it was not confirmed")
	}
	return err
}

// PrintWhole prints all that connectors grant.
func PrintWhole(a *cli.App, all []*spec.Connector, by connectors.Publishers) {
	out := bufio.NewWriter(a.Stderr)
	for _, c := range all {
		connectors.PrintConnector(out, c, by.Of(c), a.MessageColumns())
	}
	_ = out.Flush()
}
