package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"go/build"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// generate tries mutants that it makes itself, with the tests of their packages under -short:
//
//	scripts/mutants generate [--seed N] [--count 20] [--cpu 30m] [PACKAGE…]
//
// The edits that scripts/mutants-accepted.txt lists are not tried.
func generate(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("mutants generate", flag.ContinueOnError)
	seed := flags.Uint64("seed", uint64(time.Now().UnixNano()%1e6), "which edits: the same of the same files")
	count := flags.Int("count", 20, "how many mutants are tried")
	cpu := flags.Duration("cpu", 30*time.Minute, "the processor time after which no other mutant is tried")
	limit := flags.Duration("bound", bound, "the most that the tests of a package may take")
	list := flags.String("accepted", "scripts/mutants-accepted.txt", "the edits that may pass, with the reason")
	if err := flags.Parse(args); err != nil {
		return err
	}
	text, err := os.ReadFile(*list)
	if err != nil {
		return err
	}
	known, err := parseAccepted(string(text))
	if err != nil {
		return fmt.Errorf("%s: %w", *list, err)
	}
	all, err := possible(os.DirFS("."), flags.Args())
	if err != nil {
		return err
	}
	root, remove, err := scratch(ctx)
	if err != nil {
		return err
	}
	defer remove()
	fmt.Printf("seed %d: %d of %d possible edits\n", *seed, *count, len(all))
	g := generation{runner: runner{root: root, bound: *limit, nice: 10, tries: 1, cpu: *cpu}, red: map[string]string{}}
	g.flags = []string{"-short", "-failfast"}
	if g.env, err = homeless(ctx, filepath.Join(filepath.Dir(root), "home")); err != nil {
		return err
	}
	if os.Getuid() == 0 {
		g.prefix = []string{"unshare", "--pid", "--fork", "--kill-child", "--mount-proc"}
	}
	return g.all(ctx, slices.DeleteFunc(draw(all, *seed), known.has), *count)
}

// homeless returns the variables of tests that shall not find what the user has: what an edit makes of a product that
// writes and removes files is not known. For the same reason root's tests see and end no processes but their own.
func homeless(ctx context.Context, home string) ([]string, error) {
	env := []string{"HOME=" + home, "XDG_CONFIG_HOME=", "XDG_CACHE_HOME=", "XDG_DATA_HOME=", "XDG_STATE_HOME="}
	for _, name := range []string{"GOCACHE", "GOMODCACHE", "GOPATH"} {
		value, err := exec.CommandContext(ctx, "go", "env", name).Output()
		if err != nil {
			return nil, fmt.Errorf("go env %s: %w", name, err)
		}
		env = append(env, name+"="+strings.TrimSpace(string(value)))
	}
	return env, os.Mkdir(home, 0o700)
}

// possible returns the mutants of the files of all packages that have tests, or of those below the directories named.
func possible(tree fs.FS, under []string) ([]mutant, error) {
	here := build.Default
	here.OpenFile = func(name string) (io.ReadCloser, error) { return tree.Open(name) }
	var all []mutant
	err := fs.WalkDir(tree, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (slices.Contains(notMutated, name) || d.Name() == "testdata"):
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") || !within(name, under):
			return nil
		}
		if found, err := here.MatchFile(filepath.Dir(name), filepath.Base(name)); err != nil || !found {
			return err
		}
		pkg := testsOf(tree, filepath.Dir(name))
		if pkg == "" {
			return nil
		}
		source, err := fs.ReadFile(tree, name)
		if err != nil {
			return err
		}
		found, err := editsOf(name, source)
		for _, m := range found {
			m.pkg = pkg
			all = append(all, m)
		}
		return err
	})
	return all, err
}

// notMutated are directories that are no part of the product, and packages whose subject is the machine itself: a
// mutant of theirs could change the trust stores or the containers of the one that it runs on.
var notMutated = []string{
	".git", "dist", "e2e", "examples", "internal/archtest", "internal/release", "internal/hosttrust", "sandbox/engine",
}

// within reports whether a file is below one of the directories, which may be written as patterns of packages.
func within(name string, dirs []string) bool {
	return len(dirs) == 0 || slices.ContainsFunc(dirs, func(dir string) bool {
		dir, deep := strings.CutSuffix(strings.TrimPrefix(dir, "./"), "/...")
		at := filepath.Dir(name)
		return at == dir || deep && strings.HasPrefix(at, dir+"/")
	})
}

// testsOf returns the packages whose tests are those of a directory: itself, and the one that an internal package is
// a room of.
func testsOf(tree fs.FS, dir string) string {
	var pkgs []string
	room, _, _ := strings.Cut(dir, "/internal/")
	for _, d := range slices.Compact([]string{dir, room}) {
		if tests, _ := fs.Glob(tree, d+"/*_test.go"); len(tests) > 0 {
			pkgs = append(pkgs, "./"+d)
		}
	}
	return strings.Join(pkgs, " ")
}

