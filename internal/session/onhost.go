package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ALRubinger/aileron/internal/hint"
)

// OnHost returns the session that is named, or else the only one that runs on this host.
func (l Lister) OnHost(ctx context.Context, args []string) (State, error) {
	if len(args) > 0 {
		return l.Find(ctx, args[0])
	}
	all, err := l.List(ctx)
	if err != nil {
		return State{}, err
	}
	all = slices.DeleteFunc(all, func(s State) bool { return s.State != "running" || !s.OnHost() })
	switch len(all) {
	case 1:
		return all[0], nil
	case 0:
		return State{}, hint.New(errors.New("trust a session's root: no session runs on this host"),
			"open one with: aileron proxy")
	}
	var ids []string
	for _, s := range all {
		ids = append(ids, s.ID)
	}
	return State{}, hint.New(fmt.Errorf("trust a session's root: %d sessions run on this host", len(all)),
		"name one of them: %s", strings.Join(ids, ", "))
}
