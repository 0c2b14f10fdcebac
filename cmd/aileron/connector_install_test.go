package main

import (
	"regexp"
	"testing"
)

// What a connector sets in the sandbox and accepts from it is shown before it
// is granted.
func TestInstallShowsPlaceholdersAndRequestFieldsBeforeItAsks(t *testing.T) {
	c := newRunner(t)
	_, errs, code := c.run("connector", "install", exampleGitHub)
	if code == 0 {
		t.Fatal("it was installed without being granted")
	}
	for _, want := range []string{`(?m)^placeholder +GH_TOKEN=placeholder-the-real-one-stays-outside$`,
		`(?m)^request fields +x-github-api-version, time-zone$`} {
		if !regexp.MustCompile(want).MatchString(errs) {
			t.Errorf("install shows no line %s:\n%s", want, errs)
		}
	}
	if got := c.ok("connector", "list", "--json"); got != "[]\n" {
		t.Errorf("the list is %q", got)
	}
}
