package action

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/cmd/aileron/internal/cli"
	"github.com/ALRubinger/aileron/cmd/aileron/internal/connector"
	"github.com/ALRubinger/aileron/internal/changes"
	"github.com/ALRubinger/aileron/internal/connectors"
	"github.com/ALRubinger/aileron/internal/console"
	"github.com/ALRubinger/aileron/internal/failure"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/shims"
	"github.com/ALRubinger/aileron/spec/action"
	"github.com/ALRubinger/aileron/spec/source"
	"github.com/ALRubinger/aileron/spec/store"
)

type actionAddOptions struct {
	connector.FetchOptions
	yes, replace bool
}

func newActionAddCommand(a *cli.App) *cobra.Command {
	opts := &actionAddOptions{}
	cmd := &cobra.Command{
		Use:   "add SRC...",
		Short: "Add actions, after showing what they do",
		Long: "Add actions, each from a Markdown file with TOML between two lines +++ at its top,\n" +
			"or FQN@VERSION of one that is published. It prints what they call and asks for\n" +
			"confirmation; scripts pass --yes. Another action of the same name is replaced only\n" +
			"with --replace. Running sessions have the action within a second.",
		Example: "  aileron action add ./file-followup.md\n" +
			"  aileron action add github://acme/actions/triage@1.0.0",
		Args: cli.UsageArgs(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error { return opts.run(cmd.Context(), a, args) },
	}
	opts.Register(cmd)
	f := cmd.Flags()
	f.BoolVarP(&opts.yes, "yes", "y", false, "add the actions without confirmation")
	f.BoolVar(&opts.replace, "replace", false, "replace actions of the same name")
	return cmd
}

func (o *actionAddOptions) run(ctx context.Context, a *cli.App, sources []string) error {
	s, err := a.OpenStore()
	if err != nil {
		return err
	}
	l, err := a.Actions()
	if err != nil {
		return err
	}
	var fresh []*action.Action
	missing, asked := false, 0
	for _, src := range sources {
		f, err := o.read(ctx, a, s, src)
		if err != nil {
			return err
		}
		// A connector that is not installed yet is what aileron sync installs; anything else is a mistake in the file.
		_, err = linkAction(s, f)
		if err != nil && !errors.Is(err, store.ErrNotInstalled) {
			return failure.OfInput(fmt.Errorf("add the action %s: %w", f.Name, err), failure.ReasonAction)
		}
		missing = missing || err != nil
		fresh = append(fresh, f)
		there, err := l.Find(f.Name)
		switch {
		case err == nil && isAdded(there, f): // it was asked about when it was added
			continue
		case err == nil && !o.replace && (there.Action == nil || there.Action.Hash != f.Hash):
			_, err = l.Add(f, false) // returns why not
			return err
		}
		showAction(a, s, f)
		asked++
	}
	if err := commandConflict(s, l, fresh); err != nil {
		fmt.Fprintf(a.Stderr, "\nwarning: no sandbox will start while both are there: %v\n", err)
	}
	if err := o.ask(ctx, a, asked); err != nil {
		return err
	}
	added, err := o.add(ctx, a, s, l, fresh)
	for _, j := range added {
		verb := "added"
		if j.already {
			verb = "already added"
		}
		if !a.JSON {
			fmt.Fprintf(a.Stdout, "%s %s %s %s\n", verb, j.Name, j.Version, j.Hash)
		}
	}
	if err != nil {
		return err
	}
	if missing {
		a.Infof("next: aileron sync, which installs the connectors that are pinned and not installed")
	}
	switch {
	case !a.JSON:
		return nil
	case len(added) == 1:
		return a.PrintJSON(added[0])
	}
	return a.PrintJSON(added)
}

// commandConflict returns why the commands of fresh actions and of what is installed cannot be in one sandbox.
func commandConflict(s *store.Store, l action.Library, fresh []*action.Action) error {
	var set shims.Set
	set.Connectors, _ = s.Current()
	files, _ := l.List()
	for _, f := range fresh {
		set.Actions = append(set.Actions, shims.Action{Name: f.Name})
	}
	for _, f := range files {
		replaced := slices.ContainsFunc(fresh, func(a *action.Action) bool { return a.Name == f.Name })
		if f.Action != nil && !replaced {
			set.Actions = append(set.Actions, shims.Action{Name: f.Name})
		}
	}
	return set.Conflict("")
}

// read returns the action of a source.
func (o *actionAddOptions) read(ctx context.Context, a *cli.App, s *store.Store, src string) (*action.Action, error) {
	if !connectors.IsRemote(src) {
		f, err := action.Read(src)
		if err != nil {
			return nil, actionFault(src, err)
		}
		return f, nil
	}
	ref, err := source.ParseRef(src)
	if err != nil {
		return nil, failure.Usage(err)
	}
	fetch, err := o.NewFetcher(a, s)
	if err != nil {
		return nil, err
	}
	data, err := fetch.FetchAction(ctx, ref)
	if err = errors.Join(err, fetch.Close()); err != nil {
		return nil, err
	}
	f, err := action.Parse(data)
	if err != nil {
		return nil, actionFault(src, err)
	}
	if f.Name != ref.FQN.Service() || f.Version != ref.Version {
		return nil, hint.New(&actionNameError{src, f.Name, f.Version},
			"its publisher has to publish it under its own name and version")
	}
	return f, nil
}

// actionNameError is returned for a published action that is another one, or another version, than was asked for.
type actionNameError struct{ src, name, version string }

func (e *actionNameError) Error() string {
	return fmt.Sprintf("read the action %s: it is %s %s", e.src, e.name, e.version)
}
func (*actionNameError) ErrorClass() string  { return "hash_mismatch" }
func (*actionNameError) ErrorReason() string { return "name_mismatch" }

func (o *actionAddOptions) ask(ctx context.Context, a *cli.App, n int) error {
	if o.yes || n == 0 {
		return nil
	}
	if !a.Interactive() {
		return failure.Usagef("there is no terminal to ask for confirmation on; pass --yes to add this")
	}
	what := "it"
	if n > 1 {
		what = fmt.Sprintf("these %d actions", n)
	}
	yes, err := a.Confirm(ctx, "add "+what+"?", false)
	if err == nil && !yes {
		err = failure.Declined("not added: it was not confirmed")
	}
	return err
}

// add adds actions, and returns those that are there with the error of the next.
func (o *actionAddOptions) add(ctx context.Context, a *cli.App, s *store.Store, l action.Library,
	fresh []*action.Action,
) (added []actionJSON, err error) {
	batch := a.NewBatch()
	defer func() { err = batch.Close(err) }()
	for _, f := range fresh {
		there, err := l.Find(f.Name)
		already := err == nil && isAdded(there, f)
		switch {
		case already: // nothing changes
		case err == nil && !o.replace && (there.Action == nil || there.Action.Hash != f.Hash):
			_, err = l.Add(f, false)
			return added, err
		default:
			about := audit.Row{Fields: map[string]any{"action": f.Name, "action_version": f.Version, "hash": f.Hash}}
			err = batch.Enact(ctx, changes.Change{What: audit.ChangeActionAdd, About: about}, func() error {
				_, err := l.Add(f, o.replace)
				return err
			})
			if err != nil {
				return added, err
			}
		}
		if there, err = l.Find(f.Name); err != nil {
			return added, err
		}
		j := describeAction(s, there)
		j.already = already
		added = append(added, j)
	}
	return added, nil
}

// isAdded reports whether the bytes of an action are in force, and were added by a person who was shown them.
func isAdded(there action.File, f *action.Action) bool {
	return there.Added && there.Action.Hash == f.Hash
}

// showAction prints what an action does where a person is asked about it. On a terminal, no line begins with what its
// author wrote, but for the first three.
func showAction(a *cli.App, s *store.Store, f *action.Action) {
	columns := 0
	if a.MessagesOnTerminal() {
		columns = a.Columns()
	}
	var text strings.Builder
	printAction(&text, s, f)
	_, _ = io.WriteString(console.Folding(a.Stderr, columns), text.String())
}

// maxShownArgs is how many characters of the arguments of a call are printed. Of more, what follows could not be seen
// on a terminal.
const maxShownArgs = 600

// shortened returns the first n characters of text, and how many follow.
func shortened(text string, n int) string {
	runes := []rune(text)
	if len(runes) <= n {
		return text
	}
	return fmt.Sprintf("%s… (and %d further characters: read the file)", string(runes[:n]), len(runes)-n)
}

// printAction prints what an action does.
func printAction(out io.Writer, s *store.Store, f *action.Action) {
	fmt.Fprintf(out, "%s %s\n%s\n%s\n", f.Name, f.Version, f.Hash, f.Description)
	if len(f.Inputs) > 0 {
		fmt.Fprintf(out, "\ninputs:\n")
		w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
		for _, in := range f.Inputs {
			need := "optional"
			if in.Required {
				need = "required"
			}
			text := in.Description
			if len(in.Values) > 0 {
				text = strings.TrimSpace(text + " (one of " + strings.Join(in.Values, ", ") + ")")
			}
			if text != "" {
				need += "\t" + text
			}
			fmt.Fprintf(w, "  %s\t%s\t%s\n", in.Name, in.Type, need)
		}
		_ = w.Flush()
	}
	fmt.Fprintf(out, "\nuses:\n")
	for _, p := range f.Requires {
		fmt.Fprintf(out, "  %s %s: %s\n", p, connectors.ShortHash(p.Hash), strings.Join(p.Capabilities, ", "))
	}
	fmt.Fprintf(out, "\nsends:\n")
	for _, step := range f.Steps {
		fmt.Fprintf(out, "  %s %s  %s\n", step.Tool, step.Operation, shortened(step.Args(), maxShownArgs))
	}
	fmt.Fprintf(out, "\ncalls:\n")
	linked, err := linkAction(s, f)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for i, step := range f.Steps {
		if err != nil {
			fmt.Fprintf(w, "  %s %s\n", step.Tool, step.Operation)
			continue
		}
		op := linked.Operations[i]
		fmt.Fprintf(w, "  %s %s\t%s\t%s%s\t%s\n", op.Tool, op.Name, connectors.AnyMethod(op.Method),
			strings.TrimSuffix(connectors.HostNames(op.Hosts)[0], ":443"), op.Path, connectors.Traits(op))
	}
	_ = w.Flush()
	if err != nil {
		fmt.Fprintf(out, "\nit cannot be run yet: %s\n", actionJSON{}.failed(err).Error)
	}
}
