package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
)

// compiles reports the edits after which their package does not compile: such a mutant shows nothing of a test. It
// checks types only, from the sources of one package and what the compiler exports of the others, so that a thousand
// edits take seconds. Edits of files that are not built on this system are not looked at.
func compiles(ctx context.Context, mutants []mutant) error {
	dirs := map[string][]mutant{}
	for _, m := range mutants {
		dir := "./" + filepath.ToSlash(filepath.Dir(m.file))
		dirs[dir] = append(dirs[dir], m)
	}
	l, err := listed(ctx, dirs)
	if err != nil {
		return err
	}
	faults := make([]error, len(l.packages))
	places := make(chan struct{}, runtime.GOMAXPROCS(0))
	var all sync.WaitGroup
	for i, p := range l.packages {
		all.Go(func() {
			places <- struct{}{}
			defer func() { <-places }()
			faults[i] = l.check(p, dirs["./"+p.dir])
		})
	}
	all.Wait()
	return errors.Join(faults...)
}

// sources is a package with the files of its that are built here.
type sources struct {
	ImportPath string
	Dir        string
	Export     string
	GoFiles    []string
	dir        string // relative to the repository
}

// listing is what go list knows of packages and of all that they import.
type listing struct {
	packages []sources
	exports  map[string]string // by import path: the file that the compiler has written
}

// listed lists the packages of directories.
func listed(ctx context.Context, dirs map[string][]mutant) (listing, error) {
	root, err := os.Getwd()
	if err != nil {
		return listing{}, err
	}
	args := []string{"list", "-export", "-deps", "-json=ImportPath,Dir,Export,GoFiles"}
	for dir := range dirs {
		args = append(args, dir)
	}
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return listing{}, fmt.Errorf("list the packages of the edits: %w", err)
	}
	l := listing{exports: map[string]string{}}
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p sources
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return l, nil
		} else if err != nil {
			return listing{}, fmt.Errorf("read what go list prints: %w", err)
		}
		l.exports[p.ImportPath] = p.Export
		dir, err := filepath.Rel(root, p.Dir)
		if err == nil && len(dirs["./"+filepath.ToSlash(dir)]) > 0 {
			p.dir = filepath.ToSlash(dir)
			l.packages = append(l.packages, p)
		}
	}
}

// check checks the edits of one package.
func (l listing) check(p sources, mutants []mutant) error {
	set := token.NewFileSet()
	imports := importer.ForCompiler(set, "gc", func(path string) (io.ReadCloser, error) {
		return os.Open(l.exports[path])
	})
	texts, files := map[string]string{}, make([]*ast.File, len(p.GoFiles))
	for i, name := range p.GoFiles {
		text, err := os.ReadFile(filepath.Join(p.Dir, name))
		if err != nil {
			return err
		}
		texts[name] = string(text)
		if files[i], err = parser.ParseFile(set, name, text, parser.SkipObjectResolution); err != nil {
			return err
		}
	}
	var faults []error
	for _, m := range mutants {
		i := slices.Index(p.GoFiles, filepath.Base(m.file))
		if i < 0 {
			continue
		}
		edited, err := parser.ParseFile(set, p.GoFiles[i], m.edited(texts[p.GoFiles[i]]), parser.SkipObjectResolution)
		if err == nil {
			with := slices.Clone(files)
			with[i] = edited
			_, err = (&types.Config{Importer: imports, Sizes: types.SizesFor("gc", runtime.GOARCH)}).
				Check(p.ImportPath, set, with, nil)
		}
		if err != nil {
			faults = append(faults, fmt.Errorf("%s: %w: %w", m.id, errNotCompiling, err))
		}
	}
	return errors.Join(faults...)
}

// errNotCompiling is returned for an edit that the compiler refuses, such as one that leaves an import unused.
var errNotCompiling = errors.New("the package does not compile with the edit")
