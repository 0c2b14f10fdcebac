package audit

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/ALRubinger/aileron/audit/internal/chain"
)

// ReasonSessionKilled is the Row.Reason of EventProxyUnknown.
const ReasonSessionKilled = "session_killed"

// notKnown returns the columns that a row of EventProxyUnknown cannot have.
func notKnown() []string {
	return []string{"sent", "status", "request_bytes", "response_bytes", "redactions", "duration_us"}
}

// CloseKilled adds an EventProxyUnknown for each intent without an outcome of a session whose process is gone. It
// returns their number, and whether the session has its EventSessionEnded. The caller must make sure that the session
// has ended and that no other process closes it meanwhile. After an error, calling it again adds the missing rows.
func (l *Log) CloseKilled(ctx context.Context, session string) (unknown int, ended bool, err error) {
	return l.closeKilled(ctx, session, chain.MaxOpen)
}

func (l *Log) closeKilled(ctx context.Context, session string, most int) (unknown int, ended bool, err error) {
	l.flush(ctx)
	from, err := l.db.FirstOf(ctx, session)
	for err == nil && from > 0 {
		var o *chain.OpenIntents
		if o, ended, err = l.db.OpenOf(ctx, session, from, most); err != nil {
			break
		}
		seqs := slices.Sorted(maps.Values(o.Seqs))
		for group := range slices.Chunk(seqs, maxGroup) {
			if err = l.addUnknown(ctx, group); err != nil {
				return unknown, ended, err
			}
			unknown += len(group)
		}
		from = o.Full
	}
	if err != nil {
		return unknown, ended, fmt.Errorf("close the session %s: %w", session, err)
	}
	return unknown, ended, nil
}

// OpenIntents returns how many intents of a session have no outcome. Above 65536, it returns at least that number.
func (l *Log) OpenIntents(ctx context.Context, session string) (int, error) {
	l.flush(ctx)
	from, err := l.db.FirstOf(ctx, session)
	if err != nil || from == 0 {
		return 0, err
	}
	o, _, err := l.db.OpenOf(ctx, session, from, chain.MaxOpen)
	if err != nil {
		return 0, err
	}
	return len(o.Seqs), nil
}

// addUnknown commits unknown outcomes of the intents with these numbers.
func (l *Log) addUnknown(ctx context.Context, seqs []int64) error {
	group := make([]*Row, 0, len(seqs))
	for _, seq := range seqs {
		intent, err := l.db.Row(ctx, seq)
		if err != nil {
			return err
		}
		group = append(group, unknownOutcome(intent))
	}
	return l.appendAll(ctx, group)
}

// unknownOutcome returns the outcome of an intent whose session was killed.
func unknownOutcome(intent Row) *Row {
	r := intent
	r.Seq, r.PrevHash, r.Hash = 0, "", ""
	r.ID, r.TS, r.Event, r.Reason = NewID(), time.Now(), EventProxyUnknown, ReasonSessionKilled
	r.Fields = maps.Clone(intent.Fields)
	delete(r.Fields, chain.FieldSpilled) // it is the intent's
	r.Fields["intent_id"], r.Fields["intent_seq"] = intent.ID, intent.Seq
	r.Fields["sent"] = "none, a part or all of the request"
	if intent.Binding != "" {
		r.Fields["sent"] = "none, a part or all of the request, with its credential"
	}
	r.Fields["not_known"] = notKnown()
	return &r
}
