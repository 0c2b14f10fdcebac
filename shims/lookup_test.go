package shims_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/shims"
	"github.com/ALRubinger/aileron/spec"
)

// wide returns a tool with many operations, in groups of different sizes, of which the last is of one.
func wide(t testing.TB, operations, groups int) (*spec.Connector, spec.Tool) {
	c := *load(t, "tracker")
	tool := spec.Tool{Name: "wide", Description: "A large API"}
	for i := range operations {
		op := *c.Tools[0].Operations[0]
		op.Tool, op.Summary = "wide", fmt.Sprintf("Reads thing number %d", i)
		op.Group = fmt.Sprintf("group%03d", min(i%(groups+groups/2), groups-1))
		op.Name = fmt.Sprintf("%s.thing%d.get", op.Group, i)
		tool.Operations = append(tool.Operations, &op)
	}
	c.Tools = []spec.Tool{tool}
	return &c, tool
}

func TestThePageOfAThousandOperationsIsAPage(t *testing.T) {
	for _, groups := range []int{1, 30, 1000} {
		c, tool := wide(t, 3000, groups)
		page := string(must.Get(shims.Lookup(t.Context(), "wide", c, tool, nil))(t))
		if n := strings.Count(page, "\n"); n > 120 || len(page) > 8<<10 {
			t.Errorf("%d groups: %d lines, %d bytes", groups, n, len(page))
		}
		for _, want := range []string{"wide --help WORD...", "wide GROUP --help", "3000 operations of github://acme/tracker",
			fmt.Sprintf("group%03d (", groups-1)} {
			if !strings.Contains(page, want) {
				t.Errorf("%d groups: there is no %q in\n%s", groups, want, page)
			}
		}
		for line := range strings.Lines(page) {
			if len(line) > 84 {
				t.Errorf("%d groups: a line has %d bytes: %s", groups, len(line), line)
			}
		}
	}
}

func TestHelpIsFoundByWords(t *testing.T) {
	c, tool := wide(t, 3000, 30)
	for words, want := range map[string]string{
		"group003.thing3.get":   "Usage: wide group003.thing3.get [--args JSON|-]", // an operation
		"GROUP003.THING3.GET":   "Usage: wide group003.thing3.get ",
		"group003":              "Group group003 of wide, 67 operations:\n  group003.thing3.get", // a group
		"thing2999":             "1 operation of wide has all of the words, the closest first:\n  group029.thing2999.get\n",
		"reads number":          "  and 2975 more: search with more words\n",
		"nothing\x1b[2J at all": "No operation of wide has all of the words.\n",
	} {
		got := string(must.Get(shims.Lookup(t.Context(), "wide", c, tool, strings.Split(words, " ")))(t))
		if !strings.Contains(got, want) || strings.ContainsRune(got, '\x1b') {
			t.Errorf("%q: %.500q, want %q", words, got, want)
		}
		again := string(must.Get(shims.Lookup(t.Context(), "wide", c, tool, strings.Split(words, " ")))(t))
		if got != again {
			t.Errorf("%q: another text the second time", words)
		}
	}
	words := strings.Fields("a b c d e f g h i j k l m n o p q")
	if text, err := shims.Lookup(t.Context(), "wide", c, tool, words); err == nil {
		t.Errorf("17 words: %.200q", text)
	}
}

// What an agent reads before its first request names groups, whatever the order of the document.
func TestTheToolsFileOfALargeToolNamesItsGroups(t *testing.T) {
	c, _ := wide(t, 3000, 30)
	text := string(shims.Set{Connectors: []*spec.Connector{c}}.ToolsFile())
	for _, want := range []string{"3000; wide --help WORD... finds one; by group: ", "group000 (67): group000.thing0.get ",
		"group029 ("} {
		if !strings.Contains(text, want) {
			t.Errorf("there is no %q in\n%.3000s", want, text)
		}
	}
	if len(text) > 32<<10 {
		t.Errorf("it has %d bytes", len(text))
	}
	reversed := *c
	reversed.Tools = []spec.Tool{c.Tools[0]}
	reversed.Tools[0].Operations = nil
	for _, op := range c.Tools[0].Operations {
		reversed.Tools[0].Operations = append([]*spec.Operation{op}, reversed.Tools[0].Operations...)
	}
	if other := string(shims.Set{Connectors: []*spec.Connector{&reversed}}.ToolsFile()); other != text {
		t.Errorf("another order of the operations gives other bytes:\n%.600s\n%.600s", text, other)
	}
}
