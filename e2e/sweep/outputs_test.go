package sweep

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/audit"
)

// kinds are the canaries that must not be in a place.
type kinds struct{ texts, tokens bool } // and secrets, everywhere

var (
	everything  = kinds{texts: true, tokens: true}
	ofACapture  = kinds{tokens: true} // it is made to have fields, queries and bodies
	ofTheClient = kinds{texts: true}  // it has the session's token to use it
)

// judge fails the test if an output has a canary.
func (c *canaries) judge(t testing.TB, where string, data []byte, of kinds) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	found := c.nowhere.Find(data)
	if found == "" && of.texts {
		found = c.capture.Find(data)
	}
	if found == "" && of.tokens {
		found = c.session.Find(data)
	}
	if found != "" {
		t.Errorf("%s has %s", where, found)
	}
}

// capture is the file of --capture.
const capture = "session.har"

// searchFiles searches every file of the home, the project and the directory of temporary files, and their names.
func (p *person) searchFiles(when string) {
	p.t.Helper()
	for _, dir := range []string{p.home, p.project, p.temp, p.dir + "/cache", p.dir + "/config"} {
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return nil // it was removed meanwhile
			}
			name, err := filepath.Rel(p.dir, path)
			if err != nil {
				return err
			}
			p.canary.judge(p.t, when+": the name of "+name, []byte(name), everything)
			if !d.Type().IsRegular() || d.Name() == projectFile {
				return nil
			}
			data, err := os.ReadFile(path)
			if err != nil {
				return nil // as above
			}
			of := everything
			if strings.Contains(name, capture) {
				of = ofACapture
			}
			p.canary.judge(p.t, when+": "+name, data, of)
			return nil
		})
		if err != nil {
			p.t.Error(err)
		}
	}
}

// searchPrinted searches what commands printed.
func (p *person) searchPrinted() {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, said := range p.printed {
		of := everything
		switch {
		case said.tokens:
			of = ofTheClient
		case said.bodies:
			of = ofACapture
		}
		p.canary.judge(p.t, "the output of aileron "+strings.Join(said.args, " "), said.out.Bytes(), of)
		p.canary.judge(p.t, "the messages of aileron "+strings.Join(said.args, " "), said.err.Bytes(), everything)
	}
}

// searchProcesses searches the arguments and the environment of every process that this person's commands started, and
// returns how many there are.
func (p *person) searchProcesses(when string) (seen int) {
	p.t.Helper()
	pids, err := os.ReadDir("/proc")
	if err != nil {
		p.t.Fatal(err)
	}
	for _, entry := range pids {
		if _, err := strconv.Atoi(entry.Name()); err != nil || entry.Name() == strconv.Itoa(os.Getpid()) {
			continue
		}
		args, err := os.ReadFile(filepath.Join("/proc", entry.Name(), "cmdline"))
		if err != nil {
			continue
		}
		environ, err := os.ReadFile(filepath.Join("/proc", entry.Name(), "environ"))
		if err != nil || !p.owns(string(args)+"\x00"+string(environ)) {
			continue
		}
		seen++
		program, _, _ := strings.Cut(string(args), "\x00")
		p.canary.judge(p.t, when+": the arguments of "+program, args, everything)
		p.canary.judge(p.t, when+": the environment of "+program, environ, kinds{texts: !strings.Contains(string(environ),
			"AILERON_SESSION_ID=")}) // a client's has what --env gives it
	}
	return seen
}

// owns reports whether a process, by its arguments and environment, is of this person's sessions.
func (p *person) owns(text string) bool {
	if strings.Contains(text, p.dir) {
		return true
	}
	p.canary.mu.Lock()
	defer p.canary.mu.Unlock()
	for id := range p.canary.tokens {
		if strings.Contains(text, id) {
			return true
		}
	}
	return false
}

// reserved are events that nothing records.
var reserved []audit.Event

// coverEvents fails the test for each event that no row of the log has.
func (p *person) coverEvents(rows []audit.Row) {
	p.t.Helper()
	seen := map[audit.Event]bool{}
	for _, r := range rows {
		seen[r.Event] = true
	}
	for _, event := range audit.Events() {
		if seen[event] == slices.Contains(reserved, event) {
			p.t.Errorf("the sweep has a row of %s: %v; it must drive every event", event, seen[event])
		}
	}
}

// coverVerbs fails the test for each command that the sweep does not run.
func (p *person) coverVerbs() {
	p.t.Helper()
	dir := filepath.Join(p.in, "manual")
	p.must("man", dir)
	pages, err := filepath.Glob(filepath.Join(dir, "man", "man1", "*.1"))
	if err != nil || len(pages) < 40 {
		p.t.Fatalf("%d manual pages, %v", len(pages), err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, page := range pages {
		verb := strings.ReplaceAll(strings.TrimPrefix(strings.TrimSuffix(filepath.Base(page), ".1"), "aileron"), "-", " ")
		if verb = strings.TrimSpace(verb); verb != "" && !p.verbs[verb] {
			p.t.Errorf("the sweep does not run aileron %s; it must run every command", verb)
		}
	}
}
