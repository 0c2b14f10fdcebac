package action

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/spec"
)

const hashA = "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

const good = `+++
[action]
name = "file-followup"
version = "1.0.0"
description = "File a follow-up of an issue"

[[inputs]]
name = "project"
type = "string"
required = true
description = "The project's key"

[[inputs]]
name = "title"
type = "string"
required = true

[[inputs]]
name = "labels"
type = "array"

[[requires.connectors]]
name = "github://acme/tracker"
version = "1.2.0"
hash = "` + hashA + `"
capabilities = ["issues.get", "issues.create"]

[[execute]]
tool = "tracker"
operation = "issues.create"
[execute.args]
project = "${args.project}"
title = "Follow-up: ${args.title} $${args.title}"
labels = "${args.labels}"
fixed = { n = 1, f = 1.5, on = true, list = ["${args.project}", 2] }
+++

# File a follow-up

Use it when an issue is closed too early.
`

const manifest = `[connector]
name = "github://acme/tracker"
version = "1.2.0"
[capabilities.network]
hosts = ["api.tracker.example:443"]
[capabilities.credential]
kind = "api_key"
scope = "Read and create issues"
[provides]
intents = ["read_issues", "create_issue"]
`

const specification = `{"schema_version": "aileron.connector.v1",
 "connector": {"fqn": "github://acme/tracker", "version": "1.2.0"},
 "tools": [{"name": "tracker", "description": "Issue tracker", "operations": [
  {"name": "issues.get", "method": "GET", "path": "/v1/projects/{project}/issues/{id}",
   "hosts": ["api.tracker.example"], "credential": "api_key",
   "inputs": [{"name": "project", "type": "string"}, {"name": "id", "type": "integer", "required": true}]},
  {"name": "issues.delete", "method": "DELETE", "path": "/v1/projects/{project}/issues/{id}",
   "hosts": ["api.tracker.example"], "credential": "api_key"},
  {"name": "issues.create", "method": "POST", "path": "/v1/projects/{project}/issues", "hosts": ["api.tracker.example"],
   "credential": "api_key", "inputs": [{"name": "title", "type": "string", "required": true},
   {"name": "labels", "type": "array"}, {"name": "fixed", "type": "object"}]}]}]}`

func tracker(t *testing.T) *spec.Connector {
	t.Helper()
	c := must.Get(spec.Load([]byte(manifest), []byte(specification)))(t)
	c.Hash = hashA
	return c
}

func link(t *testing.T, text string) (*Linked, error) {
	t.Helper()
	a := must.Get(Parse([]byte(text)))(t)
	return a.Link(func(Pin) (*spec.Connector, error) { return tracker(t), nil })
}

func TestAnActionIsRead(t *testing.T) {
	a := must.Get(Parse([]byte(good)))(t)
	if a.Name != "file-followup" || a.Version != "1.0.0" || len(a.Inputs) != 3 || len(a.Steps) != 1 ||
		!a.Inputs[0].Required || a.Requires[0].String() != "github://acme/tracker@1.2.0" ||
		!strings.HasPrefix(a.Body, "\n# File a follow-up") || !spec.IsDigest(a.Hash) {
		t.Errorf("Parse = %+v", a)
	}
	crlf, err := Parse([]byte(strings.ReplaceAll(good, "\n", "\r\n")))
	if err != nil || crlf.Name != a.Name {
		t.Errorf("with CRLF: %v", err)
	}
}

// What a person agrees to has the values that the author of an action chose.
func TestTheArgumentsOfAStepAreShown(t *testing.T) {
	a := must.Get(Parse([]byte(good)))(t)
	const want = `{"fixed":{"f":1.5,"list":["${args.project}",2],"n":1,"on":true},"labels":"${args.labels}",` +
		`"project":"${args.project}","title":"Follow-up: ${args.title} ${args.title}"}`
	if got := a.Steps[0].Args(); got != want {
		t.Errorf("Args = %s, want %s", got, want)
	}
	if got := (Step{}).Args(); got != "{}" {
		t.Errorf("without arguments, Args = %s", got)
	}
}

