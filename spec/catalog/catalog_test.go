package catalog

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/shims"
	"github.com/ALRubinger/aileron/spec"
	"github.com/ALRubinger/aileron/spec/store"
)

func TestEveryEntryIsAConnectorOfItsName(t *testing.T) {
	for _, e := range List() {
		c, err := store.ReadFS(e.Files)
		if err != nil {
			t.Fatalf("%s: %v", e.Name, err)
		}
		if want := FQN(e.Name); c.FQN != want {
			t.Errorf("the FQN of %s is %s, want %s", e.Name, c.FQN, want)
		}
		if name, ok := Name(c.FQN); !ok || name != e.Name {
			t.Errorf("Name(%s) = %q, %v", c.FQN, name, ok)
		}
		if found, ok := Find(string(c.FQN)); !ok || found.Name != e.Name {
			t.Errorf("Find(%s) = %q, %v", c.FQN, found.Name, ok)
		}
		if len(c.Tools) != 1 || e.Summary == "" || strings.Contains(e.Summary, "\n") {
			t.Errorf("%s has %d tools and the summary %q", e.Name, len(c.Tools), e.Summary)
		}
	}
	for _, name := range []string{"", ".", "githb", "github/x", prefix, "github://acme/github"} {
		if e, ok := Find(name); ok {
			t.Errorf("Find(%q) is %s", name, e.Name)
		}
	}
}

// All may be installed together, but for those that are two ways to pay for
// the same models.
func TestEntriesDoNotConflict(t *testing.T) {
	var all []*spec.Connector
	for _, e := range List() {
		if e.Name != "anthropic-oauth" {
			all = append(all, e.Connector)
		}
	}
	if _, err := spec.NewIndex(all); err != nil {
		t.Error(err)
	}
	for _, agent := range []string{"claude", "codex", "opencode", "pi"} {
		if err := (shims.Set{Connectors: all}).Conflict(agent); err != nil {
			t.Error(err)
		}
	}
}

// A version does not change: what examples/ ships under the same version has
// the same bytes, and what it ships under an older one is all there, unchanged.
func TestEntriesAgreeWithTheExamples(t *testing.T) {
	dirs, err := filepath.Glob("../../examples/connectors/*")
	if err != nil || len(dirs) < 3 {
		t.Fatalf("the examples are %q, %v", dirs, err)
	}
	for _, dir := range dirs {
		example := must.Get(store.Read(dir))(t)
		e, ok := Find(string(example.FQN))
		if !ok {
			t.Errorf("the catalogue has no %s", example.FQN)
			continue
		}
		if e.Connector.Version == example.Version {
			for _, name := range []string{spec.ManifestFile, spec.SpecFile} {
				want := must.Get(os.ReadFile(filepath.Join(dir, name)))(t)
				if got, err := fs.ReadFile(e.Files, name); err != nil || !bytes.Equal(got, want) {
					t.Errorf("%s of %s %s is not that of %s: %v", name, e.Name, example.Version, dir, err)
				}
			}
			continue
		}
		for _, op := range example.Tools[0].Operations {
			i := slices.IndexFunc(e.Connector.Tools[0].Operations, func(o *spec.Operation) bool { return o.Name == op.Name })
			if i < 0 || described(e.Connector.Tools[0].Operations[i]) != described(op) {
				t.Errorf("the operation %s of %s is not that of %s", op.Name, e.Name, dir)
			}
		}
	}
}

// A registry connector reads, and has no credential that could be spent.
func TestRegistriesAreReadOnly(t *testing.T) {
	registries := []string{"npm", "pypi", "go", "crates", "rubygems", "maven", "debian", "ubuntu", "alpine"}
	for _, name := range registries {
		e, ok := Find(name)
		if !ok {
			t.Errorf("there is no %s", name)
			continue
		}
		if e.NeedsSecret() || len(e.Connector.Placeholders) > 0 {
			t.Errorf("%s has a credential", name)
		}
		for _, op := range e.Connector.Tools[0].Operations {
			if op.Method != "GET" && op.Method != "HEAD" || op.Injection != nil {
				t.Errorf("%s is %s", op, op.Method)
			}
			if !op.QueryDeclaredOnly && op.Hosts[0].Name != "storage.googleapis.com" {
				t.Errorf("%s accepts any query", op)
			}
		}
	}
}

// A reviewer finds every operation that writes to a repository by its name.
func TestPushesHaveTheirOwnOperations(t *testing.T) {
	for _, e := range List() {
		ix := must.Get(spec.NewIndex([]*spec.Connector{e.Connector}))(t)
		for _, repository := range []string{"/o/r.git", "/o/s/r.git", "/o/s/t/r.git"} {
			for _, host := range []string{"github.com", "gitlab.com"} {
				refs := spec.Target{Scheme: "https", Host: host, Port: 443, Method: "GET", Path: repository + "/info/refs"}
				pack := spec.Target{Scheme: "https", Host: host, Port: 443, Method: "POST"}
				for service, want := range map[string]string{"upload": "git.fetch", "receive": "git.push"} {
					refs.Query, pack.Path = "service=git-"+service+"-pack", repository+"/git-"+service+"-pack"
					for _, target := range []spec.Target{refs, pack} {
						if m, no := ix.Match(target); no == nil && !strings.HasPrefix(m.Operation.Name, want) {
							t.Errorf("%s: %s?%s is %s, want %s", e.Name, target.Path, target.Query, m.Operation.Name, want)
						}
					}
				}
			}
		}
		if strings.HasSuffix(e.Name, "-public") && strings.Contains(e.Connector.Tools[0].Operations[0].Name, "push") {
			t.Errorf("%s pushes", e.Name)
		}
	}
}

// described returns what an operation is, without its connector.
func described(op *spec.Operation) string {
	var b strings.Builder
	for _, part := range []string{op.Method, op.Path.String(), strings.Join(hosts(op), " "), op.Upgrade, op.Approval} {
		b.WriteString(part + "\n")
	}
	for _, in := range op.Inputs {
		b.WriteString(in.Name + " " + in.In + " " + strings.Join(in.Values, ",") + "\n")
	}
	for _, p := range op.Headers {
		b.WriteString(p.String() + "\n")
	}
	if in := op.Injection; in != nil {
		b.WriteString(strings.Join([]string{string(in.Kind), in.In, in.Name, in.Format, in.Username}, " "))
	}
	return b.String()
}

func hosts(op *spec.Operation) []string {
	var list []string
	for _, h := range op.Hosts {
		list = append(list, h.String())
	}
	return list
}

// A model that answers in the background says what it has used where its answer is fetched.
func TestAResponseThatIsFetchedIsMeteredAsOneThatIsMade(t *testing.T) {
	metered := 0
	for _, e := range List() {
		for _, create := range e.Connector.Tools[0].Operations {
			fetched := create.Path.String() + "/{response_id}"
			for _, get := range e.Connector.Tools[0].Operations {
				if len(create.Meters) == 0 || get.Method != "GET" || get.Path.String() != fetched {
					continue
				}
				metered++
				if !slices.EqualFunc(get.Meters, create.Meters, func(a, b spec.Meter) bool {
					return a.Name == b.Name && slices.Equal(a.Source, b.Source) &&
						slices.EqualFunc(a.Events, b.Events, slices.Equal)
				}) {
					t.Errorf("%s: %s has the meters %v, want those of %s: %v", e.Name, get.Name, get.Meters, create.Name,
						create.Meters)
				}
			}
		}
	}
	if metered == 0 {
		t.Error("no operation fetches a response of a metered one")
	}
}
