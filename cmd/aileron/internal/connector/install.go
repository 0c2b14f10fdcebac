package connector

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/cmd/aileron/internal/binding"
	"github.com/ALRubinger/aileron/cmd/aileron/internal/cli"
	"github.com/ALRubinger/aileron/internal/bindings"
	"github.com/ALRubinger/aileron/internal/connectors"
	"github.com/ALRubinger/aileron/internal/failure"
	"github.com/ALRubinger/aileron/spec/store"
	"github.com/ALRubinger/aileron/vault"
)

type ConnectorInstallOptions struct {
	FetchOptions
	Sources []string
	Hash    string
	Yes     bool
	full    bool
	bind    bindings.Setup // for --secrets-file
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
			"or a hub. It prints what they grant, what is unusual first, and asks for confirmation;\n" +
			"scripts pass --yes. Many operations are counted by group; --full lists them.\n" +
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
	f.BoolVar(&opts.full, "full", false, "list every operation, however many there are")
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
		if o.bind.Secrets, err = bindings.ReadSecrets(&a.Unlocker, o.bind.List); err != nil {
			return err
		}
	}
	fetched, err := o.NewFetcher(a, s)
	if err != nil {
		return err
	}
	defer func() { err = fetched.CloseAfter(err) }()
	i := Installer(a)
	i.Hash, i.Yes, i.Full = o.Hash, o.Yes, o.full
	sources, err := i.Confirm(ctx, s, fetched, o.Sources)
	if err != nil {
		return err
	}
	installed, err := i.Install(ctx, s, sources)
	if !a.JSON {
		printInstalled(a, installed, o.bind.List == "")
	}
	if err != nil {
		return err
	}
	var bound []vault.Binding
	if o.bind.List != "" {
		if bound, err = o.bind.Bind(ctx, &a.Unlocker, binding.PrintName(a)); err != nil {
			return err
		}
	}
	if a.JSON {
		return o.printJSON(a, i, installed, bound)
	}
	return nil
}

// printInstalled prints connectors that were installed, and with next what to do then.
func printInstalled(a *cli.App, installed []store.Installed, next bool) {
	var unbound, logins []string
	for _, in := range installed {
		verb := "installed"
		if in.Already {
			verb = "already installed"
		} else if need := in.Connector.Credential(); need != nil && need.OAuth2 != nil {
			logins = append(logins, string(in.Connector.FQN))
		} else if need != nil {
			unbound = append(unbound, string(in.Connector.FQN))
		}
		fmt.Fprintf(a.FittedOut(), "%s %s %s %s\n", verb, in.Connector.FQN, in.Connector.Version, in.Connector.Hash)
	}
	if !next {
		return
	}
	if len(unbound) > 1 {
		a.Infof("next: aileron binding setup --secrets-file FILE, with a line CONNECTOR=SECRET for each")
		unbound = nil
	}
	for _, fqn := range slices.Concat(unbound, logins) {
		a.Infof("next: aileron binding setup %s", fqn)
	}
}

// printJSON prints one connector as an object, several as an array, and connectors with bindings as an object of both.
func (o *ConnectorInstallOptions) printJSON(a *cli.App, i *connectors.Installer, installed []store.Installed,
	bound []vault.Binding,
) error {
	all := []connectors.ConnectorJSON{}
	for _, in := range installed {
		j := connectors.DescribeSigned(in.Connector, i.Publisher(in.Connector))
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

// Installer returns what installs connectors for a command.
func Installer(a *cli.App) *connectors.Installer {
	return &connectors.Installer{Console: a.Console, Dir: a.Dir, Recorder: a.Recorder, Faults: listFaults(a)}
}
