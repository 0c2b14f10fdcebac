package connectors

import (
	"context"
	"slices"
	"sync"

	"github.com/ALRubinger/aileron/internal/failure"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/spec"
	"github.com/ALRubinger/aileron/spec/catalog"
	"github.com/ALRubinger/aileron/spec/store"
)

// HintOr returns the hint of err, or else another one.
func HintOr(err error, otherwise string) string {
	if h := hint.Of(err); h != "" {
		return h
	}
	return otherwise
}

// Highest returns the highest version of each connector, by name. Broken ones count: their names are known.
func Highest(entries []store.Entry) []store.Entry {
	var all []store.Entry
	for _, e := range entries { // in the order of names and versions
		if e.FQN == "" {
			continue
		}
		if n := len(all); n > 0 && all[n-1].FQN == e.FQN {
			all[n-1] = e
			continue
		}
		all = append(all, e)
	}
	return all
}

// Updates asks the sources of connectors, several at a time, and returns the result for each.
func (f *Fetcher) Updates(ctx context.Context, installed []store.Entry) []UpdateJSON {
	all := make([]UpdateJSON, len(installed))
	slots := make(chan struct{}, asked)
	var wait sync.WaitGroup
	for i, e := range installed {
		slots <- struct{}{}
		wait.Go(func() {
			defer func() { <-slots }()
			all[i] = f.update(ctx, e)
		})
	}
	wait.Wait()
	return all
}

// update returns the newer versions of one connector.
func (f *Fetcher) update(ctx context.Context, e store.Entry) UpdateJSON {
	u := UpdateJSON{FQN: string(e.FQN), Installed: e.Version, Source: "remote", Newer: []string{}, Prereleases: []string{}}
	var versions []string
	if entry, ok := catalog.Find(u.FQN); ok {
		u.Source, versions = "catalogue", []string{entry.Connector.Version}
	} else if e.FQN.IsLocal() {
		u.Source = "none"
	} else if versions, u.Err = f.client.Versions(ctx, e.FQN); u.Err != nil {
		d := failure.Describe(u.Err)
		u.Error = &updateErrorJSON{d.Class, d.Reason, d.Message}
		return u
	}
	slices.SortFunc(versions, func(a, b string) int { return spec.CompareVersions(b, a) })
	for _, v := range versions {
		switch {
		case spec.CompareVersions(v, e.Version) <= 0:
		case !spec.IsPrerelease(v):
			u.Newer = append(u.Newer, v)
		case len(u.Newer) == 0:
			u.Prereleases = append(u.Prereleases, v)
		}
	}
	if len(u.Newer) > 0 {
		u.Update = u.Newer[0]
	}
	return u
}

// UpdateJSON is an installed connector, and the newer versions that there are.
type UpdateJSON struct {
	FQN       string `json:"fqn"`
	Installed string `json:"installed"` // the highest installed version
	Source    string `json:"source"`    // of its versions: catalogue, remote, or none for one of this machine

	// Update is the highest newer version that is not a pre-release, or "".
	Update      string   `json:"update"`
	Newer       []string `json:"newer"`       // versions, highest first, without pre-releases
	Prereleases []string `json:"prereleases"` // those above Installed and Update; never proposed

	// Error is why the versions are not known, null if they are.
	Error *updateErrorJSON `json:"error"`

	Err error `json:"-"` // as it was, for its hint
}

type updateErrorJSON struct {
	Class   string `json:"class"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// asked is how many sources are asked for versions at once.
const asked = 4
