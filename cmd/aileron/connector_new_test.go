package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/spec"
)

// manyGroups returns a document with three groups of 24 operations each, one of which deletes.
func manyGroups(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	b.WriteString("openapi: 3.0.0\ninfo: {title: Shop, version: '1'}\n" +
		"servers: [{url: https://api.shop.example}]\npaths:\n")
	for _, tag := range []string{"pets", "shops", "Users & Teams"} {
		for i := range 12 {
			path := fmt.Sprintf("%s%d", strings.Fields(tag)[0], i)
			for _, method := range []string{"get", map[bool]string{true: "delete", false: "post"}[i == 0]} {
				verb := "  "
				if method == "get" {
					verb = "  /" + path + ":\n  "
				}
				fmt.Fprintf(&b, "%s  %s: {tags: ['%s'], operationId: %s_%s, responses: {'200': {description: ok}}}\n", verb,
					method, tag, method, path)
			}
		}
	}
	file := filepath.Join(t.TempDir(), "openapi.yaml")
	must.Do(t, os.WriteFile(file, []byte(b.String()), 0o600))
	return file
}

// Of a large document, a person is asked which groups to take and what waits for an approval.
func TestConnectorNewAsksWhatToTake(t *testing.T) {
	const groups, approvals = "which groups of 72 operations, separated by commas? [all] ",
		"operations that wait for an approval: writes, deletes or nothing? [writes]"
	for _, w := range []struct {
		name       string
		typed      []string
		code       int
		says       []string
		operations int
		waits      int
	}{
		{"defaults", []string{"\n", "\n"}, 0, []string{groups, approvals,
			"pets: 24 operations, 12 read, 11 write, 1 delete"}, 72, 36},
		{"groups", []string{" pets ,USERS & teams\n", "Deletes\n"}, 0, []string{groups, approvals}, 48, 2},
		{"nothing waits", []string{"all\n", "nothing\n"}, 0, []string{approvals}, 72, 0},
		{"a mistake", []string{"pets,cats\n", "shops\n", "some\n", "writes\n"}, 0, []string{
			"the document has no group \"cats\"", "answer with writes, deletes or nothing"}, 24, 12},
		{"no group", []string{"a\n", "b\n", ",\n"}, 1, []string{"no group of the document was named", "--groups"}, 0, 0},
		{"no answer", []string{"\n", "x\n", "x\n", "x\n"}, 1, []string{
			"choose the operations that wait for an approval: none of"}, 0, 0},
		{"interrupted", []string{"\x03"}, 130, []string{groups}, 0, 0},
		{"interrupted later", []string{"pets\n", "\x03"}, 130, []string{approvals}, 0, 0},
		{"the input ends", []string{"\x04"}, 1, []string{"the input ended"}, 0, 0},
		{"the input ends later", []string{"\n", "\x04"}, 1, []string{"the input ended"}, 0, 0},
	} {
		t.Run(w.name, func(t *testing.T) {
			o, dir := newOwner(t), filepath.Join(t.TempDir(), "shop")
			shown, code := o.dialogue(w.typed, "connector", "new", dir, "--name", "github://acme/shop", "--from", manyGroups(t))
			for _, text := range w.says {
				if code != w.code || !strings.Contains(shown, text) {
					t.Errorf("it ends with %d: %s\nwant %d, %q", code, shown, w.code, text)
				}
			}
			data, err := os.ReadFile(filepath.Join(dir, spec.SpecFile))
			if w.code != 0 {
				if err == nil {
					t.Errorf("it has written a connector: %s", shown)
				}
				return
			}
			c := must.Get(spec.Parse(data))(t)
			waits := 0
			for _, op := range c.Tools[0].Operations {
				if op.Approval == spec.ApprovalRequired {
					waits++
				}
			}
			if n := len(c.Tools[0].Operations); n != w.operations || waits != w.waits {
				t.Errorf("there are %d operations, %d of which wait; want %d, %d: %s", n, waits, w.operations, w.waits, shown)
			}
		})
	}
}
