package connectors

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"

	"github.com/ALRubinger/aileron/internal/console"
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

// Used is a version of a connector that is in use here.
type Used struct {
	FQN     spec.FQN
	Version string
	Actions []string // that pin it; none: it is the highest one that is installed
}

// Highest returns the highest version of each connector, by name. Broken ones count: their names are known.
func Highest(entries []store.Entry) []Used {
	var all []Used
	for _, e := range entries { // in the order of names and versions
		if e.FQN == "" {
			continue
		}
		used := Used{FQN: e.FQN, Version: e.Version}
		if n := len(all); n > 0 && all[n-1].FQN == e.FQN {
			all[n-1] = used
			continue
		}
		all = append(all, used)
	}
	return all
}

// Updates asks the sources of connectors, each once and several at a time, and returns the result for each that is
// used.
func (f *Fetcher) Updates(ctx context.Context, used []Used) []UpdateJSON {
	found := map[spec.FQN]*published{}
	slots := make(chan struct{}, asked)
	var wait sync.WaitGroup
	for _, u := range used {
		if found[u.FQN] != nil {
			continue
		}
		p := &published{source: "remote"}
		found[u.FQN] = p
		slots <- struct{}{}
		wait.Go(func() {
			defer func() { <-slots }()
			if entry, ok := catalog.Find(string(u.FQN)); ok {
				p.source, p.versions = "catalogue", []string{entry.Connector.Version}
			} else if u.FQN.IsLocal() {
				p.source = "none"
			} else {
				p.versions, p.err = f.client.Versions(ctx, u.FQN)
			}
		})
	}
	wait.Wait()
	all := make([]UpdateJSON, 0, len(used))
	for _, u := range used {
		all = append(all, found[u.FQN].update(u))
	}
	return all
}

// published are the versions of a connector that there are.
type published struct {
	source   string
	versions []string
	err      error
}

// update returns the versions that are newer than one that is used.
func (p *published) update(used Used) UpdateJSON {
	u := UpdateJSON{FQN: string(used.FQN), Source: p.source, Newer: []string{}, Prereleases: []string{}, Err: p.err}
	if u.Actions = used.Actions; len(u.Actions) > 0 {
		u.Pinned = used.Version
	} else {
		u.Installed = used.Version
	}
	if p.err != nil {
		d := failure.Describe(p.err)
		u.Error = &updateErrorJSON{d.Class, d.Reason, d.Message}
		return u
	}
	versions := slices.SortedFunc(slices.Values(p.versions), func(a, b string) int { return spec.CompareVersions(b, a) })
	for _, v := range versions {
		switch {
		case spec.CompareVersions(v, used.Version) <= 0:
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

// UpdateJSON is a version of a connector that is in use, and the newer versions that there are.
type UpdateJSON struct {
	FQN       string `json:"fqn"`
	Installed string `json:"installed"` // the highest installed version; "": it is Pinned
	Source    string `json:"source"`    // of its versions: catalogue, remote, or none for one of this machine

	// Update is the highest newer version that is not a pre-release, or "".
	Update      string   `json:"update"`
	Newer       []string `json:"newer"`       // versions, highest first, without pre-releases
	Prereleases []string `json:"prereleases"` // those above Installed and Update; never proposed

	// Pinned is the version that Actions pin, by their names.
	Pinned  string   `json:"pinned,omitempty"`
	Actions []string `json:"actions,omitempty"`

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

// Outdated returns those of updates that have a newer version, or of which that is not known.
func Outdated(updates []UpdateJSON) []UpdateJSON {
	return slices.DeleteFunc(updates, func(u UpdateJSON) bool { return u.Update == "" && u.Err == nil })
}

// UpdatesError returns the error for sources that could not be asked; nil if all could be.
func UpdatesError(updates []UpdateJSON) error {
	var failed []error
	for _, u := range updates {
		if u.Err != nil {
			failed = append(failed, u.Err)
		}
	}
	if len(failed) == 0 {
		return nil
	}
	err := fmt.Errorf("ask for newer versions: %d of %s could not be asked: %w", len(failed),
		hint.Plural(len(updates), "connector"), failed[0])
	return hint.New(err, "the other lines are complete; %s", HintOr(failed[0], "try again"))
}

// PrintUpdates prints a line for each of the updates of the versions that are used, whose number is given, and what to
// run for what is newer.
func PrintUpdates(c *console.Console, used int, updates []UpdateJSON) error {
	var next []string
	w := tabwriter.NewWriter(c.Stdout, 0, 0, 2, ' ', 0)
	for _, u := range updates {
		state := "up to date"
		switch {
		case u.Error != nil:
			state = "not known: " + u.Error.Message
		case u.Source == "none":
			state = "made on this machine"
		case u.Update != "":
			state = u.Update + " is newer"
		}
		if len(u.Prereleases) > 0 {
			state += " (pre-release: " + strings.Join(u.Prereleases[:min(len(u.Prereleases), 3)], ", ") + ")"
		}
		if len(u.Actions) > 0 {
			state += "; pinned by " + strings.Join(u.Actions, ", ")
		}
		fmt.Fprintf(w, "%s\t%s\t%s\n", u.FQN, cmp.Or(u.Installed, u.Pinned), state)
		if step := fmt.Sprintf("aileron connector install %s@%s", u.FQN, u.Update); u.Update != "" &&
			!slices.Contains(next, step) {
			next = append(next, step)
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	switch {
	case used == 0:
		c.Infof("aileron: no connectors installed")
	case len(updates) == 0:
		c.Infof("aileron: %s, and no newer version of any", hint.Plural(used, "connector"))
	}
	for _, step := range next {
		c.Infof("next: %s", step)
	}
	return nil
}
