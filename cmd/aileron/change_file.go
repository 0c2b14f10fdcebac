package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/ALRubinger/aileron/audit"
)

// changeFormat is the version of <home>/changes/*.json.
const changeFormat = 1

// changeFile is <home>/changes/<id>.json: a change whose outcome is not in the audit log yet. The process that makes
// the change holds a lock on the file; a file that no process has locked is a killed command's.
type changeFile struct {
	Format    int          `json:"format"`
	Change    audit.Change `json:"change"`
	Request   string       `json:"request_id"`
	Intent    string       `json:"intent"`  // ids of the two rows
	Outcome   string       `json:"outcome"` // of success or failure
	Connector string       `json:"connector_fqn,omitempty"`
	Version   string       `json:"connector_version,omitempty"`
	Hash      string       `json:"hash,omitempty"`
	Binding   string       `json:"binding,omitempty"`
	Before    string       `json:"before,omitempty"`
	Authority string       `json:"authority,omitempty"`
	KeyID     string       `json:"key_id,omitempty"`
	Action    string       `json:"action,omitempty"`

	ActionVersion string `json:"action_version,omitempty"`
}

func newChangeFile(c change) changeFile {
	hash, _ := c.about.Fields["hash"].(string)
	authority, _ := c.about.Fields["authority"].(string)
	keyID, _ := c.about.Fields["key_id"].(string)
	action, _ := c.about.Fields["action"].(string)
	actionVersion, _ := c.about.Fields["action_version"].(string)
	return changeFile{Format: changeFormat, Change: c.what,
		Request: audit.NewID(), Intent: audit.NewID(), Outcome: audit.NewID(),
		Connector: c.about.ConnectorFQN, Version: c.about.ConnectorVersion, Hash: hash,
		Binding: c.about.Binding, Before: c.before, Authority: authority, KeyID: keyID,
		Action: action, ActionVersion: actionVersion}
}

// change returns the change that the file describes: the reverse of newChangeFile.
func (f changeFile) change() change {
	about := audit.Row{ConnectorFQN: f.Connector, ConnectorVersion: f.Version, Binding: f.Binding,
		Fields: map[string]any{}}
	c := change{what: f.Change, before: f.Before, about: about}
	for name, value := range map[string]string{"hash": f.Hash, "authority": f.Authority, "key_id": f.KeyID,
		"action": f.Action, "action_version": f.ActionVersion} {
		if value != "" {
			c.about.Fields[name] = value
		}
	}
	return c
}

// pendingChange is a change under way: its file is locked, and its intent is in the log.
type pendingChange struct {
	changeFile
	c    change
	path string
	lock *os.File
}

// beginChange writes the file of c and commits its intent.
func beginChange(ctx context.Context, a *app, log *audit.Log, home string, c change) (*pendingChange, error) {
	f := newChangeFile(c)
	dir := filepath.Join(home, "changes")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the directory of changes: %w", err)
	}
	p := &pendingChange{changeFile: f, c: c, path: filepath.Join(dir, f.Request+".json")}
	raw, err := json.Marshal(f)
	if err != nil {
		return nil, err
	}
	if p.lock, err = a.locks.LockNew(p.path); err != nil {
		_ = os.Remove(p.path) // a file that cannot be locked
		return nil, fmt.Errorf("lock the file of the change: %w", err)
	}
	_, err = p.lock.Write(append(raw, '\n'))
	if err == nil {
		err = p.lock.Sync()
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("write the file of the change: %w", err), p.drop())
	}
	intent := c.row(f.Intent, c.what.Started(), "", map[string]any{"request_id": f.Request})
	if _, err := log.Append(ctx, intent); err != nil {
		// The file stays: the row may be in the log all the same.
		return nil, errors.Join(err, p.lock.Close())
	}
	return p, nil
}

// end commits the outcome of an act that returned actErr, and removes the file. If the outcome cannot be committed, it
// leaves the file to the next command.
func (p *pendingChange) end(ctx context.Context, log *audit.Log, actErr error) error {
	event, reason := p.c.what.Done(), ""
	if actErr != nil {
		event, reason = p.c.what.Failed(), reasonOf(actErr)
	}
	if _, err := log.Append(ctx, p.c.row(p.Outcome, event, reason, map[string]any{"request_id": p.Request})); err != nil {
		return errors.Join(err, p.lock.Close())
	}
	return p.drop()
}

// drop removes the file, and only then releases its lock.
func (p *pendingChange) drop() error {
	return errors.Join(os.Remove(p.path), p.lock.Close())
}