// draw puts the mutants in the order in which a seed tries them: lines first, so that one with many edits is not tried
// more often than another.
func draw(all []mutant, seed uint64) []mutant {
	chance := rand.New(rand.NewPCG(seed, 0))
	lines := map[string][]mutant{}
	var ids []string
	for _, m := range all {
		if lines[m.id] == nil {
			ids = append(ids, m.id)
		}
		lines[m.id] = append(lines[m.id], m)
	}
	chance.Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
	drawn := make([]mutant, len(ids))
	for i, id := range ids {
		drawn[i] = lines[id][chance.IntN(len(lines[id]))]
	}
	return drawn
}

// generation tries generated mutants.
type generation struct {
	runner
	red map[string]string // of the packages that were tried without an edit: why their tests failed, or ""
}

// all tries so many of the mutants that compile, prints those that survive, and returns an error if any does.
func (g generation) all(ctx context.Context, mutants []mutant, count int) error {
	tried, survivors := 0, 0
	for _, m := range mutants {
		if tried == count || g.cpu > 0 && used() > g.cpu {
			break
		}
		began := time.Now()
		v, err := g.one(ctx, m)
		if err != nil {
			return fmt.Errorf("%s: %w", m.id, err)
		}
		if v == stale || v == untried { // it does not compile, or the tests fail anyway
			continue
		}
		tried++
		took := time.Since(began).Round(time.Second)
		fmt.Fprintf(os.Stderr, "mutants: %d of %d: %s: %s (%v)\n", tried, count, m.id, v, took)
		if v == survived {
			survivors++
			was, is := strings.TrimSpace(m.old), strings.TrimSpace(m.new)
			fmt.Printf("%s: %s\nfile %s\n- %s\n+ %s\n\n", m.id, m.pkg, m.file, was, is)
		}
	}
	fmt.Printf("%d tried, %d survived\n", tried, survivors)
	var faults []error
	for pkg, why := range g.red {
		if why != "" {
			faults = append(faults, fmt.Errorf("run the tests of %s without an edit: %s", pkg, why))
		}
	}
	if survivors > 0 {
		faults = append(faults, errSurvivors)
	}
	return errors.Join(faults...)
}

// one tries a mutant with the tests of one package after the other, until one sees it, also by not ending. It is
// untried where some of these tests fail anyway: they might have seen it.
func (g generation) one(ctx context.Context, m mutant) (verdict, error) {
	result, red := untried, false
	for pkg := range strings.FieldsSeq(m.pkg) {
		if err := g.unedited(ctx, pkg); err != nil {
			return "", err
		}
		if g.red[pkg] != "" {
			red = true
			continue
		}
		m.pkg = pkg
		v, _, err := g.try(ctx, m)
		if err != nil || v != survived && v != untried {
			return v, err
		}
		result = survived
	}
	if red {
		return untried, nil
	}
	return result, nil
}

var errSurvivors = errors.New("some edits pass the tests of their packages\n" +
	"hint: write a test that states the right value, remove the line if nothing needs it, or list the edit in" +
	" scripts/mutants-accepted.txt with the reason why it may pass")

// unedited runs the tests of a package once without an edit: those that fail anyway see nothing.
func (g generation) unedited(ctx context.Context, pkg string) error {
	if _, done := g.red[pkg]; done {
		return nil
	}
	g.red[pkg] = ""
	began := time.Now()
	v, why := g.test(ctx, pkg, ".")
	fmt.Fprintf(os.Stderr, "mutants: without an edit: %s: %s (%v)\n", pkg, v, time.Since(began).Round(time.Second))
	if v != survived {
		g.red[pkg] = why
	}
	return ctx.Err()
}

// accepted are edits that may pass the tests, by their content.
type accepted map[mutant]bool

func (a accepted) has(m mutant) bool {
	return a[mutant{file: m.file, old: strings.TrimSpace(m.old), new: strings.TrimSpace(m.new)}]
}

// parseAccepted reads the list of accepted edits. An entry is a paragraph; lines that begin with # are comments:
//
//	file proxy/upstream/pool.go
//	- if len(idle) > most {
//	+ if len(idle) >= most {
//	because the bound is not a promise
func parseAccepted(text string) (accepted, error) {
	all := accepted{}
	for _, lines := range paragraphs(text) {
		var m mutant
		reason := ""
		if err := fields(lines, []field{
			{"file ", &m.file}, {"- ", &m.old}, {"+ ", &m.new}, {"because ", &reason},
		}); err != nil || m.old == "" || m.old == m.new || reason == "" {
			return nil, fmt.Errorf("%s: an entry is file, - old, + new, because REASON, a line each", lines[0])
		}
		all[m] = true
	}
	return all, nil
}
