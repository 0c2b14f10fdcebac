package archtest

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
)

var (
	markdownLink = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading      = regexp.MustCompile(`(?m)^#{1,6} +(.*)$`)
	fencedBlock  = regexp.MustCompile("(?ms)^ *```.*?^ *```")
)

// TestLinksOfTheManualLeadSomewhere checks every relative link of the manual, and of the READMEs that it leads to: the
// file exists, and has the heading that the fragment names.
func TestLinksOfTheManualLeadSomewhere(t *testing.T) {
	root := filepath.Join("..", "..")
	var pages []string
	for _, pattern := range []string{
		"*.md", "docs/*.md", "examples/connectors/*/README.md", "proxy/testdata/exchanges/README.md",
	} {
		found, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(pattern)))
		if err != nil || len(found) == 0 {
			t.Fatalf("%s matches %d pages: %v", pattern, len(found), err)
		}
		pages = append(pages, found...)
	}
	links := 0
	for _, page := range pages {
		for _, link := range markdownLink.FindAllStringSubmatch(prose(t, page), -1) {
			links++
			if strings.Contains(link[1], "://") || strings.HasPrefix(link[1], "mailto:") {
				continue
			}
			file, fragment, _ := strings.Cut(link[1], "#")
			target := page
			if file != "" {
				target = filepath.Join(filepath.Dir(page), file)
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s links to %s, which does not exist", page, link[1])
			} else if fragment != "" && !anchors(t, target)[fragment] {
				t.Errorf("%s links to %s, and the page has no such heading", page, link[1])
			}
		}
	}
	if links < 100 {
		t.Errorf("%d links found; the test does not read the manual as it is written", links)
	}
}

// prose returns a page without its fenced blocks.
func prose(t *testing.T, page string) string {
	t.Helper()
	text := must.Get(os.ReadFile(page))(t)
	return fencedBlock.ReplaceAllString(string(text), "")
}

// anchors returns the fragments that a forge makes of a page's headings.
func anchors(t *testing.T, page string) map[string]bool {
	t.Helper()
	found := map[string]bool{}
	for _, h := range heading.FindAllStringSubmatch(prose(t, page), -1) {
		slug := strings.Map(func(r rune) rune {
			switch {
			case r == ' ' || r == '-':
				return '-'
			case r == '_' || r >= 'a' && r <= 'z' || r >= '0' && r <= '9':
				return r
			}
			return -1
		}, strings.ToLower(h[1]))
		found[slug] = true
	}
	return found
}