// TestEveryMistakeHasItsPlace replaces a part of a good file and wants one mistake, at its line.
func TestEveryMistakeHasItsPlace(t *testing.T) {
	for _, c := range []struct{ old, new, want string }{
		{"+++\n[action]", "---\n[action]", "line 1: it begins with ---, which is YAML"},
		{"+++\n[action]", "[action]", "line 1: it does not begin with a line +++"},
		{"+++\n\n# File", "\n\n# File", "its frontmatter has no end"},
		{`version = "1.0.0"`, `Version = "1.0.0"`, `line 4: action.Version: unknown key; use "version"`},
		{`version = "1.0.0"`, "version = \"1.0.0\"\nshell = \"rm\"", `line 5: action.shell: unknown key`},
		{`version = "1.0.0"`, "version = \"1.0.0\"\nversion = \"1.0.0\"",
			`line 5: Key 'action.version' has already been defined`},
		{`version = "1.0.0"`, `version = "latest"`, `line 4: action.version: "latest" is not a MAJOR.MINOR.PATCH version`},
		{`name = "file-followup"`, `name = "curl"`,
			`line 3: action.name: "curl" is the name of a command that sandboxes need`},
		{`name = "file-followup"`, `name = "../up"`, `line 3: action.name: "../up" is not a command name`},
		{`File a follow-up of an issue`, `File\u001b[2J`, `line 5: action.description: it has a line break, a control`},
		{`The project's key`, `The \u202e key`, `line 11: inputs[0].description: it has a line break, a control`},
		{`name = "title"`, `name = "project"`, `line 14: inputs[1].name: "project" appears twice`},
		{`type = "array"`, `type = "list"`, `line 20: inputs[2].type: "list" is not one of string, integer`},
		{`type = "array"`, "type = \"array\"\nin = \"path\"", `line 21: inputs[2].in: unknown key`},
		{`github://acme/tracker"`, `tracker"`, `line 23: requires.connectors[0].name: read the connector name "tracker"`},
		{`version = "1.2.0"`, `version = "^1.2"`, `line 24: requires.connectors[0].version: "^1.2" is not`},
		{hashA, "sha256:abc", `line 25: requires.connectors[0].hash: "sha256:abc" is not sha256:`},
		{`hash = "` + hashA + `"`, "", `line 22: requires.connectors[0].hash: it is missing`},
		{`capabilities = ["issues.get", "issues.create"]`, "",
			`line 22: requires.connectors[0].capabilities: it is missing`},
		{`"issues.get", `, `"issues.*", `,
			`line 26: requires.connectors[0].capabilities[0]: "issues.*" is not the name of`},
		{`operation = "issues.create"`, `operation = 7`, `line 30: execute[0].operation: it is not a string`},
		{`tool = "tracker"`, "tool = \"tracker\"\nconnector = \"hub://a/b\"",
			`line 30: execute[0].connector: "hub://a/b" is not among`},
		{`"${args.labels}"`, `"${env.HOME}"`, `line 34: execute[0].args.labels: only ${args.NAME} is replaced`},
		{`"${args.labels}"`, `"${args.labels"`, `line 34: execute[0].args.labels: only ${args.NAME} is replaced`},
		{`"${args.labels}"`, `"${args.nope}"`, `line 34: execute[0].args.labels: there is no input "nope"`},
		{`"${args.labels}"`, `"x${args.labels}"`, `line 34: execute[0].args.labels: the input labels is optional`},
		{`"${args.labels}"`, `["${args.labels}"]`, `line 34: execute[0].args.labels[0]: the input labels is optional`},
		{`"${args.labels}"`, `nan`, `line 34: execute[0].args.labels: it is not a number of JSON`},
		{`"${args.labels}"`, `2026-01-01`, `line 34: execute[0].args.labels: it is neither`},
		{`labels = "${args.labels}"`, `"${args.labels}" = 1`,
			`line 31: execute[0].args."${args.labels}": an argument fills a value`},
		{`labels = "${args.labels}"`, ``, `line 19: inputs[2].name: no step uses it`},
		{"Use it when", "Use it \x1b[2J", "line 40: the text has a control character"},
		{"Use it when", "Use it \U000e0041", "line 40: the text has a control character or an invisible one"},
	} {
		text := strings.Replace(good, c.old, c.new, 1)
		if text == good {
			t.Fatalf("%q is not in the file", c.old)
		}
		_, err := Parse([]byte(text))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("with %q for %q: %v, want %q", c.new, c.old, err, c.want)
		}
	}
}

