package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/spec"
	"github.com/ALRubinger/aileron/spec/store"
)

func newConnectorCheckCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "check SRC",
		Short:   "Check a connector's source and show what it would grant",
		Example: "  aileron connector check ./examples/connectors/github",
		Args:    usageArgs(cobra.ExactArgs(1)),
		RunE: func(_ *cobra.Command, args []string) error {
			c, err := store.Read(args[0])
			if err != nil {
				return a.sourceError(args[0], err)
			}
			if _, err := spec.NewIndex([]*spec.Connector{c}); err != nil {
				return fmt.Errorf("check %s: %w", args[0], err)
			}
			if a.json {
				return a.printJSON(describeConnector(c))
			}
			printConnector(a.stdout, c)
			return nil
		},
	}
}

func newConnectorPackCommand(a *app) *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:     "pack DIR",
		Short:   "Write a connector's directory as an archive that can be installed",
		Example: "  aileron connector pack ./examples/connectors/github --output aileron.tar.gz",
		Args:    usageArgs(cobra.ExactArgs(1)),
		RunE: func(_ *cobra.Command, args []string) error {
			f, err := os.CreateTemp(filepath.Dir(output), ".aileron-pack-*")
			if err != nil {
				return fmt.Errorf("write the archive: %w", err)
			}
			defer os.Remove(f.Name())
			c, err := store.Pack(args[0], f)
			err = errors.Join(err, f.Chmod(0o644), f.Sync(), f.Close())
			if err != nil {
				return a.sourceError(args[0], err)
			}
			if err := os.Rename(f.Name(), output); err != nil {
				return fmt.Errorf("write the archive: %w", err)
			}
			if a.json {
				return a.printJSON(map[string]string{"fqn": string(c.FQN), "version": c.Version, "hash": c.Hash, "file": output})
			}
			fmt.Fprintf(a.stdout, "%s  %s %s %s\n", output, c.FQN, c.Version, c.Hash)
			return nil
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "aileron.tar.gz", "where to write the archive")
	return cmd
}

// sourceError says what is wrong with a connector's source: all faults, one a
// line, to a person, and as one line in the error itself.
func (a *app) sourceError(src string, err error) error {
	faults := spec.Faults(err)
	if len(faults) == 0 {
		return err
	}
	if len(faults) == 1 || a.json {
		var all []string
		for _, f := range faults {
			all = append(all, f.Error())
		}
		return hint.New(fmt.Errorf("read the connector %s: %s", src, strings.Join(all, "; ")), "docs/connectors.md describes both files")
	}
	for _, f := range faults {
		a.sayf("%s", f)
	}
	return hint.New(fmt.Errorf("read the connector %s: it has %d faults, the first: %w", src, len(faults), faults[0]), "docs/connectors.md describes both files")
}
