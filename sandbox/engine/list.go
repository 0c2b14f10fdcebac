package engine

import (
	"context"
	"slices"
	"strings"
	"time"
)

// Listed is a container in a list.
type Listed struct {
	ID      string `json:"Id"`
	Labels  map[string]string
	Names   []string
	State   string
	Created time.Time
}

// Named reports whether a name of the container begins with prefix.
func (l Listed) Named(prefix string) bool {
	return slices.ContainsFunc(l.Names, func(name string) bool {
		return strings.HasPrefix(strings.TrimPrefix(name, "/"), prefix)
	})
}

// Filter selects containers.
type Filter struct {
	Label string // a label that they have
	// NamePrefix selects besides, where the engine keeps them, the files of
	// containers that have such a name and no record. They are recognised by the
	// label Role, which they lack, and by their age: files are made before the
	// record is written.
	NamePrefix  string
	Role        string
	OrphanGrace time.Duration
}

// List returns the containers that a filter selects, running or not.
func (e *Engine) List(ctx context.Context, f Filter) ([]Listed, error) {
	return e.dialect.list(ctx, e, f)
}
