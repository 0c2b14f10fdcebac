package actions

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/ALRubinger/aileron/audit"
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

// Adder adds actions: [Adder.Read] reads one, [Adder.Ask] asks, [Adder.Add] adds what was agreed to.
type Adder struct {
	*console.Console
	Recorder     changes.Recorder
	Fetcher      func(*store.Store) (*connectors.Fetcher, error) // for those that are published
	Yes, Replace bool
}

// CommandConflict returns why the commands of fresh actions and of what is installed cannot be in one sandbox.
func CommandConflict(s *store.Store, l action.Library, fresh []*action.Action) error {
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

// Read returns the action of a source.
func (a *Adder) Read(ctx context.Context, s *store.Store, src string) (*action.Action, error) {
	if !connectors.IsRemote(src) {
		f, err := action.Read(src)
		if err != nil {
			return nil, Fault(src, err)
		}
		return f, nil
	}
	ref, err := source.ParseRef(src)
	if err != nil {
		return nil, failure.Usage(err)
	}
	fetch, err := a.Fetcher(s)
	if err != nil {
		return nil, err
	}
	data, err := fetch.FetchAction(ctx, ref)
	if err = errors.Join(err, fetch.Close()); err != nil {
		return nil, err
	}
	f, err := action.Parse(data)
	if err != nil {
		return nil, Fault(src, err)
	}
	if f.Name != ref.FQN.Service() || f.Version != ref.Version {
		return nil, hint.New(&nameError{src, f.Name, f.Version},
			"its publisher has to publish it under its own name and version")
	}
	return f, nil
}

// nameError is returned for a published action that is another one, or another version, than was asked for.
type nameError struct{ src, name, version string }

func (e *nameError) Error() string {
	return fmt.Sprintf("read the action %s: it is %s %s", e.src, e.name, e.version)
}
func (*nameError) ErrorClass() string  { return "hash_mismatch" }
func (*nameError) ErrorReason() string { return "name_mismatch" }

// Ask asks whether n actions that were shown may be added.
func (a *Adder) Ask(ctx context.Context, n int) error {
	if a.Yes || n == 0 {
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

// Add adds actions, and returns those that are there with the error of the next.
func (a *Adder) Add(ctx context.Context, s *store.Store, l action.Library, fresh []*action.Action,
) (added []JSON, err error) {
	batch := a.Recorder.NewBatch()
	defer func() { err = batch.Close(err) }()
	for _, f := range fresh {
		there, err := l.Find(f.Name)
		already := err == nil && IsAdded(there, f)
		switch {
		case already: // nothing changes
		case err == nil && !a.Replace && (there.Action == nil || there.Action.Hash != f.Hash):
			_, err = l.Add(f, false)
			return added, err
		default:
			about := audit.Row{Fields: map[string]any{"action": f.Name, "action_version": f.Version, "hash": f.Hash}}
			err = batch.Enact(ctx, changes.Change{What: audit.ChangeActionAdd, About: about}, func() error {
				_, err := l.Add(f, a.Replace)
				return err
			})
			if err != nil {
				return added, err
			}
		}
		if there, err = l.Find(f.Name); err != nil {
			return added, err
		}
		j := Describe(s, there)
		j.Already = already
		added = append(added, j)
	}
	return added, nil
}

// IsAdded reports whether the bytes of an action are in force, and were added by a person who was shown them.
func IsAdded(there action.File, f *action.Action) bool {
	return there.Added && there.Action.Hash == f.Hash
}
