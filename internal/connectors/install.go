package connectors

import (
	"bufio"
	"context"
	"errors"
	"fmt"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/internal/changes"
	"github.com/ALRubinger/aileron/internal/console"
	"github.com/ALRubinger/aileron/internal/failure"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/internal/home"
	"github.com/ALRubinger/aileron/spec"
	"github.com/ALRubinger/aileron/spec/source"
	"github.com/ALRubinger/aileron/spec/store"
)

// Installer installs connectors: [Installer.Confirm] finds them, shows what they grant and asks; [Installer.Install]
// installs what was granted.
type Installer struct {
	*console.Console
	*home.Dir
	Recorder changes.Recorder
	Hash     string      // that the only connector must have; "": any
	Yes      bool        // grant what they ask for, without a question
	Full     bool        // print all that they grant, however long it is
	Faults   FaultLister // nil: all faults are in the error

	by Publishers // of what is to be installed
}

// Publisher returns who published a connector that is to be installed.
func (i *Installer) Publisher(c *spec.Connector) Publisher { return i.by.Of(c) }

// Confirm returns what is to be installed, which is valid, after it was printed and granted.
func (i *Installer) Confirm(ctx context.Context, s *store.Store, f *Fetcher, names []string,
) (sources []store.Source, err error) {
	installed, _ := s.Current()
	var fresh []*spec.Connector
	i.by = Publishers{}
	for _, name := range names {
		src, there, err := i.locate(ctx, s, f, name)
		if err != nil {
			return nil, err
		}
		if !there {
			candidate, err := ReadSource(src, i.Faults)
			if err != nil {
				return nil, err
			}
			c := candidate.Connector
			_, loaded := s.Load(c.Hash)
			by, err := admit(ctx, i.Dir, candidate, i.Hash != "" || loaded == nil)
			if err != nil {
				return nil, err
			}
			i.by[c.Hash] = by
			src.Checked, src.Signature = true, candidate.Signature
			if loaded != nil || by.Status.First || len(by.Status.Replaces) > 0 {
				fresh = append(fresh, c)
			}
			src.Hash = c.Hash // the bytes that are printed are the bytes that are installed
		}
		sources = append(sources, src)
	}
	if err := admitTogether(ctx, i.Dir, sources, i.by); err != nil {
		return nil, err
	}
	return sources, i.ask(ctx, fresh, ByName(installed))
}

// locate returns where a connector is, which is fetched if it has to be. It reports whether it is installed.
func (i *Installer) locate(ctx context.Context, s *store.Store, f *Fetcher, name string,
) (src store.Source, there bool, err error) {
	src = store.Source{Src: name, Hash: i.Hash}
	entry, inCatalog, err := CatalogSource(name)
	switch {
	case err != nil:
		return src, false, err
	case inCatalog:
		src.Files = entry.Files
		return src, false, nil
	case !IsRemote(name):
		return src, false, nil
	case IsURL(name) && i.Hash == "":
		return src, false, hint.New(failure.Usagef("an address does not say what is at it: pass the content hash that the "+
			"archive must have"), "--hash sha256:…; aileron connector check URL prints it")
	case IsURL(name):
		src, err = f.FetchURL(ctx, name, i.Hash)
		return src, false, err
	}
	ref, err := source.ParseRef(name)
	if err != nil {
		return src, false, failure.Usage(err)
	}
	switch _, err := s.Find(ref.FQN, ref.Version); {
	case err == nil:
		return src, true, nil
	case errors.As(err, new(*store.ListError)):
		return src, false, err
	}
	src, err = f.Fetch(ctx, ref, i.Hash)
	return src, false, err
}

