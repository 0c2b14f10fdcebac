package main

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/ALRubinger/aileron/cmd/aileron/internal/cli"
)

const manCommand = "man"

func newManCommand(*cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   manCommand + " DIR",
		Short: "Write the manual pages and the completions of shells into a directory",
		Long: "Write what a package installs beside the program: DIR/man/man1/*.1, and\n" +
			"DIR/completions/ with a file for bash, zsh and fish.",
		Example: "  aileron man build/share",
		Hidden:  true,
		Args:    cli.UsageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := writeManual(cmd.Root(), filepath.Join(args[0], "man", "man1")); err != nil {
				return fmt.Errorf("write the manual pages: %w", err)
			}
			if err := writeCompletions(cmd.Root(), filepath.Join(args[0], "completions")); err != nil {
				return fmt.Errorf("write the completions: %w", err)
			}
			return nil
		},
	}
}

// writeManual writes a page for each command. The date is that of the commit, so that two builds of it agree.
func writeManual(root *cobra.Command, dir string) error {
	b := thisBuild()
	header := &doc.GenManHeader{Title: "AILERON", Section: "1", Source: "aileron " + b.Release, Manual: "aileron"}
	if at, err := time.Parse(time.RFC3339, b.Time); err == nil {
		header.Date = &at
	}
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // for everyone to read
		return err
	}
	root.DisableAutoGenTag = true
	return doc.GenManTree(root, header, dir)
}

// writeCompletions writes the scripts under the names by which shells look for them.
func writeCompletions(root *cobra.Command, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // for everyone to read
		return err
	}
	for name, write := range map[string]func(file string) error{
		"aileron.bash": func(file string) error { return root.GenBashCompletionFileV2(file, true) },
		"_aileron":     root.GenZshCompletionFile,
		"aileron.fish": func(file string) error { return root.GenFishCompletionFile(file, true) },
	} {
		if err := write(filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	return nil
}
