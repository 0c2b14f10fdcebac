package action

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/BurntSushi/toml"

	"github.com/ALRubinger/aileron/spec"
)

// MaxSize is the size in bytes of the largest action file that is read.
const MaxSize = 256 << 10

// The bounds of the frontmatter. The time of the TOML decoder grows with the square of the depth, which comes from
// dots, braces and brackets.
const (
	maxFrontmatter = 64 << 10
	maxDots        = 256 // in a line
	maxBraces      = 64  // in the file, without those of ${…}
	maxBrackets    = 4096
)

// fence is the line before and after the frontmatter, as in Hugo and Zola, where --- is for YAML.
const fence = "+++"

// Parse reads an action file strictly. An unknown or repeated key, a value of another type and a character that people
// do not see are errors, each with its line.
func Parse(data []byte) (*Action, error) {
	front, body, err := split(data)
	if err != nil {
		return nil, err
	}
	var raw map[string]any
	if _, err := toml.NewDecoder(strings.NewReader(front)).Decode(&raw); err != nil {
		return nil, tomlDiagnostic(err)
	}
	r := reader{places: findPlaces(front)}
	a := r.action(raw)
	r.checkBody(body, strings.Count(front, "\n")+1)
	if err := r.err(); err != nil {
		return nil, err
	}
	a.Body, a.Raw = body, bytes.Clone(data)
	sum := sha256.Sum256(data)
	a.Hash = "sha256:" + hex.EncodeToString(sum[:])
	return a, nil
}

// split returns the frontmatter and what follows it. The frontmatter's first line is empty, so that its lines are those
// of the file.
func split(data []byte) (front, body string, err error) {
	switch {
	case len(data) > MaxSize:
		return "", "", diagnostic("", "it is larger than %d bytes", MaxSize)
	case !utf8.Valid(data):
		return "", "", diagnostic("", "it is not UTF-8")
	}
	text := string(data)
	first, rest, _ := strings.Cut(text, "\n")
	switch strings.TrimRight(first, "\r") {
	case fence:
	case "---":
		return "", "", diagnostic("line 1",
			"it begins with ---, which is YAML; the frontmatter is TOML between two lines +++")
	default:
		return "", "", diagnostic("line 1",
			"it does not begin with a line +++; the frontmatter is TOML between two of them")
	}
	at := 0
	for line := range strings.Lines(rest) {
		if strings.TrimRight(line, "\r\n") == fence {
			front, body = "\n"+rest[:at], rest[at+len(line):]
			return front, body, checkFrontmatter(front)
		}
		at += len(line)
	}
	return "", "", diagnostic("", "its frontmatter has no end: a line +++ is missing")
}

// checkFrontmatter returns an error if the TOML decoder would take long to read it.
func checkFrontmatter(front string) error {
	braces := strings.Count(front, "{") - strings.Count(front, "${")
	switch {
	case len(front) > maxFrontmatter:
		return diagnostic("", "its frontmatter is larger than %d bytes", maxFrontmatter)
	case braces > maxBraces || strings.Count(front, "[") > maxBrackets:
		return diagnostic("", "its frontmatter has more than %d braces, or more than %d brackets", maxBraces, maxBrackets)
	}
	for line := range strings.Lines(front) {
		if strings.Count(line, ".") > maxDots {
			return diagnostic("", "its frontmatter has a line with more than %d dots", maxDots)
		}
	}
	return nil
}

func diagnostic(path, format string, args ...any) *spec.Diagnostic {
	return &spec.Diagnostic{Path: path, Message: fmt.Sprintf(format, args...)}
}

// tomlDiagnostic returns an error of the TOML decoder with its line as the path.
func tomlDiagnostic(err error) *spec.Diagnostic {
	var parse toml.ParseError
	if errors.As(err, &parse) {
		return diagnostic(fmt.Sprintf("line %d", parse.Position.Line), "%s", parse.Message)
	}
	return diagnostic("", "%s", strings.TrimPrefix(err.Error(), "toml: "))
}
