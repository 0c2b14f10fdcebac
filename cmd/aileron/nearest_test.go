package main

import (
	"testing"

	"github.com/ALRubinger/aileron/internal/hint"
)

func TestTheNearestWordIsAMisspelling(t *testing.T) {
	known := []string{"anthropic", "crates", "github", "gitlab", "go", "npm", "openai", "pypi"}
	for name, want := range map[string]string{
		"gihtub": "github", "githb": "github", "github2": "github", "GitHub": "github", "nmp": "npm", "pypy": "pypi",
		"anthropik": "anthropic", "anth": "anthropic", "opnai": "openai", "gitlba": "gitlab",
		"tracker": "", "x": "", "": "", "ghp-0123456789abcdef": "", "cargo": "",
	} {
		if got := hint.Nearest(name, known); got != want {
			t.Errorf("nearest(%q) = %q, want %q", name, got, want)
		}
	}
}
