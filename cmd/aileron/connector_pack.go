package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/spec/store"
)

func newConnectorPackCommand(a *app) *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:     "pack DIR",
		Short:   "Pack a connector's directory into an archive that can be installed",
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
