package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

func newActionShowCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "show NAME",
		Short:   "Show what an action calls, and its text",
		Example: "  aileron action show file-followup",
		Args:    usageArgs(cobra.ExactArgs(1)),
		RunE: func(_ *cobra.Command, args []string) error {
			f, err := a.foundAction(args[0])
			if err != nil {
				return err
			}
			s, err := a.openStore()
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(describeAction(s, f))
			}
			if f.Action == nil {
				return actionFault(f.Name, f.Err)
			}
			printAction(a.stdout, s, f.Action)
			if !f.Added {
				a.infof("aileron: the file was edited since it was added, or was put there by hand")
			}
			_, err = fmt.Fprintf(a.stdout, "\n%s", strings.TrimLeft(f.Action.Body, "\r\n"))
			return err
		},
	}
}