func TestAnActionIsBounded(t *testing.T) {
	head, rest, _ := strings.Cut(good, "\n[[inputs]]")
	for what, text := range map[string]string{
		"it is larger than":              good + strings.Repeat("x", MaxSize),
		"it is not UTF-8":                good + "\xff",
		"its frontmatter is larger than": head + "\n#" + strings.Repeat("x", maxFrontmatter) + "\n[[inputs]]" + rest,
		"more than 64 braces":            head + "\nx = " + strings.Repeat("{a=", 100) + "\n[[inputs]]" + rest,
		"a line with more than 256 dots": head + "\n" + strings.Repeat("a.", 300) + "b = 1\n[[inputs]]" + rest,
		"it has more than 16 entries": strings.Replace(good, "+++\n\n#",
			strings.Repeat("[[execute]]\n", 20)+"+++\n\n#", 1),
		"requires: it is missing":           strings.ReplaceAll(good, "[[requires.connectors]]", "[[inputs]]"),
		"execute: it is missing, or has no": strings.Split(good, "[[execute]]")[0] + "+++\n",
	} {
		if _, err := Parse([]byte(text)); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%v, want %q", err, what)
		}
	}
}

// TestArgumentsFillValues holds what a hostile agent may put into an argument to its one place.
func TestArgumentsFillValues(t *testing.T) {
	l, err := link(t, good)
	if err != nil {
		t.Fatal(err)
	}
	const fixed = `"fixed":{"f":1.5,"list":["P",2],"n":1,"on":true},`
	for _, c := range []struct{ args, path, body, err string }{
		{args: `{"project": "P", "title": "t", "labels": ["a", {"b": null}]}`, path: "/v1/projects/P/issues",
			body: `{` + fixed + `"labels":["a",{"b":null}],"title":"Follow-up: t ${args.title}"}`},
		{args: `{"project": "P", "title": "\",\"admin\":true,\"x\":\"${args.project}"}`, path: "/v1/projects/P/issues",
			body: `{` + fixed + `"title":"Follow-up: \",\"admin\":true,\"x\":\"${args.project} ${args.title}"}`},
		{args: `{"project": "P?x=1#f", "title": "t"}`, path: "/v1/projects/P%3Fx=1%23f/issues",
			body: `{"fixed":{"f":1.5,"list":["P?x=1#f",2],"n":1,"on":true},"title":"Follow-up: t ${args.title}"}`},
		{args: `{"project": "a/b", "title": "t"}`, err: "args.project: it has a slash"},
		{args: `{"project": "..", "title": "t"}`, err: "args.project: it is a dot segment"},
		{args: `{"project": "%2e%2e", "title": "t"}`,
			err: "args.project: it has a slash, a backslash, a semicolon or a percent"},
		{args: `{"project": "P", "title": "t", "host": "evil.example"}`, err: "args.host: there is no such input"},
		{args: `{"project": "P", "title": {"a": 1}}`, err: "args.title: it is not a string"},
		{args: `{"project": ["P"], "title": "t"}`, err: "args.project: it is not a string"},
		{args: `{"project": "P", "title": "t", "labels": "a"}`, err: "args.labels: it is not an array"},
		{args: `{"project": "P", "title": "t", "labels": null}`, err: "args.labels: it is null"},
		{args: `{"project": "P"}`, err: "args.title: it is missing"},
		{args: `["P"]`, err: "it is not an object"},
		{args: `{"project": "P", "project": "Q", "title": "t"}`, err: "project: duplicate key"},
		{args: `{"project": NaN, "title": "t"}`, err: "it is not JSON"},
	} {
		args, err := spec.ReadObject([]byte(c.args))
		var calls []spec.Invocation
		if err == nil {
			calls, err = l.Invocations(args)
		}
		var call spec.Call
		if err == nil {
			call, err = l.Operations[0].Call(calls[0])
		}
		if c.err != "" {
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%s: %v, want %q", c.args, err, c.err)
			}
			continue
		}
		if err != nil || call.Target.Path != c.path || string(call.Body) != c.body ||
			call.Target.Host != "api.tracker.example" {
			t.Errorf("%s: %+v %s, %v", c.args, call.Target, call.Body, err)
		}
	}
}

