package auditschema

import (
	"encoding/json"
	"errors"
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/e2e/rowschema"
	"github.com/ALRubinger/aileron/spec"
)

var update = flag.Bool("update", false, "write docs/audit.schema.json anew")

const published = "../../docs/audit.schema.json"

// The published file is what the code says:
//
//	go test ./internal/auditschema -update
func TestThePublishedSchemaIsThatOfTheCode(t *testing.T) {
	got := must.Get(Document())(t)
	if *update {
		must.Do(t, os.WriteFile(published, got, 0o600))
	}
	if want, err := os.ReadFile(published); err != nil || string(got) != string(want) {
		t.Errorf("docs/audit.schema.json is not the schema of this code (%v); run this test with -update", err)
	}
}

func TestEveryColumnAndEventIsInTheSchema(t *testing.T) {
	var names []string
	for f := range reflect.TypeFor[audit.Row]().Fields() {
		if name := f.Tag.Get("json"); name != "" && name != "-" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	if got := slices.Sorted(maps.Keys(columns())); !slices.Equal(got, names) {
		t.Errorf("the schema has the columns %v, and a row %v", got, names)
	}
	events := audit.Events()
	for event := range shapes() {
		if !slices.Contains(events, event) {
			t.Errorf("%s has a shape and is no event", event)
		}
	}
	for _, event := range events {
		if _, ok := shapes()[event]; !ok {
			t.Errorf("%s has no shape: add it to the function of its kind", event)
		}
	}
}

// The reasons that are constants of the packages that write rows.
func TestEveryReasonIsInTheSchema(t *testing.T) {
	var known []string
	for _, s := range shapes() {
		known = append(known, s.reasons...)
	}
	found := 0
	for _, dir := range []string{"../../audit", "../../proxy", "../launch", "../session"} {
		for _, reason := range constants(t, dir) {
			found++
			if !slices.Contains(known, reason) {
				t.Errorf("%s: the reason %q is in no shape", dir, reason)
			}
		}
	}
	if found < 60 {
		t.Errorf("the packages have %d reasons, want 60 or more: were they renamed?", found)
	}
}

// constants returns the values of the constants of a package whose names begin with reason.
func constants(t *testing.T, dir string) (values []string) {
	t.Helper()
	files := must.Get(filepath.Glob(filepath.Join(dir, "*.go")))(t)
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f := must.Get(parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution))(t)
		ast.Inspect(f, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok || len(spec.Values) != 1 || !strings.HasPrefix(strings.ToLower(spec.Names[0].Name), "reason") {
				return true
			}
			if lit, ok := spec.Values[0].(*ast.BasicLit); ok && lit.Kind == token.STRING {
				value, _ := strconv.Unquote(lit.Value)
				values = append(values, value)
			}
			return true
		})
	}
	return values
}

// example returns a row of an event with the least that it needs, as an export has it.
func example(t *testing.T, event audit.Event, s shape) map[string]any {
	t.Helper()
	r := audit.Row{Seq: 1, ID: audit.NewID(), TS: time.Now(), Event: event, Source: audit.SourceLauncher,
		PrevHash: strings.Repeat("0", 64), Hash: strings.Repeat("a", 64), Fields: map[string]any{}}
	r.Decision, r.Reason = audit.Decision(orEmpty(s.decisions)[0]), orEmpty(s.reasons)[0]
	if s.anyReason {
		r.Reason = "failed"
	}
	for name, schema := range s.object()["properties"].(object) { //nolint:forcetypeassert // object makes it
		r.Fields[name] = valueOf(t, schema.(object)) //nolint:forcetypeassert // as above
	}
	raw := must.Get(json.Marshal(r))(t)
	row := map[string]any{}
	must.Do(t, json.Unmarshal(raw, &row))
	return row
}

// valueOf returns a value that fits a part of the schema.
func valueOf(t *testing.T, schema object) any {
	t.Helper()
	switch {
	case schema["const"] != nil:
		return schema["const"]
	case schema["enum"] != nil:
		if numbers, ok := schema["enum"].([]int); ok {
			return numbers[0]
		}
		return schema["enum"].([]string)[0] //nolint:forcetypeassert // oneOf makes it
	case schema["format"] != nil:
		return "2026-01-02T03:04:05.123456789Z"
	case schema["pattern"] == sum:
		return "sha256:" + strings.Repeat("a", 64)
	case schema["pattern"] == keyID:
		return strings.Repeat("A", 16)
	case schema["pattern"] == fingerprint:
		return strings.Repeat("a", 64)
	case schema["pattern"] != nil:
		return "1-2"
	case schema["minimum"] != nil:
		return schema["minimum"]
	}
	switch schema["type"] {
	case "string":
		return "a text"
	case "boolean":
		return true
	case "integer":
		return -1
	case "array":
		return []any{valueOf(t, schema["items"].(object))} //nolint:forcetypeassert // list makes it
	case "object":
		o := map[string]any{}
		if each, ok := schema["additionalProperties"].(object); ok {
			o["malformed_request"] = valueOf(t, each)
		}
		properties, _ := schema["properties"].(object)
		for name, each := range properties {
			o[name] = valueOf(t, each.(object)) //nolint:forcetypeassert // every property is one
		}
		return o
	}
	t.Fatalf("no value for %v", schema)
	return nil
}

