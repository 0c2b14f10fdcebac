package session

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/proxy/api"
	"github.com/ALRubinger/aileron/spec"
	"github.com/ALRubinger/aileron/spec/store"
)

// rival installs a connector that uses a credential of its own for a request of GitHub's.
func rival(t *testing.T, home string) (remove func()) {
	t.Helper()
	dir := t.TempDir()
	write := func(name, text string) { must.Do(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600)) }
	write(spec.ManifestFile, "[connector]\nname = \"github://acme/rival\"\nversion = \"1.0.0\"\n"+
		"[capabilities.network]\nhosts = [\"api.github.com:443\"]\n"+
		"[capabilities.credential]\nkind = \"bearer\"\nscope = \"All\"\n[provides]\nintents = [\"all\"]\n")
	write(spec.SpecFile, `{"schema_version":"aileron.connector.v1","connector":{"fqn":"github://acme/rival",
		"version":"1.0.0"},"tools":[{"name":"rival","operations":[{"name":"get","method":"GET","path":"/user",
		"hosts":["api.github.com"],"credential":"bearer"}]}]}`)
	s := must.Get(store.Open(filepath.Join(home, "store")))(t)
	must.Get(s.Install(t.Context(), dir, store.InstallOptions{}))(t)
	return func() { must.Get(s.Remove("github://acme/rival", "", nil))(t) }
}

// A connector that does not fit to those in force changes nothing, whatever else changes, and the owner is told once.
func TestAConnectorThatDoesNotFitChangesNothing(t *testing.T) {
	o := newOptions(t)
	install(t, o.Home)
	bind(t, o, "work")
	var log bytes.Buffer
	o.logTo(&log)
	s := openStill(t, o)
	before := api.Describe(s.plane)
	remove := rival(t, o.Home)
	for range 3 {
		s.loader.reload(t.Context())
	}
	is := api.Describe(s.plane)
	if !slices.EqualFunc(is.Operations, before.Operations, func(a, b api.OperationDescription) bool {
		return a.FullName() == b.FullName() && a.Bound == b.Bound
	}) || is.Generation != before.Generation || len(is.Operations) == 0 || !is.Operations[0].Bound {
		t.Errorf("the session grants %+v, want what it granted: %+v", is, before)
	}
	if n := strings.Count(log.String(), "goes on without github://acme/rival@1.0.0, which does not fit"); n != 1 {
		t.Errorf("the owner is told %d times:\n%s", n, log.String())
	}
	installNPM(t, o.Home) // which fits
	s.loader.reload(t.Context())
	if n := len(s.Connectors()); n != 2 {
		t.Errorf("beside a connector that does not fit, %d are in force, want GitHub's and npm's", n)
	}
	st := must.Get(store.Open(filepath.Join(o.Home, "store")))(t)
	must.Get(st.Remove("github://alrubinger/aileron-connector-npm", "", nil))(t)
	s.loader.reload(t.Context())
	if n := len(s.Connectors()); n != 1 {
		t.Errorf("beside a connector that does not fit, %d are in force after npm was removed, want GitHub's", n)
	}
	installNPM(t, o.Home)
	remove()
	s.loader.reload(t.Context())
	if is := s.Surface(); len(is.Connectors) != 2 {
		t.Errorf("without it, %d connectors are in force, want GitHub's and npm's", len(is.Connectors))
	}
	rival(t, o.Home)
	must.Get(must.Get(store.Open(filepath.Join(o.Home, "store")))(t).Remove(string(githubFQN), "", nil))(t)
	s.loader.reload(t.Context())
	if is := s.Surface(); slices.ContainsFunc(is.Connectors, func(c *spec.Connector) bool { return c.FQN == githubFQN }) {
		t.Error("a connector that was removed is in force still")
	}
	must.Do(t, s.Close(t.Context(), 0, "the command ended"))
	list := grantsRows(t, o.Home)
	if len(list) < 2 || fmt.Sprint(list[1].Reason, list[1].Fields["changes"], list[1].Fields["not_used"]) !=
		"connectors_conflict[not_used] [github://acme/rival@1.0.0]" {
		t.Errorf("the rows are %+v", list)
	}
}

// What was in force comes back after a moment in which nothing could be recorded: a connector that was installed
// meanwhile, and does not fit it, does not take its place.
func TestAMisfitDoesNotComeInWhileNothingIsRecorded(t *testing.T) {
	o := newOptions(t)
	install(t, o.Home)
	bind(t, o, "work")
	s := openStill(t, o)
	closed := must.Get(audit.Open(filepath.Join(t.TempDir(), "audit.db"), audit.Options{}))(t)
	must.Do(t, closed.Close())
	whole := s.audit
	s.audit = closed // no row can be added
	installNPM(t, o.Home)
	rival(t, o.Home)
	for range 2 {
		s.loader.reload(t.Context())
	}
	if n := len(s.Connectors()); n != 0 {
		t.Errorf("%d connectors are in force without a row", n)
	}
	s.audit = whole
	s.loader.reload(t.Context())
	is := api.Describe(s.plane)
	if len(s.Connectors()) != 2 || !slices.ContainsFunc(is.Operations, func(a api.OperationDescription) bool {
		return a.ConnectorFQN == string(githubFQN) && a.Bound
	}) {
		t.Errorf("the session grants %+v, want GitHub and npm", is)
	}
	must.Do(t, s.Close(t.Context(), 0, "the command ended"))
}

// A surface is passed on when it differs from the last one, and again where it could not be used.
func TestASurfaceIsFollowed(t *testing.T) {
	o := newOptions(t)
	s := open(t, o)
	first := s.Surface()
	must.Do(t, s.Serve(t.Context(), false))
	got := make(chan Surface, 8)
	s.Follow(t.Context(), first, func(_ context.Context, now Surface) error {
		got <- now
		return nil
	})
	installNPM(t, o.Home)
	if now := <-got; len(now.Connectors) != 1 || len(now.Unbound) != 0 {
		t.Errorf("after npm was installed, the surface is %+v", now)
	}
	install(t, o.Home)
	if now := <-got; len(now.Connectors) != 2 || !slices.Equal(now.Unbound, []spec.FQN{githubFQN}) {
		t.Errorf("after GitHub was installed, the surface is %+v", now)
	}
	must.Do(t, s.Close(t.Context(), 0, "the command ended"))
	if n := len(got); n != 0 {
		t.Errorf("%d surfaces without a change", n)
	}
}

// What cannot be put into a sandbox is tried again; the owner is told once.
func TestASurfaceThatCannotBeUsedComesAgain(t *testing.T) {
	o := newOptions(t)
	var log bytes.Buffer
	o.logTo(&log)
	s := open(t, o)
	first := s.Surface()
	must.Do(t, s.Serve(t.Context(), false))
	tried := make(chan int, 8)
	n := 0
	s.Follow(t.Context(), first, func(context.Context, Surface) error {
		n++
		tried <- n
		if n < 3 {
			s.loader.changed <- struct{}{} // as another change does
			return errors.New("no room is left")
		}
		return nil
	})
	installNPM(t, o.Home)
	for want := range 3 {
		if got := <-tried; got != want+1 {
			t.Errorf("try %d, want %d", got, want+1)
		}
	}
	must.Do(t, s.Close(t.Context(), 0, "the command ended"))
	if got := strings.Count(log.String(), "could not be changed: no room is left"); got != 1 {
		t.Errorf("the owner is told %d times:\n%s", got, log.String())
	}
}