// TestArgumentsDoNotMultiply uses one argument in many places.
func TestArgumentsDoNotMultiply(t *testing.T) {
	text := strings.Replace(good, `"Follow-up: ${args.title} $${args.title}"`,
		`"`+strings.Repeat("${args.title}", 200)+`"`, 1)
	l := must.Get(link(t, text))(t)
	args := map[string]any{"project": "P", "title": strings.Repeat("x", 500<<10)}
	if _, err := l.Invocations(args); err == nil || !strings.Contains(err.Error(), "the calls have more than") {
		t.Errorf("Invocations = %v", err)
	}
}

func TestTheTwoBoundaries(t *testing.T) {
	for _, c := range []struct{ old, new, boundary, want, hint string }{
		{`"issues.get", "issues.create"`, `"issues.get"`, BoundaryAction,
			"it uses tracker issues.create and does not list it in the capabilities of github://acme/tracker",
			`add "issues.create" to the capabilities`},
		{`"issues.get", `, `"issues.purge", `, BoundaryConnector,
			"it lists the capability issues.purge, which is no operation of github://acme/tracker@1.2.0",
			"this connector has issues.get, issues.delete, issues.create"},
		{`"issues.get", `, `"api_key", `, BoundaryConnector, "it lists the capability api_key",
			"capabilities are operations"},
		{`tool = "tracker"`, `tool = "other"`, BoundaryConnector,
			"it uses other issues.create, which no connector that it pins has", "correct tool and operation"},
	} {
		_, err := link(t, strings.Replace(good, c.old, c.new, 1))
		var boundary *BoundaryError
		if !errors.As(err, &boundary) || boundary.Boundary != c.boundary || !strings.Contains(err.Error(), c.want) ||
			!strings.Contains(hint.Of(err), c.hint) {
			t.Errorf("with %s: %v (%s)", c.new, err, hint.Of(err))
		}
	}
	l, err := link(t, strings.Replace(good, `"issues.get", "issues.create"`, `"tracker/issues.create"`, 1))
	if err != nil {
		t.Fatal(err)
	}
	for _, tool := range l.Pinned[0].Tools {
		for _, op := range tool.Operations {
			err := l.Allows(op)
			if (op.Name == "issues.create") != (err == nil) {
				t.Errorf("Allows(%s) = %v", op.Name, err)
			}
		}
	}
	// The same operation of other bytes is not what was pinned.
	changed := *l.Pinned[0]
	changed.Hash = strings.ReplaceAll(hashA, "a", "b")
	op := *l.Operations[0]
	op.Connector = &changed
	if err := l.Allows(&op); err == nil {
		t.Error("Allows an operation of other bytes")
	}
}

func TestAPinIsExact(t *testing.T) {
	a, err := Parse([]byte(good))
	if err != nil {
		t.Fatal(err)
	}
	var pin *PinError
	_, err = a.Link(func(Pin) (*spec.Connector, error) { return nil, errors.New("it is not installed") })
	if !errors.As(err, &pin) || !strings.Contains(err.Error(), "it pins github://acme/tracker@1.2.0") {
		t.Errorf("not installed: %v", err)
	}
	for what, change := range map[string]func(*spec.Connector){
		"version": func(c *spec.Connector) { c.Version = "1.2.1" },
		"name":    func(c *spec.Connector) { c.FQN = "github://acme/other" },
		"hash":    func(c *spec.Connector) { c.Hash = strings.ReplaceAll(hashA, "a", "c") },
	} {
		_, err = a.Link(func(Pin) (*spec.Connector, error) {
			c := *tracker(t)
			change(&c)
			return &c, nil
		})
		if !errors.As(err, &pin) || !pin.Other {
			t.Errorf("another %s: %v", what, err)
		}
	}
}

