package changes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/internal/failure"
	"github.com/ALRubinger/aileron/internal/filelock"
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

func newChangeFile(c Change) changeFile {
	hash, _ := c.About.Fields["hash"].(string)
	authority, _ := c.About.Fields["authority"].(string)
	keyID, _ := c.About.Fields["key_id"].(string)
	action, _ := c.About.Fields["action"].(string)
	actionVersion, _ := c.About.Fields["action_version"].(string)
	return changeFile{Format: changeFormat, Change: c.What,
		Request: audit.NewID(), Intent: audit.NewID(), Outcome: audit.NewID(),
		Connector: c.About.ConnectorFQN, Version: c.About.ConnectorVersion, Hash: hash,
		Binding: c.About.Binding, Before: c.Before, Authority: authority, KeyID: keyID,
		Action: action, ActionVersion: actionVersion}
}

// change returns the change that the file describes: the reverse of newChangeFile.
func (f changeFile) change() Change {
	about := audit.Row{ConnectorFQN: f.Connector, ConnectorVersion: f.Version, Binding: f.Binding,
		Fields: map[string]any{}}
	c := Change{What: f.Change, Before: f.Before, About: about}
	for name, value := range map[string]string{"hash": f.Hash, "authority": f.Authority, "key_id": f.KeyID,
		"action": f.Action, "action_version": f.ActionVersion} {
		if value != "" {
			c.About.Fields[name] = value
		}
	}
	return c
}

// PendingChange is a change under way: its file is locked, and its intent is in the log.
type PendingChange struct {
	changeFile
	c    Change
	Path string
	Lock *os.File
}

// BeginChange writes the file of c and commits its intent.
func BeginChange(ctx context.Context, locks filelock.Locker, log *audit.Log, home string, c Change) (*PendingChange,
	error) {
	f := newChangeFile(c)
	dir := filepath.Join(home, "changes")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the directory of changes: %w", err)
	}
	p := &PendingChange{changeFile: f, c: c, Path: filepath.Join(dir, f.Request+".json")}
	raw, err := json.Marshal(f)
	if err != nil {
		return nil, err
	}
	if p.Lock, err = locks.LockNew(p.Path); err != nil {
		_ = os.Remove(p.Path) // a file that cannot be locked
		return nil, fmt.Errorf("lock the file of the change: %w", err)
	}
	_, err = p.Lock.Write(append(raw, '\n'))
	if err == nil {
		err = p.Lock.Sync()
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("write the file of the change: %w", err), p.drop())
	}
	intent := c.row(f.Intent, c.What.Started(), "", map[string]any{"request_id": f.Request})
	if _, err := log.Append(ctx, intent); err != nil {
		// The file stays: the row may be in the log all the same.
		return nil, errors.Join(err, p.Lock.Close())
	}
	return p, nil
}

// End commits the outcome of an act that returned actErr, and removes the file. If the outcome cannot be committed, it
// leaves the file to the next command.
func (p *PendingChange) End(ctx context.Context, log *audit.Log, actErr error) error {
	event, reason := p.c.What.Done(), ""
	if actErr != nil {
		event, reason = p.c.What.Failed(), failure.ReasonOf(actErr)
	}
	if _, err := log.Append(ctx, p.c.row(p.Outcome, event, reason, map[string]any{"request_id": p.Request})); err != nil {
		return errors.Join(err, p.Lock.Close())
	}
	return p.drop()
}

// drop removes the file, and only then releases its lock.
func (p *PendingChange) drop() error {
	return errors.Join(os.Remove(p.Path), p.Lock.Close())
}
