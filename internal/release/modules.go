package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
)

// module is a module that is part of a program.
type module struct {
	path, version, sum string
	licence            string // an SPDX expression
	texts              []text // of its licences and notices
}

// text is a file of a module, whole.
type text struct{ name, body string }

// licensed returns the modules that the program was built from, the Go standard library first, with their licences.
func licensed(ctx context.Context, info *debug.BuildInfo) ([]module, error) {
	root, err := goCommand(ctx, "env", "GOROOT")
	if err != nil {
		return nil, err
	}
	std := module{path: "std", version: strings.TrimPrefix(info.GoVersion, "go")}
	std, err = withLicence(std, strings.TrimSpace(root))
	if err != nil {
		return nil, err
	}
	modules := []module{std}
	dirs, err := moduleDirs(ctx, info)
	if err != nil {
		return nil, err
	}
	for _, dep := range info.Deps {
		if dep.Replace != nil {
			dep = dep.Replace
		}
		m, err := withLicence(module{path: dep.Path, version: dep.Version, sum: dep.Sum}, dirs[dep.Path+"@"+dep.Version])
		if err != nil {
			return nil, err
		}
		modules = append(modules, m)
	}
	return modules, nil
}

// moduleDirs returns where the module cache has each module, by path@version.
func moduleDirs(ctx context.Context, info *debug.BuildInfo) (map[string]string, error) {
	if len(info.Deps) == 0 {
		return nil, nil
	}
	args := []string{"list", "-m", "-f", "{{.Path}}@{{.Version}}\t{{.Dir}}"}
	for _, dep := range info.Deps {
		args = append(args, dep.Path)
	}
	out, err := goCommand(ctx, args...)
	if err != nil {
		return nil, err
	}
	dirs := map[string]string{}
	for line := range strings.Lines(out) {
		if name, dir, ok := strings.Cut(strings.TrimSpace(line), "\t"); ok {
			dirs[name] = dir
		}
	}
	return dirs, nil
}

func goCommand(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", args...) //nolint:gosec // words of ours, and paths of modules
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("go %s: %w: %s", args[0], err, strings.TrimSpace(errs.String()))
	}
	return string(out), nil
}

// withLicence returns the module with the licences that it keeps in dir.
func withLicence(m module, dir string) (module, error) {
	if dir == "" {
		return m, fmt.Errorf("%s@%s is not in the module cache\nhint: go mod download", m.path, m.version)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return m, err
	}
	var known []string
	for _, e := range entries {
		kind := strings.ToUpper(e.Name())
		isLicence := hasAnyPrefix(kind, "LICENSE", "LICENCE", "COPYING")
		if !e.Type().IsRegular() || !isLicence && !hasAnyPrefix(kind, "NOTICE", "PATENTS") {
			continue
		}
		if strings.HasSuffix(kind, ".DOCS") || strings.HasSuffix(kind, "-LOGO") {
			continue // of what is not part of a program
		}
		body, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return m, err
		}
		m.texts = append(m.texts, text{e.Name(), string(body)})
		if !isLicence {
			continue
		}
		id := spdx(string(body))
		if id == "" {
			return m, fmt.Errorf("%s@%s: the licence in %s is not known\nhint: read it, and add it to spdx",
				m.path, m.version, e.Name())
		}
		known = append(known, id)
	}
	if len(known) == 0 {
		return m, fmt.Errorf("%s@%s has no licence, so it may not be released", m.path, m.version)
	}
	slices.Sort(known)
	m.licence = strings.Join(slices.Compact(known), " AND ")
	return m, nil
}

func hasAnyPrefix(s string, prefixes ...string) bool {
	return slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(s, prefix) })
}

// spdx returns the SPDX identifier of a licence text, or "". Only licences that let a program be released in binary
// form with their text are known.
func spdx(body string) string {
	flat := strings.Join(strings.Fields(body), " ")
	has := func(words string) bool { return strings.Contains(flat, words) }
	switch {
	case has("SQLite Is Public Domain"):
		return "LicenseRef-SQLite-public-domain"
	case has("Apache License") && has("Version 2.0"):
		return "Apache-2.0"
	case has("Mozilla Public License") && has("2.0"):
		return "MPL-2.0"
	case has("Permission is hereby granted, free of charge"):
		return "MIT"
	case has("Permission to use, copy, modify, and"):
		return "ISC"
	case has("Redistribution and use in source and binary forms") && has("endorse or promote products"):
		return "BSD-3-Clause"
	case has("Redistribution and use in source and binary forms"):
		return "BSD-2-Clause"
	}
	return ""
}
