package cli

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/internal/failure"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/sandbox/agents"
)

// OneOf returns a usage error unless the value of a flag is among the known ones.
func OneOf[T ~string](flag string, value T, known ...T) error {
	if slices.Contains(known, value) {
		return nil
	}
	err := failure.Usagef("--%s is %q; it must be %s", flag, value, hint.Alternatives(known))
	var words []string
	for _, k := range known {
		words = append(words, string(k))
	}
	return hint.DidYouMean(err, hint.Nearest(string(value), words))
}

// UsageArgs turns the error of check into a usage error. It has the number of arguments and not the arguments: one may
// be a secret in the wrong place.
func UsageArgs(check cobra.PositionalArgs) cobra.PositionalArgs {
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
		return failure.Usagef("%s takes %s; got %s", CommandName(cmd), cmp.Or(wants, "no arguments"), got)
	}
}

// CommandName returns the command without the program, for its errors.
func CommandName(cmd *cobra.Command) string {
	return strings.TrimPrefix(cmd.CommandPath(), cmd.Root().Name()+" ")
}

// UsageFlags turns the error of a flag that cannot be parsed into a usage error, without the names of the functions
// that could not parse it.
func UsageFlags(cmd *cobra.Command, err error) error {
	if name, unknown := strings.CutPrefix(err.Error(), "unknown flag: --"); unknown {
		var known []string
		for line := range strings.Lines(cmd.Flags().FlagUsages()) {
			if _, flag, ok := strings.Cut(line, "--"); ok {
				known = append(known, strings.Fields(flag)[0])
			}
		}
		near := hint.Nearest(name, known)
		if near != "" {
			near = "--" + near
		}
		return afterDashes(cmd, failure.Usage(err), near)
	}
	if strings.HasPrefix(err.Error(), "unknown shorthand flag: ") {
		return afterDashes(cmd, failure.Usage(err), "")
	}
	if _, number, missing := strings.Cut(err.Error(), "missing unit in duration "); missing {
		number = strings.Trim(number, "\"")
		return hint.New(failure.Usage(err), "write %[1]sh, %[1]sm or %[1]ss for hours, minutes or seconds", number)
	}
	if _, text, is := strings.Cut(err.Error(), `unknown unit "d" in duration `); is {
		if days, bad := strconv.Atoi(strings.Trim(text, `d"`)); bad == nil && days < 1000 {
			return hint.New(failure.Usage(err), "a duration has no days: write %dh", 24*days)
		}
	}
	if strings.Contains(err.Error(), " duration ") {
		return hint.New(failure.Usage(err), "a duration is such as 90s, 30m or 8h")
	}
	var number *strconv.NumError
	if errors.As(err, &number) {
		return failure.Usagef("%s", strings.Replace(err.Error(), number.Error(), notNumber(number), 1))
	}
	return failure.Usage(err)
}

// notNumber returns why a value is not what its flag takes.
func notNumber(err *strconv.NumError) string {
	switch {
	case errors.Is(err, strconv.ErrRange):
		return "it is out of range"
	case err.Func == "ParseBool":
		return "it is not true or false"
	}
	return "it is not a whole number"
}

// CheckListen returns a usage error unless the value of --listen is an address with a port.
func CheckListen(text string) error {
	host, port, err := net.SplitHostPort(text)
	_, noPort := strconv.ParseUint(cmp.Or(port, "0"), 10, 16)
	_, digits := strconv.ParseUint(text, 10, 16)
	why, write := "", "127.0.0.1:8080, or 127.0.0.1:0 for any port that is free"
	switch {
	case text == "":
		why = "it is empty"
	case strings.Contains(text, "://"):
		why = "it is a URL, and not an address with a port"
	case err != nil && digits == nil:
		why, write = "it has no address", "127.0.0.1:"+text
	case err != nil && net.ParseIP(text) != nil && strings.Contains(text, ":"):
		why, write = "it has no port", "["+text+"]:8080"
	case err != nil:
		why = "it is not an address with a port"
	case noPort != nil:
		why, write = fmt.Sprintf("%q is not a port: they are numbers up to 65535", port), net.JoinHostPort(host, "8080")
	default:
		return nil
	}
	return hint.New(failure.Usagef("--listen is %q; %s", text, why), "write %s", write)
}

// afterDashes adds to the error of an unknown flag the flag that was probably meant and, behind the name of an agent,
// how the agent gets arguments.
func afterDashes(cmd *cobra.Command, err error, near string) error {
	before := cmd.Flags().Args() // up to the flag
	if CommandName(cmd) != "launch" || len(before) == 0 || !slices.Contains(agents.Names(), before[0]) {
		return hint.DidYouMean(err, near)
	}
	how := fmt.Sprintf("arguments of %[1]s follow --: %[2]s %[1]s -- ARG…", before[0], cmd.CommandPath())
	if near != "" {
		how = fmt.Sprintf("did you mean %s? %s", near, how)
	}
	return hint.New(err, "%s", how)
}

// SubcommandNeeded runs a command that only groups others: it prints help without arguments, and fails with any.
func SubcommandNeeded(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return cmd.Help()
	}
	err := failure.Usagef("%q is not a command of %s", args[0], cmd.CommandPath())
	var known []string
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() {
			known = append(known, sub.Name())
		}
	}
	near := hint.Nearest(args[0], known)
	if near != "" {
		near = cmd.CommandPath() + " " + near
	}
	return hint.DidYouMean(err, near)
}

// NewHelpCommand returns a help command like cobra's, for which an unknown command is a usage error: cobra prints the
// root's help.
func NewHelpCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "Show how a command is used",
		Args:  cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			about, rest, err := cmd.Root().Find(args)
			if err != nil {
				return failure.Usage(err)
			}
			if len(rest) > 0 {
				return SubcommandNeeded(about, rest)
			}
			about.InitDefaultHelpFlag()
			about.InitDefaultVersionFlag()
			return about.Help()
		},
	}
}

// withUsage adds the help of cmd as the hint of a usage error that has none.
func withUsage(cmd *cobra.Command, err error) error {
	if !errors.As(err, new(failure.UsageError)) || hint.Of(err) != "" {
		return err
	}
	return hint.New(err, "%s --help", cmd.CommandPath())
}
