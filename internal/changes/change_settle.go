package changes

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/internal/format"
	"github.com/ALRubinger/aileron/spec/action"
	"github.com/ALRubinger/aileron/spec/signature"
	"github.com/ALRubinger/aileron/vault"
)

// ReasonInterrupted is the reason of a change whose command was killed before it acted.
const ReasonInterrupted = "interrupted"

// SettleChanges records the outcome of changes whose command was killed: what is in force then shows whether it had
// acted. Every command begins with it. What cannot be settled now is left to the next command.
func (r *Recorder) SettleChanges(ctx context.Context) {
	home, err := r.HomePath()
	if err != nil {
		return // the command itself reports it
	}
	paths, _ := filepath.Glob(filepath.Join(globLiteral(home), "changes", "*.json"))
	for _, path := range paths {
		if err := r.settleChange(ctx, home, path); err != nil {
			r.Warnf("aileron: warning: the outcome of an interrupted change is not recorded yet: %v", err)
			return
		}
	}
}

// settleChange settles one change, unless its command still runs.
func (r *Recorder) settleChange(ctx context.Context, home, path string) error {
	lock, err := r.Locks.Lock(path, unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) || errors.Is(err, fs.ErrNotExist) {
		return nil // its command runs, or another one has settled it
	}
	if err != nil {
		return err
	}
	defer lock.Close()
	f, begun, err := readChangeFile(lock, path)
	if err != nil {
		return err
	}
	if begun {
		if err := r.recordInterrupted(ctx, home, f); err != nil {
			return err
		}
	}
	return os.Remove(path)
}

// maxChangeFile bounds what is read of a change's file.
const maxChangeFile = 64 << 10

// readChangeFile reads the file of a change. begun is false if the file is incomplete: then the intent was not recorded
// either.
func readChangeFile(from io.Reader, path string) (f changeFile, begun bool, err error) {
	raw, err := io.ReadAll(io.LimitReader(from, maxChangeFile))
	if err != nil {
		return f, false, fmt.Errorf("read %s: %w", path, err)
	}
	if err := format.CheckJSON(raw, path, changeFormat); err != nil {
		return f, false, err
	}
	if json.Unmarshal(raw, &f) != nil || f.Change.Done() == "" {
		return f, false, nil //nolint:nilerr // a file cut short is settled as no change
	}
	return f, true, nil
}

// recordInterrupted records the outcome of a change whose command was killed, unless the log has it, or lacks even the
// intent.
func (r *Recorder) recordInterrupted(ctx context.Context, home string, f changeFile) error {
	log, err := r.OpenLog(home)
	if err != nil {
		return err
	}
	defer log.Close()
	if begun, err := hasRow(ctx, log, f.Intent); err != nil || !begun {
		return err
	}
	if ended, err := hasRow(ctx, log, f.Outcome); err != nil || ended {
		return err
	}
	done, err := r.tookEffect(f)
	if err != nil {
		return err
	}
	event, reason, state := f.Change.Done(), "", "took effect"
	if !done {
		event, reason, state = f.Change.Failed(), ReasonInterrupted, "did not take effect"
	}
	row := f.change().row(f.Outcome, event, reason, map[string]any{"request_id": f.Request, "interrupted": true})
	if _, err := log.Append(context.WithoutCancel(ctx), row); err != nil {
		return err
	}
	r.Warnf("aileron: %s was interrupted and %s; its outcome is recorded now",
		strings.TrimSpace(string(f.Change)+" "+cmp.Or(f.Connector, f.Binding)), state)
	return nil
}

func hasRow(ctx context.Context, log *audit.Log, id string) (bool, error) {
	_, err := log.Get(ctx, id)
	if errors.Is(err, audit.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// tookEffect reports whether a change is in force.
func (r *Recorder) tookEffect(f changeFile) (bool, error) {
	if f.Action != "" {
		return r.actionChangeTookEffect(f)
	}
	if f.Hash != "" {
		s, err := r.OpenStore()
		if err != nil {
			return false, err
		}
		there, err := s.Has(f.Hash)
		return there == (f.Change == audit.ChangeConnectorInstall), err
	}
	if f.Authority != "" {
		return r.keyChangeTookEffect(f)
	}
	v, err := r.VaultOf()
	if err != nil {
		return false, err
	}
	switch f.Change {
	case audit.ChangeBindingSetup, audit.ChangeBindingRevoke:
		there, err := v.Has(f.Binding)
		return there == (f.Change == audit.ChangeBindingSetup), err
	case audit.ChangeBindingRebind:
		now, err := v.Digest(f.Binding)
		return now != "" && now != f.Before, err
	case audit.ChangeVaultPasswd, audit.ChangeVaultInit:
		now, err := v.Digest(vault.Identity)
		return now != "" && now != f.Before, err
	case audit.ChangeVaultUnlock, audit.ChangeVaultLock:
		locked, err := v.LockState()
		return locked == (f.Change == audit.ChangeVaultLock), err
	}
	return false, fmt.Errorf("settle %s: it is no change of this version", f.Change)
}

// keyChangeTookEffect is tookEffect for a change of publishers' keys.
func (r *Recorder) keyChangeTookEffect(f changeFile) (bool, error) {
	keys, err := r.PublisherKeys()
	if err != nil {
		return false, err
	}
	known, err := keys.Of(signature.Authority(f.Authority))
	if err != nil {
		return false, err
	}
	there := known.Signs()
	if f.KeyID != "" {
		there = slices.ContainsFunc(known.Keys, func(k signature.Known) bool { return k.Key.ID().String() == f.KeyID })
	}
	return there == (f.Change == audit.ChangePublisherKeyAdd), nil
}

// globLiteral returns a pattern that matches exactly path.
func globLiteral(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}

// actionChangeTookEffect reports whether an interrupted change of an action is in force.
func (r *Recorder) actionChangeTookEffect(f changeFile) (bool, error) {
	l, err := r.Actions()
	if err != nil {
		return false, err
	}
	there, err := l.Find(f.Action)
	switch {
	case errors.Is(err, action.ErrNotAdded):
		return f.Change == "action.remove", nil
	case err != nil:
		return false, err
	}
	return f.Change == "action.add" && there.Action != nil && there.Action.Hash == f.Hash, nil
}
