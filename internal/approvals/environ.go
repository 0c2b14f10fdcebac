package approvals

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// Environ is the environment of the programs that this host runs for a session: about approvals, and for credentials.
// The nil one is this process's own.
type Environ struct {
	mu   sync.Mutex
	vars []string
}

// NewEnviron returns an Environ with these variables, K=V.
func NewEnviron(vars []string) *Environ { return &Environ{vars: slices.Clone(vars)} }

// Exclude takes what leads to dirs from the environment: their directories from PATH, and any other variable that names
// something in one. dirs are what a sandbox may write to, without links on their paths: a program could find there what
// an agent has written, as the interpreter of a script finds its modules.
func (e *Environ) Exclude(dirs []string) {
	if e == nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	var vars []string
	for _, pair := range e.vars {
		name, value, _ := strings.Cut(pair, "=")
		leads := func(entry string) bool { return leadsInto(entry, dirs) }
		switch {
		case name == "PATH": // a relative directory is none either: these programs run elsewhere
			out := func(dir string) bool { return !filepath.IsAbs(dir) || leads(dir) }
			vars = append(vars, "PATH="+strings.Join(slices.DeleteFunc(filepath.SplitList(value), out), ":"))
		case !slices.ContainsFunc(filepath.SplitList(value), leads):
			vars = append(vars, pair)
		}
	}
	e.vars = vars
}

// leadsInto reports whether an entry of a variable names something in one of dirs.
func leadsInto(entry string, dirs []string) bool {
	if filepath.IsAbs(entry) {
		return within(entry, dirs) != ""
	}
	return slices.ContainsFunc(dirs, func(dir string) bool { return names(entry, dir) })
}

// Start returns start for programs that get this environment.
func (e *Environ) Start(start func(*exec.Cmd) error) func(*exec.Cmd) error {
	return func(cmd *exec.Cmd) error {
		cmd.Env = e.list()
		return start(cmd)
	}
}

// list returns the variables; nil for the environment of this process.
func (e *Environ) list() []string {
	if e == nil {
		return nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.vars)
}

// find returns the path of a program, by the PATH of the environment.
func (e *Environ) find(name string) (string, error) {
	vars := e.list()
	if vars == nil || strings.Contains(name, "/") {
		return exec.LookPath(name)
	}
	for _, pair := range vars {
		list, ok := strings.CutPrefix(pair, "PATH=")
		if !ok {
			continue
		}
		for _, dir := range filepath.SplitList(list) {
			at := filepath.Join(dir, name)
			if info, err := os.Stat(at); err == nil && info.Mode().IsRegular() && unix.Access(at, unix.X_OK) == nil {
				return at, nil
			}
		}
	}
	return "", &exec.Error{Name: name, Err: exec.ErrNotFound}
}
