package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// mutant is one entry of the list: an edit of one line that takes a defence
// away, and the test that must fail then.
type mutant struct {
	id, defence string
	file        string // relative to the repository
	line        int    // 0, or the one of which old and new are the whole
	old, new    string // a part of one line, which is in the file once
	pkg, run    string // of go test
}

// needsEngine reports whether the test may need Podman or Docker. Beside other suites such a mutant is not tried: it
// may take away what keeps one session from the sandboxes of another.
func (m mutant) needsEngine() bool {
	return slices.Contains([]string{"./sandbox", "./e2e", "./e2e/faults", "./e2e/har", "./e2e/sweep"}, m.pkg)
}

// parse reads a list. An entry is a paragraph; lines that begin with # are
// comments:
//
//	ID the defence, in words
//	file proxy/target.go
//	- s == "."
//	+ false
//	test ./proxy TestPaths
func parse(text string) ([]mutant, error) {
	var all []mutant
	seen := map[string]bool{}
	for i, lines := range paragraphs(text) {
		m, err := entry(lines)
		if err == nil && seen[m.id] {
			err = errors.New("the id is there twice")
		}
		if err != nil {
			return nil, fmt.Errorf("read entry %d (%s): %w", i+1, lines[0], err)
		}
		seen[m.id] = true
		all = append(all, m)
	}
	return all, nil
}

// paragraphs returns the lines of each paragraph, without those that begin with #.
func paragraphs(text string) [][]string {
	var all [][]string
	for _, paragraph := range strings.Split(text, "\n\n") {
		var lines []string
		for line := range strings.Lines(paragraph) {
			if line = strings.TrimRight(line, "\n"); line != "" && !strings.HasPrefix(line, "#") {
				lines = append(lines, line)
			}
		}
		if len(lines) > 0 {
			all = append(all, lines)
		}
	}
	return all
}

var errEntry = errors.New("an entry is ID and defence, file, - old, + new, test PACKAGE EXPRESSION, a line each")

func entry(lines []string) (mutant, error) {
	var m mutant
	m.id, m.defence, _ = strings.Cut(lines[0], " ")
	test := ""
	err := fields(lines[1:], []field{{"file ", &m.file}, {"- ", &m.old}, {"+ ", &m.new}, {"test ", &test}})
	if err != nil {
		return mutant{}, err
	}
	m.pkg, m.run, _ = strings.Cut(test, " ")
	if m.defence == "" || m.old == "" || m.old == m.new || m.pkg == "" || m.run == "" {
		return mutant{}, errEntry
	}
	return m, nil
}

// field is a line of an entry.
type field struct {
	prefix string
	value  *string
}

// fields reads the lines of an entry, which are in that order.
func fields(lines []string, all []field) error {
	if len(lines) != len(all) {
		return errEntry
	}
	for i, f := range all {
		value, found := strings.CutPrefix(lines[i]+" ", f.prefix) // "+" alone is a removal
		if !found {
			return errEntry
		}
		*f.value = strings.TrimSuffix(value, " ")
	}
	return nil
}

// edits returns how often the edit applies to a text.
func (m mutant) edits(text string) int {
	if m.line > 0 {
		lines := strings.Split(text, "\n")
		if m.line > len(lines) || lines[m.line-1] != m.old {
			return 0
		}
		return 1
	}
	return strings.Count(text, m.old)
}

// edited returns the text with the edit.
func (m mutant) edited(text string) string {
	if m.line > 0 {
		lines := strings.Split(text, "\n")
		lines[m.line-1] = m.new
		return strings.Join(lines, "\n")
	}
	return strings.Replace(text, m.old, m.new, 1)
}

// errStale is returned for an edit that does not apply exactly once.
var errStale = errors.New("the line to edit is not there exactly once")

// apply makes the edit in the copy of the repository at root and returns what
// takes it back.
func (m mutant) apply(root string) (undo func() error, err error) {
	path := filepath.Join(root, m.file)
	was, err := os.ReadFile(path)
	if err != nil {
		return nil, errors.Join(errStale, err)
	}
	if n := m.edits(string(was)); n != 1 {
		return nil, fmt.Errorf("%w, but %d times: %q in %s", errStale, n, m.old, m.file)
	}
	if err := os.WriteFile(path, []byte(m.edited(string(was))), 0o600); err != nil {
		return nil, fmt.Errorf("edit %s: %w", m.file, err)
	}
	return func() error { return os.WriteFile(path, was, 0o600) }, nil
}

// shard returns the k-th of n parts, as evenly as it can.
func shard(all []mutant, k, n int) []mutant {
	var part []mutant
	for i, m := range all {
		if i%n == k-1 {
			part = append(part, m)
		}
	}
	return part
}
