package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/spec"
	"github.com/ALRubinger/aileron/spec/signature"
	"github.com/ALRubinger/aileron/spec/source"
	"github.com/ALRubinger/aileron/spec/store"
)

func newConnectorCheckCommand(a *app) *cobra.Command {
	opts := &fetchOptions{}
	cmd := &cobra.Command{
		Use:   "check [SRC]",
		Short: "Check a connector's source, or list newer versions of what is installed",
		Long: "Check a connector and print what it would grant: of a directory, an aileron.tar.gz, the\n" +
			"catalogue, or FQN@VERSION, which is fetched for that. Without SRC, list the newer\n" +
			"versions of all installed connectors. Pre-releases are named and not proposed.",
		Example: "  aileron connector check ./my-connector\n  aileron connector check github\n" +
			"  aileron connector check --json",
		Args: usageArgs(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return opts.checkUpdates(cmd.Context(), a)
			}
			if ref, isRef := remoteRef(args[0]); isRef {
				return opts.checkRemote(cmd.Context(), a, ref)
			}
			c, err := a.readCandidate(args[0])
			if err != nil {
				return err
			}
			return a.printChecked(args[0], c)
		},
	}
	opts.register(cmd)
	return cmd
}

// printChecked prints what a connector would grant if it could be used alone.
func (a *app) printChecked(src string, candidate *store.Candidate) error {
	c := candidate.Connector
	if _, err := spec.NewIndex([]*spec.Connector{c}); err != nil {
		return inputError{fmt.Errorf("check %s: %w", src, err), reasonConnector}
	}
	by := a.checkSignature(signature.ClaimOf(c), candidate.Signature)
	if a.json {
		return a.printJSON(describeSigned(c, by))
	}
	printConnector(a.stdout, c, by, a.outputColumns())
	return nil
}

// remoteRef returns the version that a source names, and reports whether it has to be fetched.
func remoteRef(src string) (source.Ref, bool) {
	if _, inCatalog, err := catalogSource(src); inCatalog || err != nil || !isRemote(src) {
		return source.Ref{}, false
	}
	ref, err := source.ParseRef(src)
	return ref, err == nil
}

// checkRemote fetches a connector and prints what it would grant.
func (o *fetchOptions) checkRemote(ctx context.Context, a *app, ref source.Ref) (err error) {
	s, err := a.openStore()
	if err != nil {
		return err
	}
	f, err := o.newFetcher(a, s)
	if err != nil {
		return err
	}
	defer func() { err = f.closeAfter(err) }()
	src, err := f.fetch(ctx, ref, "")
	if err != nil {
		return err
	}
	c, err := a.readSource(src)
	if err != nil {
		return err
	}
	return a.printChecked(ref.String(), c)
}

// sourceError returns the error for a connector's source that has faults. If it has several, it prints each on a line,
// unless --json is set: then all are in the error.
func (a *app) sourceError(src string, err error) error {
	faults := spec.Diagnostics(err)
	if len(faults) == 0 {
		return err
	}
	if len(faults) == 1 || a.json {
		var all []string
		for _, f := range faults {
			all = append(all, f.Error())
		}
		err = fmt.Errorf("read the connector %s: %s", src, strings.Join(all, "; "))
		return inputError{hint.New(err, seeConnectors), reasonConnector}
	}
	for _, f := range faults {
		a.infof("%s", f)
	}
	err = fmt.Errorf("read the connector %s: %d faults, the first: %w", src, len(faults), faults[0])
	return inputError{hint.New(err, seeConnectors), reasonConnector}
}

// seeConnectors is the hint for faults of a manifest or a spec.
const seeConnectors = "docs/connectors.md describes both files"
