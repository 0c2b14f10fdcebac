package audit

import (
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/oklog/ulid/v2"
)

// maxOpen bounds the intents without an outcome that are in memory.
const maxOpen = 1 << 16

// ReasonSessionKilled is the Row.Reason of EventProxyUnknown.
const ReasonSessionKilled = "session_killed"

// notKnown returns the columns that a row of EventProxyUnknown cannot have.
func notKnown() []string {
	return []string{"sent", "status", "request_bytes", "response_bytes", "redactions", "duration_us"}
}

// openIntents is the set of the intents without an outcome so far.
type openIntents struct {
	seqs map[[16]byte]int64
	most int
	full int64 // the first intent that did not fit; 0: all did
}

func newOpenIntents(most int) *openIntents {
	return &openIntents{seqs: map[[16]byte]int64{}, most: most}
}

// add processes the next row of the log.
func (o *openIntents) add(seq int64, event Event, request string) {
	if request == "" {
		return
	}
	key := requestKey(request)
	switch {
	case event != EventProxyStarted:
		delete(o.seqs, key)
	case o.full > 0:
	case len(o.seqs) == o.most:
		o.full = seq
	default:
		o.seqs[key] = seq
	}
}

// requestKey returns a request's id in 16 bytes.
func requestKey(id string) [16]byte {
	if u, err := ulid.ParseStrict(id); err == nil {
		return u
	}
	sum := sha256.Sum256([]byte(id))
	return [16]byte(sum[:16])
}

// CloseKilled adds an EventProxyUnknown for each intent without an outcome of a session whose process is gone. It
// returns their number, and whether the session has its EventSessionEnded. The caller must make sure that the session
// has ended and that no other process closes it meanwhile. After an error, calling it again adds the missing rows.
func (l *Log) CloseKilled(ctx context.Context, session string) (unknown int, ended bool, err error) {
	return l.closeKilled(ctx, session, maxOpen)
}

func (l *Log) closeKilled(ctx context.Context, session string, most int) (unknown int, ended bool, err error) {
	l.flush(ctx)
	from, err := l.firstOf(ctx, session)
	for err == nil && from > 0 {
		var o *openIntents
		if o, ended, err = l.openOf(ctx, session, from, most); err != nil {
			break
		}
		seqs := slices.Sorted(maps.Values(o.seqs))
		for group := range slices.Chunk(seqs, maxGroup) {
			if err = l.addUnknown(ctx, group); err != nil {
				return unknown, ended, err
			}
			unknown += len(group)
		}
		from = o.full
	}
	if err != nil {
		return unknown, ended, fmt.Errorf("close the session %s: %w", session, err)
	}
	return unknown, ended, nil
}

// OpenIntents returns how many intents of a session have no outcome. Above 65536, it returns at least that number.
func (l *Log) OpenIntents(ctx context.Context, session string) (int, error) {
	l.flush(ctx)
	from, err := l.firstOf(ctx, session)
	if err != nil || from == 0 {
		return 0, err
	}
	o, _, err := l.openOf(ctx, session, from, maxOpen)
	if err != nil {
		return 0, err
	}
	return len(o.seqs), nil
}

// firstOf returns the number of a session's first row; 0 if there is none. The search begins at the time in the
// session's id.
func (l *Log) firstOf(ctx context.Context, session string) (seq int64, err error) {
	var event Event
	search := func(after int64) error {
		filter := Filter{Session: session, AfterSeq: after, Limit: 1}
		return l.each(ctx, filter, "seq, event", func(s scanner) error { return s.Scan(&seq, &event) })
	}
	from := int64(1)
	if began, ok := idTime(session); ok {
		if from, err = l.seqAt(ctx, began.Add(-idSlack)); err != nil {
			return 0, err
		}
	}
	err = search(from - 1)
	if err == nil && from > 1 && event != EventSessionStarted { // a clock was set meanwhile
		err = search(0)
	}
	return seq, err
}

// openOf returns the intents of a session without an outcome, from row from on.
func (l *Log) openOf(
	ctx context.Context, session string, from int64, most int,
) (o *openIntents, ended bool, err error) {
	const what = "seq, event, COALESCE(CASE WHEN json_valid(fields) THEN " +
		"json_extract(fields, '$.request_id') END, '')"
	o = newOpenIntents(most)
	err = l.each(ctx, Filter{Session: session, AfterSeq: from - 1}, what, func(s scanner) error {
		var seq int64
		var event Event
		var request string
		if err := s.Scan(&seq, &event, &request); err != nil {
			return fmt.Errorf("read the audit log: %w", err)
		}
		ended = ended || event == EventSessionEnded
		o.add(seq, event, request)
		return nil
	})
	return o, ended, err
}

// addUnknown commits unknown outcomes of the intents with these numbers.
func (l *Log) addUnknown(ctx context.Context, seqs []int64) error {
	group := make([]*Row, 0, len(seqs))
	for _, seq := range seqs {
		intent, _, err := scan(l.database().QueryRowContext(ctx, "SELECT "+columns+" FROM events WHERE seq = ?", seq))
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
	delete(r.Fields, fieldSpilled) // it is the intent's
	r.Fields["intent_id"], r.Fields["intent_seq"] = intent.ID, intent.Seq
	r.Fields["sent"] = "none, a part or all of the request"
	if intent.Binding != "" {
		r.Fields["sent"] = "none, a part or all of the request, with its credential"
	}
	r.Fields["not_known"] = notKnown()
	return &r
}
