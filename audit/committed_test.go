package audit

import (
	"encoding/json"
	"path/filepath"
	"reflect"
	"testing"
)

// OnCommitted gets each row of the log once, in its order, with its number and hash: those of the journal, those that
// were committed at once, and signed heads.
func TestEveryCommittedRowIsPassedOnOnce(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "audit.db")
	session := NewID()
	var got []Row
	l, err := Open(path, Options{Session: session, OnCommitted: func(r Row, fields string) {
		if r.Fields != nil {
			t.Errorf("row %d has a map, which is the log's", r.Seq)
		}
		if err := json.Unmarshal([]byte(fields), &r.Fields); err != nil {
			t.Errorf("row %d has the fields %q: %v", r.Seq, fields, err)
		}
		r.RequestID = ""
		got = append(got, r)
	}})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range []Row{
		{Event: EventSessionStarted, SessionID: session, Source: SourceLauncher, Fields: map[string]any{"pid": 1}},
		{Event: EventProxyStarted, SessionID: session, Source: SourceConnectTLS, Host: "a.example", RequestID: NewID()},
		{Event: EventProxyProxied, SessionID: session, Source: SourceConnectTLS, Path: "/\u2028\"", RequestID: NewID()},
	} {
		if _, err := l.Append(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.AppendSoon(t.Context(),
		Row{Event: EventSessionEnded, SessionID: session, Source: SourceLauncher}); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	reader, err := OpenReader(path)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	want, err := reader.List(t.Context(), Filter{})
	if err != nil {
		t.Fatal(err)
	}
	if len(want) != 5 || want[4].Event != EventCheckpoint || !reflect.DeepEqual(got, want) {
		t.Errorf("the rows passed on are\n%+v\nand the log has\n%+v", got, want)
	}
}