// A connector may not declare a field that aileron records in the same rows.
func TestEveryFieldBesideDeclaredOnesIsReserved(t *testing.T) {
	for event, s := range shapes() {
		properties, _ := s.object()["properties"].(object)
		for name := range properties {
			if s.declared && !slices.Contains(spec.ReservedAuditFields(), name) {
				t.Errorf("%s: a connector may declare the field %q", event, name)
			}
		}
	}
}

func TestARowWithEveryFieldFits(t *testing.T) {
	for event, s := range shapes() {
		if err := validate(t, example(t, event, s)); err != nil {
			t.Errorf("%s: %v", event, err)
		}
	}
}

// Each row is wrong in one place, and is refused because of that.
func TestAWrongRowIsRefusedForItsFault(t *testing.T) {
	for name, c := range map[string]struct {
		event audit.Event
		edit  func(row, fields map[string]any)
		at    string // the place in the row
		rule  string // the keyword that it breaks
	}{
		"another event": {audit.EventSessionStarted,
			func(r, _ map[string]any) { r["event"] = "session.paused" }, "/event", "enum"},
		"a column that does not exist": {audit.EventProxyProxied,
			func(r, _ map[string]any) { r["query"] = "q=1" }, "", "additionalProperties"},
		"no hash": {audit.EventProxyProxied, func(r, _ map[string]any) { delete(r, "hash") }, "", "required"},
		"a text as a number": {audit.EventProxyProxied,
			func(r, _ map[string]any) { r["status"] = "200" }, "/status", "type"},
		"a status of four digits": {audit.EventProxyProxied,
			func(r, _ map[string]any) { r["status"] = 1000 }, "/status", "maximum"},
		"a decision of an intent": {audit.EventProxyStarted,
			func(r, _ map[string]any) { r["decision"] = "proxied" }, "/decision", "enum"},
		"a reason of another event": {audit.EventBroken,
			func(r, _ map[string]any) { r["reason"] = "host_not_allowed" }, "/reason", "enum"},
		"a denial without a reason": {audit.EventProxyRejected,
			func(r, _ map[string]any) { r["reason"] = "" }, "/reason", "enum"},
		"a time without a zone": {audit.EventVaultLocked,
			func(r, _ map[string]any) { r["ts"] = "2026-01-02T03:04:05" }, "/ts", "format"},
		"an id that is none": {audit.EventVaultLocked,
			func(r, _ map[string]any) { r["id"] = "row-1" }, "/id", "pattern"},
		"redirected that is false": {audit.EventSandboxRejected,
			func(_, f map[string]any) { f["redirected"] = false }, "/fields/redirected", "const"},
		"a header's value": {audit.EventSandboxPassthrough,
			func(_, f map[string]any) { f["authorization"] = "Bearer x" }, "/fields", "additionalProperties"},
		"a declared field that is no text": {audit.EventProxyProxied,
			func(_, f map[string]any) { f["project"] = 1 }, "/fields/project", "type"},
		"a grant without its connector": {audit.EventSessionStarted,
			func(_, f map[string]any) { f["grants"] = []any{map[string]any{"version": "1.0.0"}} }, "/fields/grants/0",
			"required"},
		"a request without its id": {audit.EventProxyStarted,
			func(_, f map[string]any) { delete(f, "request_id") }, "/fields", "required"},
	} {
		row := example(t, c.event, shapes()[c.event])
		c.edit(row, row["fields"].(map[string]any)) //nolint:forcetypeassert // example makes it
		var refused *jsonschema.ValidationError
		if !errors.As(validate(t, row), &refused) || !blames(refused, c.at, c.rule) {
			t.Errorf("%s: %v, want %s at %q", name, refused, c.rule, c.at)
		}
	}
}

// blames reports whether a leaf of the error is the rule at the place.
func blames(err *jsonschema.ValidationError, at, rule string) bool {
	if len(err.Causes) == 0 {
		place := ""
		for _, part := range err.InstanceLocation {
			place += "/" + part
		}
		path := err.ErrorKind.KeywordPath()
		return place == at && len(path) > 0 && path[len(path)-1] == rule
	}
	return slices.ContainsFunc(err.Causes, func(c *jsonschema.ValidationError) bool { return blames(c, at, rule) })
}

func validate(t *testing.T, row map[string]any) error {
	t.Helper()
	raw := must.Get(json.Marshal(row))(t)
	return rowschema.Validate(raw)
}
