package archtest

import (
	"bytes"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

const longestLine = 120 // columns; a tab counts as one

// The kinds of findings. Each is looked for in the whole text, names and strings included: what a message says is read
// more often than any comment.
const (
	words = "words" // persons for machines, and words that other projects do not use
	docs  = "docs"  // doc comments that open "X gives" where Go says "X returns"
	lines = "lines" // longer than longestLine
	sleep = "sleep" // tests that sleep instead of waiting for what they test
)

// The parentheses keep these expressions from finding themselves.
var (
	homemade = regexp.MustCompile(`(?i)\b(who(ever)|(no|some)(body)|wip(ed?|es|ing) (out)|me(nd)(s|ed|ing)?|in (vain))\b`)
	gives    = regexp.MustCompile(`^\s*// [A-Za-z.]+ (gives|says|tells|hears|knows|lets)\b`)
	sleeps   = regexp.MustCompile(`\btime\.(Sleep)\(`)
)

// unclean is what still has to be cleaned: a directory of Go code, or a file of another kind, with its findings. The
// list may only shrink: a finding that is gone makes its row fail until the row is shortened or removed. When files
// move to a package of their own, what is excused moves with them.
var unclean = map[string]string{}

func TestWordsAndLines(t *testing.T) {
	places := map[string]map[string][]string{} // by row and kind
	for _, f := range sources(t, isText) {
		row := f.path
		if f.isGo() {
			row = f.dir()
		}
		for kind, at := range f.findings() {
			if places[row] == nil {
				places[row] = map[string][]string{}
			}
			places[row][kind] = append(places[row][kind], at...)
		}
	}
	for row, kinds := range places {
		excused := strings.Fields(unclean[row])
		for kind, at := range kinds {
			if !slices.Contains(excused, kind) {
				t.Errorf("%s: %s, in %d places:\n\t%s", row, kind, len(at), strings.Join(at, "\n\t"))
			}
		}
	}
	for _, row := range slices.Sorted(maps.Keys(unclean)) {
		for kind := range strings.FieldsSeq(unclean[row]) {
			if len(places[row][kind]) == 0 {
				t.Errorf("unclean: %s has no findings of kind %q any more: remove the word from its row", row, kind)
			}
		}
	}
}

// isText reports whether people write and read the file line by line. Test data is what a client or a server
// sends, except for programs.
func isText(name string) bool {
	switch {
	case name == "LICENSE":
		return false
	case strings.HasSuffix(name, ".go"), strings.HasSuffix(name, ".sh"), strings.HasSuffix(name, ".md"):
		return true
	case strings.Contains(name, "/testdata/"):
		return false
	}
	base := path.Base(name)
	return base == "Justfile" || strings.HasPrefix(base, "Dockerfile") || path.Ext(base) == ".yml" ||
		path.Dir(name) == "scripts"
}

// findings returns the places of each kind in the file, as path:line: text.
func (f file) findings() map[string][]string {
	found := map[string][]string{}
	inComment := false // a doc comment starts where the line before is none
	for i, line := range bytes.Split(f.text, []byte("\n")) {
		note := func(kind string, hit []byte) {
			found[kind] = append(found[kind], fmt.Sprintf("%s:%d: %s", f.path, i+1, hit))
		}
		if hit := homemade.Find(bytes.ReplaceAll(line, []byte("http.No"+"Body"), nil)); hit != nil { // net/http's own name
			note(words, hit)
		}
		if f.isGo() && !inComment && gives.Match(line) {
			note(docs, bytes.TrimSpace(line))
		}
		if f.isTest() && sleeps.Match(line) {
			note(sleep, bytes.TrimSpace(line))
		}
		if n := utf8.RuneCount(line); n > longestLine && !f.unbreakable(line) {
			note(lines, fmt.Appendf(nil, "%d columns", n))
		}
		inComment = bytes.HasPrefix(bytes.TrimSpace(line), []byte("//"))
	}
	return found
}

// unbreakable reports whether the line cannot be broken: a table's row in Markdown, an entry of the list of mutants.
func (f file) unbreakable(line []byte) bool {
	return path.Ext(f.path) == ".md" && bytes.HasPrefix(line, []byte("|")) || f.path == "scripts/mutants.txt"
}

func TestFindings(t *testing.T) {
	for _, c := range []struct{ path, text, want string }{
		{"a/a.go", "// Name returns it.", ""},
		{"a/a.go", "// Name " + "gives it.", docs},
		{"a/a.go", "// The first line, and\n// second " + "says more.", ""},
		{"a/a.go", `panic("no` + `body is there")`, words},
		{"a/a.go", "// recommended", ""},
		{"a/a.go", "time." + "Sleep(1)", ""},
		{"a/a_test.go", "time." + "Sleep(1)", sleep},
		{"a/a.go", "\t" + strings.Repeat("ü", longestLine-1), ""},
		{"a/a.go", "\t" + strings.Repeat("ü", longestLine), lines},
		{"a.md", "|" + strings.Repeat("-", longestLine), ""},
		{"a.md", strings.Repeat("-", longestLine+1), lines},
	} {
		found := slices.Sorted(maps.Keys(file{c.path, []byte(c.text)}.findings()))
		if got := strings.Join(found, " "); got != c.want {
			t.Errorf("findings of %q in %s: %q, want %q", c.text, c.path, got, c.want)
		}
	}
}
