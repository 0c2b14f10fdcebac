// Package approvals keeps what a person has decided for always, and describes for a person what waits for a decision.
//
// [In] returns the decisions of a home, which sessions ask ([Rules.Cached]) and commands list and revoke. [Show] prints
// a question, and [Lines] a list: what an agent chose never looks like a line of aileron's there.
package approvals

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/internal/durable"
	"github.com/ALRubinger/aileron/internal/format"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/internal/regular"
	"github.com/ALRubinger/aileron/proxy/approval"
)

const (
	// ruleFormat is the format of <home>/approvals/*.json.
	ruleFormat = format.First

	maxRule  = 64 << 10 // bytes of a file
	maxRules = 1000     // of a home
)

// Rules is the decisions for always of a home: <home>/approvals/ID.json.
type Rules struct{ dir string }

// In returns the decisions of a home.
func In(home string) Rules { return Rules{filepath.Join(home, "approvals")} }

// ruleFile is a file of the directory.
type ruleFile struct {
	Format int `json:"format"`
	approval.Rule
}

// List returns the decisions, the oldest first. One whose file cannot be read decides nothing, and is in the error.
func (r Rules) List() (all []approval.Rule, err error) {
	entries, err := os.ReadDir(r.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the approvals: %w", err)
	}
	var faults []error
	if len(entries) > maxRules {
		return nil, fmt.Errorf("read the approvals: %s has more than %d entries", r.dir, maxRules)
	}
	for _, e := range entries {
		id, ok := strings.CutSuffix(e.Name(), ".json")
		if !ok || !audit.IsID(id) {
			continue
		}
		rule, err := r.read(id)
		if errors.Is(err, fs.ErrNotExist) { // revoked just now
			continue
		}
		if err != nil {
			faults = append(faults, err)
			continue
		}
		all = append(all, rule)
	}
	slices.SortFunc(all, func(a, b approval.Rule) int { return strings.Compare(a.ID, b.ID) })
	return all, errors.Join(faults...)
}

func (r Rules) read(id string) (approval.Rule, error) {
	path := r.path(id)
	raw, err := regular.Read(path, maxRule)
	if err != nil {
		return approval.Rule{}, fmt.Errorf("read the approval %s: %w", id, err)
	}
	if err := format.CheckJSON(raw, path, ruleFormat); err != nil {
		return approval.Rule{}, err
	}
	var f ruleFile
	if err := json.Unmarshal(raw, &f); err != nil || f.ID != id || f.For != approval.Always || !f.IsOperation() {
		return approval.Rule{}, hint.New(fmt.Errorf("read the approval %s: it is not what aileron writes", id),
			"remove it with: aileron approval revoke %s", id)
	}
	return f.Rule, nil
}

func (r Rules) path(id string) string { return filepath.Join(r.dir, id+".json") }

// find returns the decision about a subject. One that denies comes first.
func find(all []approval.Rule, s approval.Subject) (found approval.Rule, ok bool) {
	for _, rule := range all {
		if rule.Subject == s && (!ok || !rule.Approve) {
			found, ok = rule, true
		}
	}
	return found, ok
}

// Cached returns a function that finds the decision about a subject, one that denies first, by what the files said when
// the directory was changed last: aileron adds, replaces and removes files, and writes into none. Its error is about
// decisions that could not be read, of which one may be another. It is safe for concurrent use.
func (r Rules) Cached() func(approval.Subject) (approval.Rule, bool, error) {
	var mu sync.Mutex
	var was fs.FileInfo
	var all []approval.Rule
	return func(s approval.Subject) (approval.Rule, bool, error) {
		mu.Lock()
		defer mu.Unlock()
		now, err := os.Stat(r.dir)
		if errors.Is(err, fs.ErrNotExist) {
			was = nil
			return approval.Rule{}, false, nil
		}
		if err != nil || was == nil || !os.SameFile(was, now) || !was.ModTime().Equal(now.ModTime()) {
			was = nil
			read, failed := r.List()
			if failed != nil {
				found, ok := find(read, s)
				return found, ok, failed
			}
			all = read
			if err == nil && time.Since(now.ModTime()).Abs() > settled { // no other change has the same time
				was = now
			}
		}
		found, ok := find(all, s)
		return found, ok, nil
	}
}

// settled is how long ago a directory was changed whose next change has another time, on any file system.
const settled = 3 * time.Second

// Keep adds a decision. It is durable when Keep returns.
func (r Rules) Keep(rule approval.Rule) error {
	if !audit.IsID(rule.ID) {
		return errors.New("keep the approval: its id is none")
	}
	if err := os.MkdirAll(r.dir, 0o700); err != nil {
		return fmt.Errorf("keep the approval: %w", err)
	}
	entries, err := os.ReadDir(r.dir)
	if err != nil {
		return fmt.Errorf("keep the approval: %w", err)
	}
	if len(entries) >= maxRules {
		return hint.New(fmt.Errorf("keep the approval: there are %d already", len(entries)),
			"see them with aileron approval list, and remove some with aileron approval revoke ID")
	}
	rule.Session = ""
	raw, err := json.MarshalIndent(ruleFile{ruleFormat, rule}, "", "  ")
	if err != nil {
		return err
	}
	if err := durable.Replace(r.path(rule.ID), append(raw, '\n')); err != nil {
		return fmt.Errorf("keep the approval: %w", err)
	}
	return nil
}

// Get returns the decision of an id. The error is one that [fs.ErrNotExist] matches if there is none.
func (r Rules) Get(id string) (approval.Rule, error) {
	if !audit.IsID(id) {
		return approval.Rule{}, fs.ErrNotExist
	}
	return r.read(id)
}

// Broken reports whether there is a file of an id that cannot be read. It decides nothing, and can be dropped.
func (r Rules) Broken(id string) bool {
	_, err := r.Get(id)
	return err != nil && !errors.Is(err, fs.ErrNotExist)
}

// Drop removes a decision. Running sessions ask anew from the next request on. The error is one that [fs.ErrNotExist]
// matches if there is none.
func (r Rules) Drop(id string) error {
	if !audit.IsID(id) {
		return fs.ErrNotExist
	}
	if err := os.Remove(r.path(id)); err != nil {
		return err
	}
	return durable.SyncDir(r.dir)
}
