package audit

import (
	"encoding/json"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
)

// OnCommitted gets each row of the log once, in its order, with its number and hash: those of the journal, those that
// were committed at once, and signed heads.
func TestEveryCommittedRowIsPassedOnOnce(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "audit.db")
	session := NewID()
	var got []Row
	l := must.Get(Open(path, Options{Session: session, OnCommitted: func(r Row, fields string) {
		if r.Fields != nil {
			t.Errorf("row %d has a map, which is the log's", r.Seq)
		}
		if err := json.Unmarshal([]byte(fields), &r.Fields); err != nil {
			t.Errorf("row %d has the fields %q: %v", r.Seq, fields, err)
		}
		r.RequestID = ""
		got = append(got, r)
	}}))(t)
	for _, r := range []Row{
		{Event: EventSessionStarted, SessionID: session, Source: SourceLauncher, Fields: map[string]any{"pid": 1}},
		{Event: EventProxyStarted, SessionID: session, Source: SourceConnectTLS, Host: "a.example", RequestID: NewID()},
		{Event: EventProxyProxied, SessionID: session, Source: SourceConnectTLS, Path: "/\u2028\"", RequestID: NewID()},
	} {
		must.Get(l.Append(t.Context(), r))(t)
	}
	must.Do(t, l.AppendSoon(t.Context(),
		Row{Event: EventSessionEnded, SessionID: session, Source: SourceLauncher}))
	must.Do(t, l.Close())
	reader := must.Get(OpenReader(path))(t)
	defer reader.Close()
	want := must.Get(reader.List(t.Context(), Filter{}))(t)
	if len(want) != 5 || want[4].Event != EventCheckpoint || !reflect.DeepEqual(got, want) {
		t.Errorf("the rows passed on are\n%+v\nand the log has\n%+v", got, want)
	}
}
