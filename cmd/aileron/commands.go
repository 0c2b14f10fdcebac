package main

import "github.com/spf13/cobra"

// commands is the command tree, in the order in which help shows it.
// Each command lives in a file of its own name.
func commands(a *app) []*cobra.Command {
	return []*cobra.Command{}
}
