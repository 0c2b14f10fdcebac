package proxy_test

import (
	"context"
	"flag"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/proxy"
	"github.com/ALRubinger/aileron/proxy/approval"
	"github.com/ALRubinger/aileron/proxy/front"
	"github.com/ALRubinger/aileron/proxy/preview"
	"github.com/rogpeppe/go-internal/diff"
	"github.com/rogpeppe/go-internal/txtar"
)

var updateStories = flag.Bool("update", false, "write what happened into the stories of testdata/exchanges")

// The tests inside the package have a front too.
func init() { //nolint:gochecknoinits // an import of package front would be a cycle there
	proxy.NewPreviews = func(p *proxy.Plane, q *approval.Queue) (func(context.Context, string), func()) {
		previews := preview.New(p, q)
		return previews.Fetch, previews.Wait
	}
	proxy.NewFront = func(p *proxy.Plane) func(context.Context, net.Listener, bool, bool) error {
		f := front.New(p)
		return func(ctx context.Context, l net.Listener, sealed, redirected bool) error {
			return f.Serve(ctx, l, front.Listener{Sealed: sealed, Redirected: redirected})
		}
	}
}

// TestExchanges runs the stories of testdata/exchanges. A story is a txtar file that a reviewer reads without Go;
// README.md beside them explains its sections. What the origin saw, what the client got, and the rows of the audit
// log must be those of the file, to the byte.
func TestExchanges(t *testing.T) {
	files := must.Get(filepath.Glob("testdata/exchanges/*.txtar"))(t)
	if len(files) < 40 {
		t.Errorf("there are %d stories, want 40 or more", len(files))
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			t.Parallel()
			told := must.Get(txtar.ParseFile(file))(t)
			happened := run(t, told)
			want, got := txtar.Format(told), txtar.Format(happened)
			if *updateStories {
				must.Do(t, os.WriteFile(file, got, 0o644))
				return
			}
			if d := diff.Diff(file, want, "what happened", got); len(d) > 0 {
				t.Errorf("%s", d)
			}
		})
	}
}

// inputs are the sections that a story begins with; the others are what must happen.
var inputs = []string{"session", "operation", "operation of another", "tunnel", "client",
	"client, on the same connection", "client over HTTP/2", "origin sends"}

// run does what a story's inputs say, and returns the story with what happened in its other sections.
func run(t *testing.T, story *txtar.Archive) *txtar.Archive {
	t.Helper()
	given := map[string]string{}
	happened := &txtar.Archive{Comment: story.Comment}
	add := func(name, text string) {
		happened.Files = append(happened.Files, txtar.File{Name: name, Data: []byte(text)})
	}
	var f *fixture
	exchange := func(how string) {
		if f == nil {
			f = newFixtureAt(t, given["session"], given["operation"], storyListener(given["session"]),
				given["operation of another"])
		}
		f.origin.script(given["origin sends"])
		got := f.send(how, given["tunnel"], given[how])
		add("origin saw", f.origin.saw())
		add("client got", got)
		delete(given, how)
	}
	pending := ""
	for _, file := range story.Files {
		if !slices.Contains(inputs, file.Name) {
			continue
		}
		if strings.HasPrefix(file.Name, "client") && pending != "" {
			exchange(pending)
		}
		given[file.Name] = string(file.Data)
		add(file.Name, string(file.Data))
		if strings.HasPrefix(file.Name, "client") {
			pending = file.Name
		}
	}
	if pending == "" {
		t.Fatal("the story has no client")
	}
	exchange(pending)
	add("audit log", f.close())
	for _, file := range happened.Files {
		if !slices.Contains(inputs, file.Name) && file.Name != "origin saw" {
			noSecret(t, file.Name, string(file.Data))
		}
	}
	return happened
}

// noSecret fails the test when the sandbox or the audit log holds the credential, whatever the story expects.
func noSecret(t *testing.T, section, text string) {
	t.Helper()
	if strings.Contains(text, storySecret) {
		t.Errorf("%s holds the credential:\n%s", section, text)
	}
}

// settings are the lines "key: value" of a section.
func settings(t *testing.T, section string, known ...string) map[string]string {
	t.Helper()
	found := map[string]string{}
	for line := range strings.Lines(section) {
		key, value, ok := strings.Cut(strings.TrimSpace(line), ":")
		if !ok || !slices.Contains(known, key) {
			t.Fatalf("%q is no setting; there are %s", line, strings.Join(known, ", "))
		}
		found[key] = strings.TrimSpace(value)
	}
	return found
}

// operations returns operations of the connector github://acme/NAME in a specification. The hosts of those that name
// none are the tracker's.
func operations(t *testing.T, name, section string) (spec, manifest string) {
	t.Helper()
	const host = `"hosts": ["api.tracker.example"], `
	var ops, hosts []string
	for op := range strings.SplitSeq(strings.TrimSpace(section), "\n\n") {
		if !strings.Contains(op, `"hosts"`) {
			op = "{" + host + strings.TrimPrefix(strings.TrimSpace(op), "{")
		}
		ops = append(ops, op)
		_, list, _ := strings.Cut(op, `"hosts": [`)
		list, _, _ = strings.Cut(list, "]")
		hosts = append(hosts, list)
	}
	credential := ""
	if kind := kindOf(section); kind != "" {
		credential = fmt.Sprintf("[capabilities.credential]\nkind = %q\n", kind)
	}
	spec = fmt.Sprintf(`{"schema_version": "aileron.connector.v1",
		"connector": {"fqn": "github://acme/%[1]s", "version": "1.0.0"},
		"tools": [{"name": "%[1]s", "operations": [%[2]s]}]}`, name, strings.Join(ops, ","))
	manifest = fmt.Sprintf("[connector]\nname = \"github://acme/%s\"\nversion = \"1.0.0\"\n"+
		"[capabilities.network]\nhosts = [%s]\n%s[provides]\nintents = [\"all\"]\n", name, unique(hosts), credential)
	return spec, manifest
}

// unique returns the distinct items of comma-separated lists, as one.
func unique(lists []string) string {
	var all []string
	for item := range strings.SplitSeq(strings.Join(lists, ","), ",") {
		if item = strings.TrimSpace(item); !slices.Contains(all, item) {
			all = append(all, item)
		}
	}
	return strings.Join(all, ", ")
}

// kindOf returns the kind of credential that the operations declare, or "".
func kindOf(section string) string {
	for _, kind := range []string{"bearer", "api_key", "basic", "oauth2"} {
		if strings.Contains(section, `"`+kind+`"`) {
			return kind
		}
	}
	return ""
}