// Install installs connectors, and returns those that are installed with the error of the next.
func (i *Installer) Install(ctx context.Context, s *store.Store, sources []store.Source,
) (installed []store.Installed, err error) {
	batch := i.Recorder.NewBatch()
	defer func() { err = batch.Close(err) }()
	for _, src := range sources { // before what they sign, and by consent to that
		by, err := i.by[src.Hash], error(nil)
		switch {
		case by.Status.First:
			err = rememberKey(ctx, i.Dir, batch, by)
		case len(by.Status.Replaces) > 0:
			err = rotateKey(ctx, i.Dir, batch, by, src.Signature)
		}
		if err != nil {
			return nil, err
		}
	}
	record := func(c *spec.Connector, install func() error) error {
		about := i.by.Of(c).Mark(AboutConnector(string(c.FQN), c.Version, c.Hash))
		return batch.Enact(ctx, changes.Change{What: audit.ChangeConnectorInstall, About: about}, install)
	}
	installed, err = s.InstallAll(ctx, sources, record)
	var version *store.VersionError
	if errors.As(err, &version) {
		return installed, hint.New(err, "raise the version, or remove it first with: aileron connector remove %s",
			version.Entry)
	}
	if err != nil {
		return installed, SourceError(sources[len(installed)].Src, err, i.Faults)
	}
	return installed, nil
}

// ask prints what connectors grant, and returns an error unless Yes or the person at the terminal grants it. On a
// terminal, what is long is summarised, unless Full asks for all of it; the log of a script has all. How much is
// unusual is part of the question: no length of what is above it can hide that.
func (i *Installer) ask(ctx context.Context, fresh []*spec.Connector, installed map[string]*spec.Connector) error {
	out := bufio.NewWriter(i.Stderr)
	unusual, isCut := 0, false
	for n, c := range fresh {
		if n > 0 {
			fmt.Fprintln(out)
		}
		old, odd := installed[string(c.FQN)], Unusual(c)
		unusual += len(odd)
		if isLong(c) && !i.Full && i.Interactive() {
			isCut = true
			SummariseConnector(out, c, old, i.by.Of(c), i.Columns())
			continue
		}
		PrintConnector(out, c, i.by.Of(c), i.MessageColumns())
		if old != nil {
			PrintChanges(out, old, c, 0)
		}
		for _, o := range odd {
			word := "unusual"
			if o.What == mayIssue {
				word = "warning"
			}
			fmt.Fprintf(out, "\n%s: %s: %s", word, c.FQN, o.Text(2*80))
		}
		if len(odd) > 0 {
			fmt.Fprintln(out)
		}
	}
	if err := ConflictWith(installed, fresh); err != nil {
		fmt.Fprintf(out, "\nwarning: no session will start while both are installed: %v\n", err)
	}
	_ = out.Flush()
	if i.Yes || len(fresh) == 0 {
		return nil
	}
	if !i.Interactive() {
		return failure.Usagef("there is no terminal to ask for confirmation on; pass --yes to grant this")
	}
	talk, err := i.Converse()
	if err != nil {
		return err
	}
	defer talk.End()
	yes, err := talk.YesOr(ctx, question(len(fresh), unusual, isCut), false, func() { PrintWhole(i.Console, fresh, i.by) })
	if err == nil && !yes {
		err = failure.Declined("not installed: it was not confirmed")
	}
	return err
}

// question returns what is asked before so many connectors are installed.
func question(connectors, unusual int, isCut bool) string {
	what := "it"
	if connectors > 1 {
		what = fmt.Sprintf("these %d connectors", connectors)
	}
	text := fmt.Sprintf("install %s and grant this?", what)
	if unusual > 0 {
		text = fmt.Sprintf("install %s and grant this, of which %s unusual?", what,
			map[bool]string{true: "one thing is", false: fmt.Sprintf("%d things are", unusual)}[unusual == 1])
	}
	if isCut {
		text += " (? lists every operation)"
	}
	return text
}

// PrintWhole prints all that connectors grant.
func PrintWhole(c *console.Console, all []*spec.Connector, by Publishers) {
	out := bufio.NewWriter(c.Stderr)
	for _, one := range all {
		PrintConnector(out, one, by.Of(one), c.MessageColumns())
	}
	_ = out.Flush()
}
