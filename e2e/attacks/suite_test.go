package attacks

import (
	"bufio"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/e2e/harness"
	"github.com/ALRubinger/aileron/e2e/must"
)

// attack is one case.
type attack struct {
	id   string
	does string   // what is tried, and what must come of it
	f    *fixture // a world of its own; nil: the category's
	run  func(*testCase)
}

// category is one file of attacks.
type category struct {
	name  string
	cases []attack
	unrun map[string]string // ids that are not run, and why
}

// suite is every category, in the order in which they run.
func suite() []category {
	return []category{
		lek(), smg(), pth(), {name: "AUT", cases: written("authority")}, hst(), {name: "NAM", cases: written("names")}, crd(),
		h2(), upg(), {name: "RED", cases: written("redirects")}, con(), dos(), utl(), cas(),
		aud(), ipx(), api(), vlt(), oau(), spc(), env(), flt(), fld(),
	}
}

// knownGap are cases, or variants, that the plane does not hold today, with
// the reason. They run and must fail, so that a fix is noticed.
var knownGap = map[string]string{}

func TestAttacks(t *testing.T) {
	whole := t // of which a category's world is a part
	for _, cat := range suite() {
		goroutines, files := runtime.NumGoroutine(), openFiles(t)
		var shared *world
		for _, a := range cat.cases {
			t.Run(a.id, func(t *testing.T) {
				var w *world
				switch {
				case a.f != nil:
					w = newWorld(t, *a.f)
				default:
					if shared == nil {
						shared = newWorld(whole, fixture{}) // stopped below
					}
					w = shared
				}
				report(t, a, runCase(t, &w.subject, a))
				if a.f != nil {
					w.stop()
					searchFiles(t, &w.subject)
				}
			})
		}
		if shared == nil {
			continue
		}
		t.Run(cat.name+"-hygiene", func(t *testing.T) {
			shared.stop()
			searchFiles(t, &shared.subject)
			verify(t, shared)
			settlesAt(t, "goroutines", goroutines, runtime.NumGoroutine)
			settlesAt(t, "open files", files, func() int { return openFiles(t) })
		})
	}
}

// runCase runs a case with its variants, and returns the failures by variant.
func runCase(t *testing.T, s *subject, a attack) map[string][]string {
	found := map[string][]string{}
	var variant func(prefix string) func(string, func(*testCase))
	variant = func(prefix string) func(string, func(*testCase)) {
		return func(name string, run func(*testCase)) {
			name = prefix + "/" + name
			found[name] = try(t, s, name, run, variant(name))
		}
	}
	found[a.id] = try(t, s, a.id, a.run, variant(a.id))
	return found
}

func report(t *testing.T, a attack, found map[string][]string) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(found)) {
		gap, known := knownGap[name]
		for _, f := range found[name] {
			if known {
				t.Logf("known gap, %s: %s: %s", gap, name, f)
			} else {
				t.Errorf("%s (%s): %s", name, a.does, f)
			}
		}
		if known && len(found[name]) == 0 {
			t.Errorf("%s holds now: take it off the list of known gaps (%s)", name, gap)
		}
	}
}

// settlesAt waits until a count is back where it was, or within a twentieth.
func settlesAt(t *testing.T, what string, before int, count func() int) {
	t.Helper()
	n := 0
	if harness.Poll(patience, 20*time.Millisecond, func() bool {
		runtime.GC() // the pipes of splice(2) wait for it in a pool
		n = count()
		return n <= before+before/20+2
	}) {
		return
	}
	t.Errorf("O5: %d %s, and %d before the category", n, what, before)
	if what == "open files" {
		entries, _ := os.ReadDir("/proc/self/fd")
		for _, e := range entries {
			to, _ := os.Readlink("/proc/self/fd/" + e.Name())
			t.Logf("open: %s %s", e.Name(), to)
		}
	}
}

func openFiles(t *testing.T) int {
	t.Helper()
	entries := must.Get(os.ReadDir("/proc/self/fd"))(t)
	return len(entries)
}

// TestTheManualListsWhatIsNotRun keeps docs/attacks.md and the tables equal.
func TestTheManualListsWhatIsNotRun(t *testing.T) {
	manual := must.Get(os.ReadFile("../../docs/attacks.md"))(t)
	_, section, found := strings.Cut(string(manual), "## Not run")
	if !found {
		t.Fatal("docs/attacks.md has no section \"Not run\"")
	}
	section, _, _ = strings.Cut(section, "\n## ")
	listed := map[string]bool{}
	for _, m := range regexp.MustCompile("(?m)^\\| `([A-Z0-9]+-[0-9]+b?)` \\| [^|]").FindAllStringSubmatch(section, -1) {
		listed[m[1]] = true
	}
	ids := map[string]bool{}
	for _, cat := range suite() {
		if row := fmt.Sprintf("| %d | %d |", len(cat.cases),
			len(cat.unrun)); !regexp.MustCompile(`(?m)^\| ` + cat.name + ` \|.*` + regexp.QuoteMeta(row)).Match(manual) {
			t.Errorf("docs/attacks.md does not say that of %s %s are run and not run", cat.name, row)
		}
		for _, a := range cat.cases {
			if ids[a.id] {
				t.Errorf("%s is there twice", a.id)
			}
			ids[a.id] = true
		}
		for id := range cat.unrun {
			if ids[id] {
				t.Errorf("%s is run and listed as not run", id)
			}
			if !listed[id] {
				t.Errorf("%s is not run, and docs/attacks.md does not say so", id)
			}
			delete(listed, id)
		}
	}
	for id := range listed {
		t.Errorf("docs/attacks.md says that %s is not run; the tables say nothing of it", id)
	}
}

// TestEveryCaseOfTheListIsKnown compares the suite with the list of cases
// that AILERON_ATTACKS names, which is not part of the repository.
func TestEveryCaseOfTheListIsKnown(t *testing.T) {
	path := os.Getenv("AILERON_ATTACKS")
	if path == "" {
		t.Skip("AILERON_ATTACKS does not name a list of cases")
	}
	f := must.Get(os.Open(path))(t)
	defer f.Close()
	known := map[string]bool{}
	for _, cat := range suite() {
		for _, a := range cat.cases {
			known[a.id] = true
		}
		for id := range cat.unrun {
			known[id] = true
		}
	}
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var c struct{ ID string }
		must.Do(t, json.Unmarshal(lines.Bytes(), &c))
		if !known[c.ID] {
			t.Errorf("%s is neither run nor listed as not run", c.ID)
		}
	}
}
