package review

import (
	"context"
	"errors"

	"github.com/ALRubinger/aileron/audit"
)

// Story is one event with what belongs to it.
type Story struct {
	Row   audit.Row
	Agent string // of its session

	Intent  *audit.Row // of the same request; nil: it has none, or Row is it
	Outcome *audit.Row // of the same request; nil: it has none, or Row is it

	ConnectorHash string     // of the connector that was in force; "" if the log does not have it
	HashSource    *audit.Row // the row that has ConnectorHash; nil: none has

	// What the log does not have; a caller that knows them sets them before [Story.Lines].
	Slot string // where the credential was put, such as ", in header Authorization"
	Why  string // the reason of a denial in words
}

// Tell returns the story of a row.
func Tell(ctx context.Context, l Log, r audit.Row) (Story, error) {
	agents := Agents{Open: func() (Log, error) { return l, nil }}
	s := Story{Row: r, Agent: agents.Of(ctx, r)}
	other, err := Other(ctx, l, r)
	if err != nil {
		return s, err
	}
	switch {
	case other == nil:
	case other.Event == audit.EventProxyStarted:
		s.Intent = other
	default:
		s.Outcome = other
	}
	return s, s.findHash(ctx, l)
}

// errFound ends an iteration.
var errFound = errors.New("found")

// Other returns the other row of a row's request: the outcome of an intent, or the intent of an outcome. It is nil if
// there is none.
func Other(ctx context.Context, l Log, r audit.Row) (*audit.Row, error) {
	request, _ := r.Fields["request_id"].(string)
	if request == "" || r.SessionID == "" {
		return nil, nil //nolint:nilnil // it is of no request
	}
	var found *audit.Row
	look := func(other audit.Row) error {
		if id, _ := other.Fields["request_id"].(string); id != request || other.ID == r.ID {
			return nil
		}
		found = &other
		return errFound
	}
	each := func(filter audit.Filter) error {
		if err := l.Each(ctx, filter, look); !errors.Is(err, errFound) {
			return err
		}
		return nil
	}
	if r.Event == audit.EventProxyStarted {
		err := each(audit.Filter{Session: r.SessionID, Host: r.Host, AfterSeq: r.Seq})
		return found, err
	}
	before := audit.Filter{Session: r.SessionID, Host: r.Host, Event: audit.EventProxyStarted, ThroughSeq: r.Seq,
		Newest: true}
	var err error
	for _, before.Limit = range []int{64, 4096, 0} { // an intent is mostly a few rows before its outcome
		if err = each(before); err != nil || found != nil {
			break
		}
	}
	return found, err
}

// findHash finds the content hash of the connector: as the session had it in force, or as it was installed.
func (s *Story) findHash(ctx context.Context, l Log) error {
	r := s.Row
	if r.ConnectorFQN == "" || r.SessionID == "" {
		return nil
	}
	take := func(row audit.Row, hash string) {
		if hash != "" {
			s.ConnectorHash, s.HashSource = hash, &row
		}
	}
	start, err := l.SessionStart(ctx, r.SessionID)
	if err == nil {
		take(start, grantedHash(start.Fields["grants"], r))
	} else if !errors.Is(err, audit.ErrNotFound) {
		return err
	}
	changed := audit.Filter{Session: r.SessionID, Event: audit.EventSessionGrantsChanged, ThroughSeq: r.Seq}
	err = l.Each(ctx, changed, func(row audit.Row) error {
		take(row, grantedHash(row.Fields["added"], r))
		return nil
	})
	if err != nil || s.ConnectorHash != "" {
		return err
	}
	installed := audit.Filter{Connector: r.ConnectorFQN, Event: audit.EventConnectorInstalled, ThroughSeq: r.Seq}
	return l.Each(ctx, installed, func(row audit.Row) error {
		if hash, _ := row.Fields["hash"].(string); row.ConnectorVersion == r.ConnectorVersion {
			take(row, hash)
		}
		return nil
	})
}

// grantedHash returns the hash of a row's connector in the grants of another row, or "".
func grantedHash(grants any, r audit.Row) string {
	list, _ := grants.([]any)
	for _, g := range list {
		grant, _ := g.(map[string]any)
		if grant["connector"] == r.ConnectorFQN && grant["version"] == r.ConnectorVersion {
			hash, _ := grant["hash"].(string)
			return hash
		}
	}
	return ""
}
