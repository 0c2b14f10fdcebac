package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"runtime"
	"slices"
	"strings"
)

// tolerance is how much a figure may grow. Growth of less than a unit's grain is never too much: the first allocation
// counts, a few bytes of a pool that grew meanwhile do not.
const tolerance = 0.10

// pacedTolerance is that of a benchmark with timers. On a machine at load 20, they have been seen to add a tenth.
const pacedTolerance = 0.25

var grains = map[string]float64{allocations: 1, allocated: 128}

// baseline is what the benchmarks cost when it was written.
type baseline struct {
	Go      string             `json:"go"` // version, and the architecture that instructions are of
	Arch    string             `json:"arch"`
	Figures map[string]figures `json:"figures"`
}

func readBaseline(path string) (baseline, error) {
	var b baseline
	raw, err := os.ReadFile(path)
	if err != nil {
		return b, fmt.Errorf("%w\nhint: go run ./e2e/costs --baseline", err)
	}
	if err := json.Unmarshal(raw, &b); err != nil {
		return b, fmt.Errorf("read %s: %w", path, err)
	}
	return b, nil
}

// writeBaseline writes figures as the new baseline. Instructions that were not counted now stay as they were.
func writeBaseline(path string, old baseline, now map[string]figures) error {
	for name, f := range now {
		for unit, v := range old.Figures[name] {
			if _, counted := f[unit]; !counted {
				f[unit] = v
			}
		}
		for unit, v := range f {
			f[unit] = math.Round(v)
		}
	}
	raw, err := json.MarshalIndent(baseline{runtime.Version(), runtime.GOARCH, now}, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(raw, '\n'), 0o644)
}

// comparison is the result of comparing figures with a baseline.
type comparison struct {
	rows  []row
	notes []string
}

// row is one figure, before and now.
type row struct {
	name, unit string
	old, now   float64
}

func (r row) growth() float64 {
	if r.old == 0 {
		return math.Inf(1)
	}
	return r.now/r.old - 1
}

func (r row) tooMuch() bool {
	return r.now > r.old*(1+r.tolerance()) && r.now-r.old >= grains[r.unit]
}

func (r row) tolerance() float64 {
	if slices.ContainsFunc(benchmarks, func(b benchmark) bool { return b.name == r.name && b.paced }) {
		return pacedTolerance
	}
	return tolerance
}

// compare compares each figure of now that the baseline has, in the order of the benchmarks.
func compare(old baseline, now map[string]figures) comparison {
	var c comparison
	if version := runtime.Version() + " " + runtime.GOARCH; version != old.Go+" "+old.Arch {
		c.note("the baseline is of %s %s, this is %s", old.Go, old.Arch, version)
	}
	for _, name := range slices.SortedFunc(maps.Keys(now), byOrder) {
		for _, unit := range slices.Sorted(maps.Keys(now[name])) {
			before, known := old.Figures[name][unit]
			switch {
			case strings.HasPrefix(unit, "instructions") && old.Arch != runtime.GOARCH:
			case !known:
				c.note("%s: the baseline has no %s", name, unit)
			default:
				c.rows = append(c.rows, row{name, unit, before, now[name][unit]})
			}
		}
	}
	return c
}

func (c *comparison) note(format string, args ...any) {
	c.notes = append(c.notes, fmt.Sprintf(format, args...))
}

// byOrder orders names as the benchmarks are listed.
func byOrder(a, b string) int {
	place := func(name string) int {
		return slices.IndexFunc(benchmarks, func(b benchmark) bool { return b.name == name })
	}
	return cmp.Or(cmp.Compare(place(a), place(b)), cmp.Compare(a, b))
}

func (c comparison) print(w io.Writer) {
	fmt.Fprintf(w, "%-30s %-24s %12s %12s %8s\n", "per iteration", "", "baseline", "now", "growth")
	for _, r := range c.rows {
		fmt.Fprintf(w, "%-30s %-24s %12.0f %12.0f %8s\n", r.name, r.unit, r.old, r.now, percent(r))
	}
	for _, n := range c.notes {
		fmt.Fprintf(w, "costs: %s\n", n)
	}
}

func percent(r row) string {
	if r.old == r.now {
		return ""
	}
	return fmt.Sprintf("%+.1f %%", 100*r.growth())
}

// err returns an error that names each figure that has grown too much.
func (c comparison) err() error {
	var grown []error
	for _, r := range c.rows {
		if r.tooMuch() {
			grown = append(grown, fmt.Errorf("%s: %.0f %s, %s over the baseline's %.0f (at most %.0f %%)", r.name, r.now,
				r.unit, percent(r), r.old, 100*r.tolerance()))
		}
	}
	if len(grown) == 0 {
		return nil
	}
	return fmt.Errorf("%w\nhint: if that is intended: just costs --baseline, and the reason in the commit",
		errors.Join(grown...))
}
