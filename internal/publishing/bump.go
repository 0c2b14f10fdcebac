package publishing

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"

	"github.com/ALRubinger/aileron/internal/durable"
	"github.com/ALRubinger/aileron/internal/failure"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/internal/regular"
	"github.com/ALRubinger/aileron/spec"
	"github.com/ALRubinger/aileron/spec/store"
)

// BumpOptions are those of [Bump].
type BumpOptions struct {
	Dir   string
	Level Level  // None: nothing is written
	Since string // the last release: a tag or an archive; "": the highest tag
	Force bool   // raise it by less than is due
}

// Bumped is what [Bump] found and did.
type Bumped struct {
	FQN     string
	From    string // the version of the files
	To      string // what it is now
	Last    Last
	Changes []Change
	Due     Level    // None: there is no release to compare with, or nothing has changed
	Files   []string // that were written
}

// Bump raises the version of a connector in its two files and in its README, all at once or not at all. It is counted
// from the last release: what was raised since and is not enough is raised further.
func Bump(ctx context.Context, o BumpOptions) (Bumped, error) {
	c, err := store.Read(o.Dir)
	if err != nil {
		return Bumped{}, err
	}
	upTo := func(v string) bool { return spec.CompareVersions(v, c.Version) <= 0 }
	b := Bumped{FQN: string(c.FQN), From: c.Version, To: c.Version}
	if b.Last, err = lastRelease(ctx, o.Dir, o.Since, c, upTo); err != nil {
		return b, err
	}
	base := c.Version
	if b.Last.Connector != nil {
		b.Changes = Compare(b.Last.Connector, c)
		b.Due, base = Due(b.Changes), b.Last.Connector.Version
	}
	if o.Level == None {
		return b, nil
	}
	if !o.Force && !enough(base, o.Level, b.Due) {
		return b, tooLittle(b.Last, c.FQN, o.Level, b.Due, b.Changes)
	}
	to := next(base, o.Level)
	switch n := spec.CompareVersions(to, c.Version); {
	case n < 0:
		return b, hint.New(failure.Input(fmt.Errorf("raise the version of %s: it is %s already, and %s after %s is %s", c.FQN,
			c.Version, o.Level, base, to), failure.ReasonConnector), "release it, or edit both files")
	case n == 0:
		return b, nil
	}
	b.To = to
	b.Files, err = writeVersion(o.Dir, c, to)
	return b, err
}

// tooLittle returns the error for a raise that is less than is due.
func tooLittle(last Last, fqn spec.FQN, level, due Level, changes []Change) error {
	err := fmt.Errorf("raise the version of %s: %s is due after %s, and not %s, as it %s", fqn, due, last.From, level,
		changes[0].Text)
	return hint.New(failure.Input(err, failure.ReasonConnector), "aileron connector bump %s; --force allows less",
		needed(last.Connector.Version, due))
}

// The line of the version in the table [connector] of a manifest, its comments, and the version beside the name in a
// specification.
const (
	manifestVersion = `(?m)^[ \t]*\[connector\][^\n]*\n(?:[^\[\n][^\n]*\n|\n)*?` +
		`[ \t]*version[ \t]*=[ \t]*["']([^"'\n]*)["']`
	comment     = `(?m)^[ \t]*#.*$`
	specVersion = `"connector"\s*:\s*\{[^{}]*?"version"\s*:\s*"([^"]*)"`
)

// writeVersion writes another version into the files of a directory, and returns the names of those that it changed.
// They are valid before any of them is written.
func writeVersion(dir string, c *spec.Connector, to string) ([]string, error) {
	fresh := map[string][]byte{}
	for name, pattern := range map[string]string{spec.ManifestFile: manifestVersion, spec.SpecFile: specVersion} {
		data, err := regular.Read(filepath.Join(dir, name), spec.MaxSpecSize)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", name, err)
		}
		at := regexp.MustCompile(pattern).FindSubmatchIndex(data)
		if at == nil || string(data[at[2]:at[3]]) != c.Version {
			return nil, hint.New(fmt.Errorf("raise the version in %s: it is not where one looks for it", name),
				"edit it in both files")
		}
		fresh[name] = bytes.Join([][]byte{data[:at[2]], data[at[3]:]}, []byte(to))
	}
	fresh[spec.ManifestFile] = regexp.MustCompile(comment).ReplaceAllFunc(fresh[spec.ManifestFile],
		func(line []byte) []byte { return named(line, c, to) })
	readme, err := regular.Read(filepath.Join(dir, "README.md"), spec.MaxSpecSize)
	if err == nil {
		fresh["README.md"] = named(readme, c, to)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read README.md: %w", err)
	}
	again, err := spec.Load(fresh[spec.ManifestFile], fresh[spec.SpecFile])
	if err != nil {
		return nil, fmt.Errorf("raise the version: %w", err)
	}
	if again.Version != to || again.FQN != c.FQN {
		return nil, fmt.Errorf("raise the version: the files would be of %s %s", again.FQN, again.Version)
	}
	var written []string
	for _, name := range []string{spec.ManifestFile, spec.SpecFile, "README.md"} {
		data, ok := fresh[name]
		if !ok || name == "README.md" && bytes.Equal(data, readme) {
			continue
		}
		if err := replace(filepath.Join(dir, name), data); err != nil {
			return written, fmt.Errorf("write %s: %w", name, err)
		}
		written = append(written, name)
	}
	return written, nil
}

// replace replaces a file that others read, and keeps its mode.
func replace(name string, data []byte) error {
	mode := os.FileMode(0o644)
	if info, err := os.Stat(name); err == nil {
		mode = info.Mode().Perm()
	}
	if err := durable.Replace(name, data); err != nil {
		return err
	}
	return os.Chmod(name, mode)
}

// named returns a text with the version in the names of a release: FQN@VERSION, and vVERSION, which is or ends its tag.
// Other numbers that look like the version are left alone.
func named(text []byte, c *spec.Connector, to string) []byte {
	before := regexp.QuoteMeta(c.Version)
	for _, beginning := range []string{regexp.QuoteMeta(string(c.FQN) + "@"), `(?:^|[\s/"'` + "`" + `])v`} {
		pattern := regexp.MustCompile(`(` + beginning + `)` + before + `(\.?)($|[^0-9A-Za-z.+-])`)
		for range 2 { // two in a row share what is between them
			text = pattern.ReplaceAll(text, []byte("${1}"+to+"${2}${3}"))
		}
	}
	return text
}
