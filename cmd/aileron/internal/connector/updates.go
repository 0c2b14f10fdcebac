package connector

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"

	"github.com/ALRubinger/aileron/cmd/aileron/internal/cli"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/spec"
	"github.com/ALRubinger/aileron/spec/catalog"
	"github.com/ALRubinger/aileron/spec/store"
)

// asked is how many sources are asked for versions at once.
const asked = 4

// updateJSON is an installed connector, and the newer versions that there are.
type updateJSON struct {
	FQN       string `json:"fqn"`
	Installed string `json:"installed"` // the highest installed version
	Source    string `json:"source"`    // of its versions: catalogue, remote, or none for one of this machine

	// Update is the highest newer version that is not a pre-release, or "".
	Update      string   `json:"update"`
	Newer       []string `json:"newer"`       // versions, highest first, without pre-releases
	Prereleases []string `json:"prereleases"` // those above Installed and Update; never proposed

	// Error is why the versions are not known, null if they are.
	Error *updateErrorJSON `json:"error"`

	err error
}

type updateErrorJSON struct {
	Class   string `json:"class"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// checkUpdates prints the newer versions of all that is installed. A source that does not respond spoils only the line
// of its connector, and is an error at the end.
func (o *FetchOptions) checkUpdates(ctx context.Context, a *cli.App) (err error) {
	s, entries, err := a.Installed()
	if err != nil {
		return err
	}
	f, err := o.NewFetcher(a, s)
	if err != nil {
		return err
	}
	defer func() { err = f.CloseAfter(err) }()
	var updates []updateJSON
	a.ShowStatus("aileron: asking for newer versions of " + hint.Plural(len(highest(entries)), "connector"))
	err = a.Interruptible(ctx, func(ctx context.Context) error {
		updates = f.updates(ctx, highest(entries))
		return ctx.Err()
	})
	a.ShowStatus("")
	if err != nil {
		return err
	}
	if a.JSON {
		err = a.PrintJSON(updates)
	} else {
		err = printUpdates(a, updates)
	}
	if err != nil {
		return err
	}
	var failed []error
	for _, u := range updates {
		if u.err != nil {
			failed = append(failed, u.err)
		}
	}
	if len(failed) == 0 {
		return nil
	}
	err = fmt.Errorf("ask for newer versions: %d of %s could not be asked: %w", len(failed),
		hint.Plural(len(updates), "connector"), failed[0])
	return hint.New(err, "the other lines are complete; %s", HintOr(failed[0], "try again"))
}

// HintOr returns the hint of err, or else another one.
func HintOr(err error, otherwise string) string {
	if h := hint.Of(err); h != "" {
		return h
	}
	return otherwise
}

// highest returns the highest version of each connector, by name. Broken ones count: their names are known.
func highest(entries []store.Entry) []store.Entry {
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

// updates asks the sources of connectors, several at a time, and returns the result for each.
func (f *Fetcher) updates(ctx context.Context, installed []store.Entry) []updateJSON {
	all := make([]updateJSON, len(installed))
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
func (f *Fetcher) update(ctx context.Context, e store.Entry) updateJSON {
	u := updateJSON{FQN: string(e.FQN), Installed: e.Version, Source: "remote", Newer: []string{}, Prereleases: []string{}}
	var versions []string
	if entry, ok := catalog.Find(u.FQN); ok {
		u.Source, versions = "catalogue", []string{entry.Connector.Version}
	} else if e.FQN.IsLocal() {
		u.Source = "none"
	} else if versions, u.err = f.client.Versions(ctx, e.FQN); u.err != nil {
		d := cli.DescribeFailure(u.err)
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

// printUpdates prints a line for each connector, and how to install what is newer.
func printUpdates(a *cli.App, updates []updateJSON) error {
	if len(updates) == 0 {
		a.Infof("aileron: no connectors installed")
		return nil
	}
	w := tabwriter.NewWriter(a.Stdout, 0, 0, 2, ' ', 0)
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
		fmt.Fprintf(w, "%s\t%s\t%s\n", u.FQN, u.Installed, state)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, u := range updates {
		if u.Update != "" {
			a.Infof("next: aileron connector install %s@%s", u.FQN, u.Update)
		}
	}
	return nil
}
