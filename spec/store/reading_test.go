package store

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/spec"
)

// What was read before it was needed is used only while the store is as it was before that.
func TestAReadingIsOfTheStoreAsItWas(t *testing.T) {
	s := open(t)
	first := install(t, s, source(t, "1.2.0", nil)).Connector
	fingerprint := func() string {
		t.Helper()
		return must.Get(s.Fingerprint())(t)
	}
	r := s.Begin()
	all, ok := r.All(fingerprint())
	if !ok || len(all) != 1 || all[0].Hash != first.Hash {
		t.Fatalf("the store was not changed: %v, %v", all, ok)
	}
	if all, ok := (*Reading)(nil).All(fingerprint()); ok {
		t.Errorf("without a reading there is %v", all)
	}

	second := install(t, s, source(t, "1.3.0", nil)).Connector
	if all, ok := r.All(fingerprint()); ok {
		t.Errorf("one was installed since: %v", all)
	}
	r = s.Begin()
	r.Wait()
	must.Do(t, os.RemoveAll(s.path(second.Hash)))
	if all, ok := r.All(fingerprint()); ok {
		t.Errorf("one was removed since: %v", all)
	}

	// The same size and time of change: a person sets that back.
	r = s.Begin()
	r.Wait()
	file := filepath.Join(s.path(first.Hash), spec.SpecFile)
	data := must.Get(os.ReadFile(file))(t)
	info := must.Get(os.Stat(file))(t)
	data[len(data)-2] ^= 1
	must.Do(t, os.WriteFile(file, data, 0o600))
	must.Do(t, os.Chtimes(file, info.ModTime(), info.ModTime()))
	if all, ok := r.All(fingerprint()); ok {
		t.Errorf("one was changed since: %v", all)
	}
	r = s.Begin() // finds it
	if all, ok := r.All(fingerprint()); ok {
		t.Errorf("one is not what was installed: %v", all)
	}
}

// Who asks for some connectors has no other read, and none that was changed.
func TestSomeConnectorsAreReadWithoutTheOthers(t *testing.T) {
	const other = spec.FQN("github://acme/other")
	s := open(t)
	tracker := install(t, s, source(t, "1.2.0", nil)).Connector
	install(t, s, source(t, "1.10.0", nil))
	named := map[string]string{
		spec.ManifestFile: "[connector]\nname = \"" + string(other) + "\"\nversion = \"1.0.0\"\n" +
			"[capabilities.network]\nhosts = [\"api.tracker.example:443\"]\n",
		spec.SpecFile: `{"schema_version": "aileron.connector.v1", "connector": {"fqn": "` + string(other) +
			`", "version": "1.0.0"}, "tools": [{"name": "other", "operations": [
			{"name": "get", "method": "GET", "path": "/o", "hosts": ["api.tracker.example"]}]}]}`,
	}
	install(t, s, source(t, "1.0.0", named))
	names := func(c []*spec.Connector) (list []string) {
		for _, c := range c {
			list = append(list, string(c.FQN)+"@"+c.Version)
		}
		return list
	}
	s.parsed.Store(nil)
	if got := names(s.CurrentOf([]spec.FQN{tracker.FQN})); len(got) != 1 || got[0] != "github://acme/tracker@1.10.0" {
		t.Errorf("of two versions and another connector there are %q", got)
	}
	if parsed := *s.parsed.Load(); len(parsed) != 2 {
		t.Errorf("%d connectors were parsed for two versions of one", len(parsed))
	}
	if got := names(s.CurrentOf([]spec.FQN{other})); len(got) != 1 || len(*s.parsed.Load()) != 3 {
		t.Errorf("there is %q, and what was parsed before is forgotten: %d", got, len(*s.parsed.Load()))
	}
	if got := s.CurrentOf(nil); got != nil {
		t.Errorf("of no name there are %q", names(got))
	}
	// Without its cache, a connector is looked at.
	must.Do(t, os.Remove(s.indexFile(tracker.Hash)))
	must.Do(t, os.WriteFile(filepath.Join(s.path(tracker.Hash), spec.SpecFile), []byte("{}"), 0o600))
	if got := names(s.CurrentOf([]spec.FQN{tracker.FQN})); len(got) != 1 || got[0] != "github://acme/tracker@1.10.0" {
		t.Errorf("with one that was changed there are %q", got)
	}
}