func TestALibraryAddsAndNeverOverwrites(t *testing.T) {
	home := t.TempDir()
	l := In(home)
	a, _ := Parse([]byte(good))
	other, _ := Parse([]byte(strings.Replace(good, "1.0.0", "2.0.0", 1)))
	before, _ := l.Fingerprint()
	if already, err := l.Add(a, false); already || err != nil {
		t.Fatal(already, err)
	}
	if already, err := l.Add(a, false); !already || err != nil {
		t.Errorf("the same again: %v, %v", already, err)
	}
	var exists *ExistsError
	if _, err := l.Add(other, false); !errors.As(err, &exists) || exists.Version != "1.0.0" {
		t.Errorf("another of that name: %v", err)
	}
	if f, err := l.Find("file-followup"); err != nil || f.Action.Version != "1.0.0" || !f.Added {
		t.Errorf("Find = %+v, %v", f, err)
	}
	if _, err := l.Add(other, true); err != nil {
		t.Error(err)
	}
	list, err := l.List()
	if err != nil || len(list) != 1 || list[0].Action.Version != "2.0.0" {
		t.Errorf("List = %+v, %v", list, err)
	}
	if after, _ := l.Fingerprint(); after == before {
		t.Error("the fingerprint is the same")
	}
	copied := filepath.Join(home, "store", "actions", "sha256", strings.TrimPrefix(a.Hash, "sha256:"), "action.md")
	if data, err := os.ReadFile(copied); err != nil || string(data) != good {
		t.Errorf("the copy: %v", err)
	}
	must.Do(t, os.WriteFile(filepath.Join(l.Dir(), "file-followup.md"), []byte(good+"edited\n"), 0o600))
	if f, err := l.Find("file-followup"); err != nil || f.Err != nil || f.Added {
		t.Errorf("edited: %+v, %v", f, err)
	}
	if err := l.Remove("file-followup"); err != nil {
		t.Error(err)
	}
	if err := l.Remove("file-followup"); !errors.Is(err, ErrNotAdded) {
		t.Errorf("again: %v", err)
	}
	if left, _ := os.ReadDir(filepath.Join(home, "store", "tmp")); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

// TestAnActionFileIsARegularFile puts what is none into the directory.
func TestAnActionFileIsARegularFile(t *testing.T) {
	home, elsewhere := t.TempDir(), filepath.Join(t.TempDir(), "file-followup.md")
	l := In(home)
	must.Do(t, errors.Join(os.MkdirAll(l.Dir(), 0o700), os.WriteFile(elsewhere, []byte(good), 0o600),
		os.Symlink(elsewhere, filepath.Join(l.Dir(), "file-followup.md")),
		unix.Mkfifo(filepath.Join(l.Dir(), "pipe.md"), 0o600),
		os.Symlink("/dev/zero", filepath.Join(l.Dir(), "zero.md")),
		os.Mkdir(filepath.Join(l.Dir(), "dir.md"), 0o700),
		os.WriteFile(filepath.Join(l.Dir(), "renamed.md"), []byte(good), 0o600),
		os.WriteFile(filepath.Join(l.Dir(), "README.txt"), []byte("notes"), 0o600),
		os.WriteFile(filepath.Join(l.Dir(), ".hidden.md"), []byte("notes"), 0o600),
	))
	want := map[string]string{"file-followup": "it is a symbolic link", "pipe": "it is not a regular file",
		"zero": "it is a symbolic link", "dir": "it is not a regular file", "renamed": "its name is file-followup"}
	files, err := l.List()
	if err != nil || len(files) != len(want) {
		t.Fatalf("List = %+v, %v", files, err)
	}
	for _, f := range files {
		if f.Action != nil || f.Err == nil || !strings.Contains(f.Err.Error(), want[f.Name]) {
			t.Errorf("%s: %v, want %q", f.Name, f.Err, want[f.Name])
		}
	}
}

// TestTheDirectoryIsNoLink makes a project's directory the source of actions.
func TestTheDirectoryIsNoLink(t *testing.T) {
	home, project := t.TempDir(), t.TempDir()
	must.Do(t, errors.Join(os.WriteFile(filepath.Join(project, "file-followup.md"), []byte(good), 0o600),
		os.Symlink(project, filepath.Join(home, "actions"))))
	l := In(home)
	a, _ := Parse([]byte(good))
	_, list := l.List()
	_, add := l.Add(a, true)
	_, print := l.Fingerprint()
	for what, err := range map[string]error{"List": list, "Add": add, "Fingerprint": print} {
		if err == nil || !strings.Contains(err.Error(), "is a link or a file") {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestPathsAreNoNames(t *testing.T) {
	for _, name := range []string{"", "../x", "a/b", ".x", "a\x00"} {
		if _, err := In(t.TempDir()).Find(name); !errors.Is(err, ErrNotAdded) {
			t.Errorf("Find(%q) = %v", name, err)
		}
	}
}

// FuzzParse: whatever is accepted is bounded, printable and makes calls of the operations that it lists alone.
func FuzzParse(f *testing.F) {
	f.Add([]byte(good))
	f.Add([]byte("+++\n[action]\nname=\"a\"\n+++\n"))
	f.Add([]byte("+++\n[[execute]]\nargs = {a={b=[[1,\"${args.x}\"],{}]}}\n+++"))
	f.Add([]byte("---\nname: x\n---\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		a, err := Parse(data)
		if err != nil {
			if a != nil || len(Diagnostics(err)) == 0 || len(Diagnostics(err)) > maxDiagnostics+2 {
				t.Fatalf("Parse = %v, %v", a, err)
			}
			return
		}
		if !spec.IsLine(a.Description) || spec.CheckCommandName(a.Name) != nil || len(a.Steps) == 0 ||
			len(a.Requires) == 0 || a.Hash == "" || string(a.Raw) != string(data) {
			t.Fatalf("Parse = %+v", a)
		}
		l, err := a.Link(func(p Pin) (*spec.Connector, error) {
			c := *tracker(t)
			c.FQN, c.Version, c.Hash = p.FQN, p.Version, p.Hash
			return &c, nil
		})
		if err != nil {
			return
		}
		args := map[string]any{}
		for _, in := range a.Inputs {
			args[in.Name] = map[string]any{"": "v", "string": "v", "integer": json.Number("1"), "number": json.Number("1"),
				"boolean": true, "array": []any{}}[in.Type]
		}
		calls, err := l.Invocations(args)
		if err != nil {
			return
		}
		for i, in := range calls {
			if op := l.Operations[i]; l.Allows(op) != nil || in.Operation != op.Name || fmt.Sprint(op.Tool) != in.Tool {
				t.Errorf("a call of %s, which is not granted", in.Operation)
			}
		}
	})
}

// A connector that is pinned twice is one mistake, and two without a name are no pin of the same.
func TestAConnectorIsPinnedOnce(t *testing.T) {
	const twice = "github://acme/tracker appears twice"
	head, pin, _ := strings.Cut(good, "[[requires.connectors]]")
	pin, rest, _ := strings.Cut(pin, "[[execute]]")
	for _, c := range []struct {
		names [2]string
		twice bool
	}{
		{[2]string{"github://acme/tracker", "github://acme/tracker"}, true},
		{[2]string{"github://acme/tracker", "github://acme/mirror"}, false},
		{[2]string{"tracker", "tracker"}, false},
	} {
		text := head
		for _, name := range c.names {
			text += "[[requires.connectors]]" + strings.Replace(pin, "github://acme/tracker", name, 1)
		}
		_, err := Parse([]byte(text + "[[execute]]" + rest))
		if got := err != nil && strings.Contains(err.Error(), " appears twice"); got != c.twice {
			t.Errorf("%q: %v", c.names, err)
		} else if got && !strings.Contains(err.Error(), "requires.connectors[1].name: "+twice) {
			t.Errorf("%q: %v, want %q", c.names, err, twice)
		}
	}
}
