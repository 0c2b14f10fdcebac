package archtest

import (
	"bufio"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
)

// The most that a package of the program holds: more than a reader finds a way through.
const (
	maxRoomLines = 4000 // of code, without comments and blank lines
	maxRoomFiles = 40
)

// maxHeartFiles is the most that proxy's root holds, by which one request is understood.
const maxHeartFiles = 20

// The most that the command line holds, in all and in one package: what several commands do belongs below internal.
const (
	maxCommandLines = 8000
	maxNounLines    = 1500
)

// TestNoPackageIsLargerThanARoom counts what each package of the program holds, without its tests.
func TestNoPackageIsLargerThanARoom(t *testing.T) {
	lines, files := map[string]int{}, map[string]int{}
	for _, f := range goSources(t) {
		if f.isTest() || strings.HasPrefix(f.path, "e2e/") {
			continue
		}
		lines[f.dir()] += codeLines(t, f)
		files[f.dir()]++
	}
	for dir, n := range lines {
		if n > maxRoomLines || files[dir] > maxRoomFiles {
			t.Errorf("%s has %d lines of code in %d files, at most %d in %d: give an idea in it a package of its own",
				dir, n, files[dir], maxRoomLines, maxRoomFiles)
		}
	}
	if n := files["proxy"]; n > maxHeartFiles || n == 0 {
		t.Errorf("proxy has %d files, at most %d: what stands beside the heart belongs below it", n, maxHeartFiles)
	}
	all := 0
	for dir, n := range lines {
		if !inTree("cmd/aileron/...", dir) {
			continue
		}
		if all += n; n > maxNounLines {
			t.Errorf("%s has %d lines of code, at most %d: what is no flag and no word belongs below internal", dir, n,
				maxNounLines)
		}
	}
	if all > maxCommandLines || all == 0 {
		t.Errorf("cmd/aileron has %d lines of code, at most %d: what is no flag and no word belongs below internal", all,
			maxCommandLines)
	}
	if len(lines) < 30 {
		t.Errorf("%d packages found; the test does not look where they are", len(lines))
	}
}

// codeLines counts the lines of a file that are neither blank nor a comment.
func codeLines(t *testing.T, f file) (n int) {
	t.Helper()
	in := must.Get(os.Open(filepath.Join("..", "..", f.path)))(t)
	defer in.Close()
	for lines := bufio.NewScanner(in); lines.Scan(); {
		line := strings.TrimSpace(lines.Text())
		if line != "" && !strings.HasPrefix(line, "//") {
			n++
		}
	}
	return n
}

// TestTheApplicationKnowsNoCommandLine checks that what commands share can be used and tested without one: the packages
// below internal take values, and return values and errors.
func TestTheApplicationKnowsNoCommandLine(t *testing.T) {
	for _, f := range goSources(t) {
		if f.isTest() || !strings.HasPrefix(f.path, "internal/") {
			continue
		}
		for _, imported := range f.imports(t) {
			if strings.HasPrefix(imported, "github.com/spf13/") {
				t.Errorf("%s imports %s: flags belong to cmd/aileron", f.path, imported)
			}
		}
	}
}
