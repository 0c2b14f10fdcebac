// Package publishing is what a publisher does with a connector's directory, without a command line: [Draft.Write]
// begins one, [Compare] returns what a version changes for those who use it, [Bump] raises the version, [Vouch] names
// the next key, and [Release] packs, signs and tags.
//
// The last release is read from the tag of the repository that the directory is in, or from an archive: nothing is
// fetched, and nothing is pushed.
package publishing

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ALRubinger/aileron/internal/failure"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/spec"
	"github.com/ALRubinger/aileron/spec/store"
)

// Last is the release that a directory is compared with. The zero value is that of a connector without one.
type Last struct {
	Connector *spec.Connector
	From      string // the tag, or the archive
}

// lastRelease returns the last release of the connector c in dir: since, an archive or a tag, or else the highest tag
// of a version that may has: those above it are of another line. That there is no repository, or no tag in it, is no
// error.
func lastRelease(ctx context.Context, dir, since string, c *spec.Connector, may func(version string) bool,
) (Last, error) {
	if strings.HasSuffix(since, ".tar.gz") || strings.HasSuffix(since, ".tgz") {
		old, err := store.Read(since)
		if err != nil {
			return Last{}, failure.OfInput(fmt.Errorf("read the last release %s: %w", since, err), failure.ReasonConnector)
		}
		return checkedLast(Last{old, since}, c)
	}
	r, err := openRepository(ctx, dir)
	if errors.Is(err, errNoRepository) && since == "" {
		return Last{}, nil
	}
	if err != nil {
		return Last{}, err
	}
	tag := since
	if tag == "" {
		versions, err := r.versions(ctx, c.FQN)
		i := slices.IndexFunc(versions, may)
		if err != nil || i < 0 {
			return Last{}, err
		}
		tag = r.tag(c.FQN, versions[i])
	}
	old, err := r.connectorAt(ctx, tag)
	if err != nil {
		return Last{}, hint.New(fmt.Errorf("read the last release: %w", err), "name another tag, or an archive, with --since")
	}
	return checkedLast(Last{old, tag}, c)
}

// checkedLast returns last, unless it is a release of another connector.
func checkedLast(last Last, c *spec.Connector) (Last, error) {
	if last.Connector.FQN != c.FQN {
		return Last{}, failure.Input(fmt.Errorf("compare with %s: it is %s, and not %s", last.From, last.Connector.FQN,
			c.FQN), failure.ReasonConnector)
	}
	return last, nil
}

// Level is how much of a version is raised: the part of it that a change is due.
type Level int

// The levels, the lowest first.
const (
	None  Level = iota // nothing has changed
	Patch              // it grants the same
	Minor              // more is granted
	Major              // what was there is not, or not as it was
)

// levels are the words of the levels.
var levels = []string{"none", "patch", "minor", "major"}

// String returns the word of a level.
func (l Level) String() string { return levels[l] }

// ParseLevel reads patch, minor or major.
func ParseLevel(word string) (Level, error) {
	if i := slices.Index(levels, word); i > 0 {
		return Level(i), nil
	}
	return None, hint.DidYouMean(failure.Usagef("%q is not major, minor or patch", word), hint.Nearest(word, levels[1:]))
}

// next returns the version after v at a level. That of a pre-release is its release, if that is of the level.
func next(v string, l Level) string {
	core, _, _ := strings.Cut(v, "+")
	core, pre, _ := strings.Cut(core, "-")
	var parts [3]uint64
	_, _ = fmt.Sscanf(core, "%d.%d.%d", &parts[0], &parts[1], &parts[2]) // it is strict SemVer
	switch {
	case l == Major && (pre == "" || parts[1]+parts[2] > 0):
		parts = [3]uint64{parts[0] + 1, 0, 0}
	case l == Minor && (pre == "" || parts[2] > 0):
		parts = [3]uint64{parts[0], parts[1] + 1, 0}
	case l == Patch && pre == "":
		parts[2]++
	}
	return fmt.Sprintf("%d.%d.%d", parts[0], parts[1], parts[2])
}

// raised returns at which level one version is above another.
func raised(from, to string) Level {
	for _, l := range []Level{Major, Minor, Patch} {
		if spec.CompareVersions(to, next(from, l)) >= 0 {
			return l
		}
	}
	return None
}

// needed returns the least by which a version must be raised for what is due. Below 1.0.0 a minor version may change
// anything (SemVer, section 4).
func needed(from string, due Level) Level {
	if strings.HasPrefix(from, "0.") {
		return min(due, Minor)
	}
	return due
}

// enough reports whether a raise from a version is what is needed for what is due.
func enough(from string, raise, due Level) bool { return raise >= needed(from, due) }
