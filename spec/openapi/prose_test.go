package openapi

import (
	"strings"
	"testing"
)

func TestDescriptionsBecomePlainText(t *testing.T) {
	p := newProse()
	for in, want := range map[string]string{
		"Reads one issue": "Reads one issue",
		"<p>Retrieves an</p>\n<p><b>account</b>.</p>":                  "Retrieves an account.",
		"See [the **guide**](https://x.example/?a=b#c) for `issue_id`": "See the guide for issue_id",
		"# Title\n\n* one\n* two":                                      "Title one two",
		"a list<string> of <id>":                                       "a list<string> of <id>",
		"1 &lt; 2 &amp; 3 \\* 4":                                       "1 < 2 & 3 * 4",
		"x<script>alert(1)</script><style>p{}</style>y":                "xy",
		"<!-- hidden -->shown":                                         "shown",
		"&#27;[2J&#x202e;gnp":                                          "[2Jgnp",
		"snake_case_name":                                              "snake_case_name",
		"![logo](https://x/y.png) z":                                   "z",
		"<a href='javascript:x'>link</a>":                              "link",
	} {
		if got := p.text(in, 200); got != want {
			t.Errorf("%q is %q, want %q", in, got, want)
		}
	}
}

// What nests, or never ends, takes no longer than what does not.
func TestDescriptionsAreBounded(t *testing.T) {
	p := newProse()
	for _, piece := range []string{"[", "<div>", "> ", "*_", "![[", "`", "<script>", "\\", "&#", "- ", "<!--"} {
		if got := p.text(strings.Repeat(piece, 1<<20), 200); len(got) > 200 || strings.ContainsAny(got, "\n\x1b") {
			t.Errorf("%q: %q", piece, got)
		}
	}
}

// Brackets cost the more of them there are: many are not parsed, and a description that many operations share is once.
func TestBracketsAreBounded(t *testing.T) {
	p := newProse()
	for range 10_000 {
		if got := p.text("[a](b) *c*", 200); got != "a c" {
			t.Fatalf("the text is %q", got)
		}
	}
	if p.links != 1 {
		t.Errorf("%d brackets were parsed of one description", p.links)
	}
	if got := p.text(strings.Repeat("[](", 700), 200); !strings.HasPrefix(got, "[](") {
		t.Errorf("many brackets are %q", got)
	}
	p.links = maxAllLinks
	if got := p.text("[x](y)", 200); got != "[x](y)" {
		t.Errorf("beyond the bound of a document, the text is %q", got)
	}
}
