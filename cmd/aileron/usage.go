package main

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/internal/hint"
)

// usageError is a wrong call: exit code 2.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// usagef is a usageError from a format.
func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// oneOf is a wrong usage unless a flag's value is one of those known.
func oneOf(flag, value string, known ...string) error {
	if slices.Contains(known, value) {
		return nil
	}
	last := len(known) - 1
	return usagef("--%s is %q; it must be %s or %s", flag, value, strings.Join(known[:last], ", "), known[last])
}

// usageArgs makes a wrong number of arguments a wrong usage. It says what the
// command wants, and not what it got: that may be a secret in the wrong place.
func usageArgs(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if check(cmd, args) == nil {
			return nil
		}
		_, wants, _ := strings.Cut(cmd.Use, " ")
		got := fmt.Sprintf("%d arguments", len(args))
		switch len(args) {
		case 0:
			got = "none"
		case 1:
			got = "1 argument"
		}
		return usagef("%s wants %s; it was given %s", commandName(cmd), first(wants, "no arguments"), got)
	}
}

// commandName is the command as its error calls it, without the program.
func commandName(cmd *cobra.Command) string {
	return strings.TrimPrefix(cmd.CommandPath(), cmd.Root().Name()+" ")
}

// usageFlags makes flags that cannot be read a wrong usage, said without the
// names of the functions that could not read them.
func usageFlags(_ *cobra.Command, err error) error {
	var number *strconv.NumError
	if errors.As(err, &number) {
		return usagef("%s", strings.Replace(err.Error(), number.Error(), number.Err.Error(), 1))
	}
	return usageError{err}
}

// subcommandNeeded runs a command that only groups others: help without
// arguments, a wrong usage with any.
func subcommandNeeded(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return cmd.Help()
	}
	return usagef("%q is not a command of %s", args[0], cmd.CommandPath())
}

// newHelpCommand is cobra's, but that a command which is not there is a wrong
// usage and not the root's help.
func newHelpCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "Show how a command is used",
		Args:  cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			about, rest, err := cmd.Root().Find(args)
			if err != nil {
				return usageError{err}
			}
			if len(rest) > 0 {
				return subcommandNeeded(about, rest)
			}
			about.InitDefaultHelpFlag()
			about.InitDefaultVersionFlag()
			return about.Help()
		},
	}
}

// withUsage adds to a wrong usage of cmd where the right one stands.
func withUsage(cmd *cobra.Command, err error) error {
	if !errors.As(err, new(usageError)) || hint.Of(err) != "" {
		return err
	}
	return hint.New(err, "%s --help", cmd.CommandPath())
}
