// Command mutants checks that the tests see the defences: it takes one after
// the other away, by an edit of one line in a copy of the repository, and
// expects the test that stands beside it in the list to fail with a message.
// A test that passes, hangs, or is red before the edit is reported.
//
//	scripts/mutants                  # all of scripts/mutants.txt
//	scripts/mutants --shard 2/7      # a part of them
//	scripts/mutants PTH-DOT AUT-SNI  # these
//	scripts/mutants --check          # which edits do not apply or compile any more
//	scripts/mutants generate         # twenty that it makes itself
//
// The copy is a git work tree of HEAD in a temporary directory, which is
// removed at the end and on Ctrl-C.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
	}
	switch {
	case errors.Is(err, errLeft):
		os.Exit(3)
	case err != nil:
		os.Exit(1)
	}
}

// errLeft is returned when the processor time did not suffice for all mutants, and those that were tried were killed.
var errLeft = errors.New("some mutants are left to another run")

// options are the flags of the command.
type options struct {
	list     string
	shard    string
	baseline bool
	check    bool
	nice     int
	bound    time.Duration
	tries    int
	engine   string
	cpu      time.Duration
	ids      []string
}

func run(ctx context.Context, args []string) error {
	if len(args) > 0 && args[0] == "generate" {
		return generate(ctx, args[1:])
	}
	var o options
	flags := flag.NewFlagSet("mutants", flag.ContinueOnError)
	flags.StringVar(&o.list, "list", "scripts/mutants.txt", "the list of mutants")
	flags.StringVar(&o.shard, "shard", "1/1", "which part of the list: K/N")
	flags.BoolVar(&o.baseline, "baseline", true, "run the tests without an edit first")
	flags.IntVar(&o.nice, "nice", 10, "the niceness of the tests")
	flags.BoolVar(&o.check, "check", false, "only check that the edits apply and compile, in the work tree as it is")
	flags.DurationVar(&o.bound, "bound", bound, "the most that one test may take")
	flags.IntVar(&o.tries, "tries", 1, "how often a test may pass without its defence, where chance decides what it sees")
	flags.StringVar(&o.engine, "engine", "", "no: those alone whose tests need no engine of containers; only: the others")
	flags.DurationVar(&o.cpu, "cpu", 0, "the processor time after which no other mutant is tried")
	if err := flags.Parse(args); err != nil {
		return err
	}
	o.ids = flags.Args()
	chosen, err := choose(o)
	if err != nil {
		return err
	}
	if o.check {
		return errors.Join(check(chosen), compiles(ctx, chosen))
	}
	root, remove, err := scratch(ctx)
	if err != nil {
		return err
	}
	defer remove()
	r := runner{root: root, bound: o.bound, nice: o.nice, tries: o.tries, cpu: o.cpu}
	if o.baseline {
		if err := r.baseline(ctx, chosen); err != nil {
			return err
		}
	}
	return r.all(ctx, chosen)
}

// choose returns the mutants that are asked for.
func choose(o options) ([]mutant, error) {
	text, err := os.ReadFile(o.list)
	if err != nil {
		return nil, err
	}
	all, err := parse(string(text))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", o.list, err)
	}
	if len(o.ids) > 0 {
		for _, id := range o.ids {
			if !slices.ContainsFunc(all, func(m mutant) bool { return m.id == id }) {
				return nil, fmt.Errorf("there is no mutant %q in %s", id, o.list)
			}
		}
		return slices.DeleteFunc(all, func(m mutant) bool { return !slices.Contains(o.ids, m.id) }), nil
	}
	var k, n int
	if _, err := fmt.Sscanf(o.shard, "%d/%d", &k, &n); err != nil || k < 1 || k > n {
		return nil, fmt.Errorf("--shard is K/N with K from 1 to N, not %q", o.shard)
	}
	return slices.DeleteFunc(shard(all, k, n), func(m mutant) bool {
		return o.engine == "no" && m.needsEngine() || o.engine == "only" && !m.needsEngine()
	}), nil
}

// check reports the edits that do not apply once in the files as they are, and the tests that are gone.
func check(mutants []mutant) error {
	var faults []error
	for _, m := range mutants {
		was, err := os.ReadFile(m.file)
		if err == nil && m.edits(string(was)) != 1 {
			err = fmt.Errorf("%w: %q in %s", errStale, m.old, m.file)
		}
		if err == nil {
			err = m.hasTest()
		}
		if err != nil {
			faults = append(faults, fmt.Errorf("%s: %w", m.id, err))
		}
	}
	return errors.Join(faults...)
}

var testFunction = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Example)\w*)\(`)

// hasTest reports whether the package has a test that the mutant names.
func (m mutant) hasTest() error {
	name, _, _ := strings.Cut(m.run, "/")
	run, err := regexp.Compile(name)
	if err != nil {
		return fmt.Errorf("the tests %q: %w", m.run, err)
	}
	files, err := filepath.Glob(filepath.Join(m.pkg, "*_test.go"))
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		for _, f := range testFunction.FindAllSubmatch(text, -1) {
			if run.Match(f[1]) {
				return nil
			}
		}
	}
	return errors.Join(fmt.Errorf("%w: %s has no test %s", errStale, m.pkg, name), err)
}

// scratch makes a work tree of HEAD, in which edits are made.
func scratch(ctx context.Context) (root string, remove func(), err error) {
	dir, err := os.MkdirTemp("", "mutants-")
	if err != nil {
		return "", nil, err
	}
	root = filepath.Join(dir, "tree")
	remove = func() {
		// Not with ctx, which may have ended.
		_ = exec.Command("git", "worktree", "remove", "--force", root).Run()
		_ = os.RemoveAll(dir)
		_ = exec.Command("git", "worktree", "prune").Run()
	}
	add := exec.CommandContext(ctx, "git", "worktree", "add", "--quiet", "--detach", root, "HEAD")
	if out, err := add.CombinedOutput(); err != nil {
		remove()
		return "", nil, fmt.Errorf("make a work tree: %w: %s", err, out)
	}
	return root, remove, nil
}

// all tries each mutant and prints what became of it.
func (r runner) all(ctx context.Context, mutants []mutant) error {
	var table strings.Builder
	w := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	counts := map[verdict]int{}
	left := 0
	for i, m := range mutants {
		if r.cpu > 0 && used() > r.cpu {
			left = len(mutants) - i
			break
		}
		began := time.Now()
		v, why, err := r.try(ctx, m)
		if err != nil {
			return fmt.Errorf("%s: %w", m.id, err)
		}
		counts[v]++
		took := time.Since(began).Round(time.Second)
		fmt.Fprintf(os.Stderr, "mutants: %d of %d: %s: %s (%v)\n", i+1, len(mutants), m.id, v, took)
		if v != killed {
			fmt.Fprintf(os.Stderr, "    %s %s\n    %s\n", m.pkg, m.run, why)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\n", m.id, v, m.defence)
	}
	_ = w.Flush()
	fmt.Print(table.String())
	fmt.Printf("%d killed, %d survived, %d stale, %d hung, %d untried\n",
		counts[killed], counts[survived], counts[stale], counts[hung], counts[untried])
	switch {
	case counts[killed] != len(mutants)-left:
		return errors.New("some defences can be taken away unseen")
	case left > 0:
		return fmt.Errorf("%d of %d: %w", left, len(mutants), errLeft)
	}
	return nil
}

// used is the processor time of the tests that have ended, with their compilers.
func used() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_CHILDREN, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
