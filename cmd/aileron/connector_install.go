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
)

type connectorInstallOptions struct {
	src  string
	hash string
	yes  bool
}

// isContentHash reports whether text is a content hash of a connector.
func isContentHash(text string) bool {
	digest, ok := strings.CutPrefix(text, "sha256:")
	return ok && len(digest) == 64 && strings.Trim(digest, "0123456789abcdef") == ""
}

func newConnectorInstallCommand(a *app) *cobra.Command {
	opts := &connectorInstallOptions{}
	cmd := &cobra.Command{
		Use:   "install SRC",
		Short: "Install a connector, after showing what it grants",
		Long: "Install a connector from a directory or an aileron.tar.gz. It prints what the\n" +
			"connector grants and asks for confirmation; scripts pass --yes. FQN@VERSION is\n" +
			"accepted only if that version is installed already: this release fetches\n" +
			"nothing from the network.",
		Example: "  aileron connector install ./examples/connectors/github\n" +
			"  aileron connector install aileron.tar.gz --hash sha256:… --yes",
		Args: usageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.src = args[0]
			return opts.run(cmd.Context(), a)
		},
	}
	cmd.Flags().StringVar(&opts.hash, "hash", "", "the content hash that the connector must have (sha256:…)")
	cmd.Flags().BoolVarP(&opts.yes, "yes", "y", false, "grant what the connector asks for, without confirmation")
	return cmd
}

func (o *connectorInstallOptions) run(ctx context.Context, a *app) error {
	if o.hash != "" && !isContentHash(o.hash) {
		return usagef("--hash %q is not sha256: and 64 hexadecimal digits", o.hash)
	}
	s, err := a.openStore()
	if err != nil {
		return err
	}
	expected := o.hash
	if !strings.Contains(o.src, "://") {
		c, err := store.Read(o.src)
		if err != nil {
			return a.sourceError(o.src, err)
		}
		if o.hash != "" && o.hash != c.Hash {
			return hint.New(&store.HashError{What: o.src, Want: o.hash, Got: c.Hash},
				"nothing was installed; get the connector and its hash from its publisher again")
		}
		if _, err := s.Load(c.Hash); err != nil {
			if err := o.confirm(a, c); err != nil {
				return err
			}
		}
		expected = c.Hash // the bytes that were printed are the bytes that are installed
	}
	record := func(c *spec.Connector, install func() error) error {
		about := aboutConnector(string(c.FQN), c.Version, c.Hash)
		return a.enact(ctx, change{what: audit.ChangeConnectorInstall, about: about}, install)
	}
	in, err := s.Install(ctx, o.src, store.InstallOptions{Hash: expected, Around: record})
	var version *store.VersionError
	if errors.As(err, &version) {
		return hint.New(err, "raise the version, or remove it first with: aileron connector remove %s", version.Entry)
	}
	if err != nil {
		return a.sourceError(o.src, err)
	}
	if a.json {
		j := describeConnector(in.Connector)
		j.Already = in.Already
		return a.printJSON(j)
	}
	verb := "installed"
	if in.Already {
		verb = "already installed"
	}
	fmt.Fprintf(a.stdout, "%s %s %s %s\n", verb, in.Connector.FQN, in.Connector.Version, in.Connector.Hash)
	if in.Connector.Credential() != nil && !in.Already {
		a.infof("next: aileron binding setup %s", in.Connector.FQN)
	}
	return nil
}

// aboutConnector returns what the audit events of every change to a connector have.
func aboutConnector(fqn, version, hash string) audit.Row {
	return audit.Row{ConnectorFQN: fqn, ConnectorVersion: version, Fields: map[string]any{"hash": hash}}
}

// confirm prints what c grants, and returns an error unless --yes or the person at the terminal grants it.
func (o *connectorInstallOptions) confirm(a *app, c *spec.Connector) error {
	printConnector(a.stderr, c)
	if o.yes {
		return nil
	}
	if !a.interactive() {
		return usagef("there is no terminal to ask for confirmation on; pass --yes to grant this")
	}
	fmt.Fprint(a.stderr, "install it and grant this? [y/N] ")
	line, _ := bufio.NewReader(a.stdin).ReadString('\n')
	switch strings.ToLower(strings.TrimSpace(line)) {
	case "y", "yes":
		return nil
	}
	return errors.New("not installed: it was not confirmed")
}
