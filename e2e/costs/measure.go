package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/ALRubinger/aileron/e2e/harness"
)

// figures are what an iteration of a benchmark costs, by unit: "allocations", "bytes", and "instructions (valgrind)".
type figures map[string]float64

const (
	allocations = "allocations"
	allocated   = "bytes"
)

// repetitions is how often a benchmark runs for its allocations, and attempts how often it is measured in all before
// a growth counts. The least figures are its own: what is more was done beside it, by timers and by the runtime.
const (
	repetitions = 3
	attempts    = 8
)

// meter is what is measured.
type meter struct {
	allocations bool     // and bytes
	counter     *counter // of instructions; nil: they are not counted
}

// measure runs all benchmarks. It repeats those whose figures are not enough for the caller.
func (m meter) measure(ctx context.Context, enough func(name string, f figures, attempt int) bool) (
	map[string]figures, error) {
	dir, err := os.MkdirTemp("", "aileron-costs-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	root, err := moduleRoot(ctx)
	if err != nil {
		return nil, err
	}
	all := map[string]figures{}
	for _, b := range benchmarks {
		if !m.allocations && !harness.InTurn(b.name) {
			continue // an emulated processor is slow
		}
		p := program{binary: filepath.Join(dir, strings.ReplaceAll(b.dir, "/", "-")), dir: filepath.Join(root, b.dir)}
		if err := p.build(ctx); err != nil {
			return nil, err
		}
		least := figures{}
		for n := 1; n <= attempts; n++ {
			if err := m.lower(ctx, p, b, least); err != nil {
				return nil, fmt.Errorf("%s (%s in %s): %w", b.name, b.path, b.dir, err)
			}
			if enough(b.name, least, n) {
				break
			}
		}
		all[b.name] = least
	}
	return all, nil
}

// lower measures a benchmark once, and lowers the figures to those that it took.
func (m meter) lower(ctx context.Context, p program, b benchmark, least figures) error {
	f := figures{}
	var err error
	if m.allocations {
		f, err = p.allocations(ctx, b)
	}
	if err == nil && m.counter != nil {
		f[m.counter.unit()], err = m.counter.perIteration(ctx, p, b)
	}
	if err != nil {
		return err
	}
	for unit, v := range f {
		if before, known := least[unit]; !known || v < before {
			least[unit] = v
		}
	}
	return nil
}

func moduleRoot(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		return "", fmt.Errorf("find the module: %w", err)
	}
	return strings.TrimSpace(string(out)), nil
}

// program is the test binary of a package.
type program struct{ binary, dir string }

// build builds it, once.
func (p program) build(ctx context.Context) error {
	if _, err := os.Stat(p.binary); err == nil {
		return nil
	}
	cmd := exec.CommandContext(ctx, "go", "test", "-c", "-o", p.binary, ".")
	cmd.Dir = p.dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build the tests of %s: %w\n%s", p.dir, err, out)
	}
	return nil
}

// arguments returns the arguments that run a benchmark with n iterations, and nothing else, on one processor.
func (p program) arguments(b benchmark, n int) []string {
	return []string{p.binary, "-test.run=^$", "-test.bench=" + b.path, "-test.benchtime=" + strconv.Itoa(n) + "x",
		"-test.benchmem", "-test.cpu=1", "-test.timeout=10m"}
}

// run runs a command in the package's directory. There is no collection: it empties pools at moments of its own.
func (p program) run(ctx context.Context, args []string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Dir = p.dir
	// rdtscp: where two threads meet at a lock of the runtime, it reads a counter with an instruction that valgrind 3.19
	// does not know.
	cmd.Env = append(os.Environ(), "GOGC=off", "GOMAXPROCS=1", "GOMEMLIMIT=off", "GODEBUG=cpu.rdtscp=off")
	out, err := cmd.CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("%w\n%s", err, out)
	}
	return out, nil
}

// allocations returns the least allocations and bytes of several runs.
func (p program) allocations(ctx context.Context, b benchmark) (figures, error) {
	f := figures{allocations: math.Inf(1), allocated: math.Inf(1)}
	out, err := p.run(ctx, append(p.arguments(b, b.n), "-test.count="+strconv.Itoa(repetitions)))
	if err != nil {
		return nil, err
	}
	runs := 0
	for line := range bytes.Lines(out) {
		for unit, name := range map[string]string{"allocs/op": allocations, "B/op": allocated} {
			if v, ok := reported(string(line), unit); ok {
				f[name] = min(f[name], v)
				runs++
			}
		}
	}
	if runs != 2*repetitions {
		return nil, fmt.Errorf("it is no single benchmark; list it in e2e/costs/benchmarks.go as it is:\n%s", out)
	}
	return f, nil
}

// reported returns the figure with a unit of a benchmark's line.
func reported(line, unit string) (float64, bool) {
	fields := strings.Fields(line)
	i := slices.Index(fields, unit)
	if i < 1 || !strings.HasPrefix(line, "Benchmark") {
		return 0, false
	}
	v, err := strconv.ParseFloat(fields[i-1], 64)
	return v, err == nil
}

var errNoCount = errors.New("no number of instructions in the output")
