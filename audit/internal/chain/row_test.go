package chain

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/quick"
	"time"

	"github.com/ALRubinger/aileron/e2e/must"
)

// Times are stored as the time package formats them.
func TestTheTimeOfARowIsPlainRFC3339(t *testing.T) {
	check := func(at time.Time) bool { return string(AppendTime(nil, at)) == at.UTC().Format(TimeFormat) }
	if err := quick.Check(func(sec uint32, ns uint32) bool { return check(time.Unix(int64(sec), int64(ns))) },
		nil); err != nil {
		t.Error(err)
	}
	east := time.FixedZone("", 9*3600)
	for _, at := range []time.Time{{}, time.Date(9999, 12, 31, 23, 59, 59, 999999999, time.UTC),
		time.Date(2026, 1, 1, 1, 0, 0, 1, east),
		time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(-1, 1, 1, 0, 0, 0, 0, time.UTC)} {
		if !check(at) {
			t.Errorf("%s, want %s", AppendTime(nil, at), at.UTC().Format(TimeFormat))
		}
	}
}

func TestAnIDIsOneAllocation(t *testing.T) {
	seen := map[string]bool{}
	for range 10000 {
		id := NewID()
		at, ok := IdTime(id)
		if !ok || seen[id] || time.Since(at).Abs() > time.Minute {
			t.Fatalf("%s: %v, %v; seen before: %v", id, at, ok, seen[id])
		}
		seen[id] = true
	}
	if n := testing.AllocsPerRun(100, func() { _ = NewID() }); n > 1 {
		t.Errorf("%v allocations", n)
	}
}

// The row that is hashed is what encoding/json would write, whatever its columns are.
func TestTheCanonicalRowIsPlainJSON(t *testing.T) {
	same := func(r Row, name, value string, n int) bool {
		r.TS = time.Unix(int64(n), int64(n)).UTC()
		m := map[string]any{name: value, "n": n, "list": []string{value}, "none": []string(nil), "int64": int64(n),
			"yes": true}
		fields := must.Get(AppendObject(nil, m, value))(t)
		readable := func(text string) string { return strings.ToValidUTF8(text, "\ufffd") }
		delete(m, name)
		m["list"], m[readable(name)] = []string{readable(value)}, readable(value)
		if value != "" {
			m[RequestIDName] = readable(value)
		}
		want, err := json.Marshal(m)
		if err != nil || string(want) != string(fields) {
			t.Errorf("the fields are %s, want %s", fields, want)
		}
		type plain Row
		want = must.Get(json.Marshal(struct {
			plain
			TS       string          `json:"ts"`
			Fields   json.RawMessage `json:"fields"`
			PrevHash *string         `json:"prev_hash,omitempty"`
			Hash     *string         `json:"hash,omitempty"`
		}{plain: plain(r), TS: r.Stamp(), Fields: fields}))(t)
		got := r.Canonical(nil, string(fields))
		if string(got) != string(want) {
			t.Errorf("the row is\n%s, want\n%s", got, want)
		}
		return string(got) == string(want)
	}
	property := func(id, host, path, name, value string, seq, bytes int64, port, n int) bool {
		r := Row{Seq: seq, ID: id, Host: host, Path: path, Event: Event(value), ResponseBytes: bytes, Port: port}
		return same(r, name, value, n)
	}
	if err := quick.Check(property, nil); err != nil {
		t.Error(err)
	}
	for _, s := range []string{"", `a"b\c`, "<&>", "\x00\x1f\x7f", "é\u2028", "\xff\xfe", "/plain?x=~"} {
		same(Row{Host: s, Path: s}, s, s, 1)
	}
}

// What is read without a parser of JSON is read as that does, and what is not plain is left to it.
func TestAPlainRequestIDIsRead(t *testing.T) {
	for fields, want := range map[string]string{
		`{}`:                                 "",
		`{"request_id":"r1"}`:                "r1",
		`{"a":"b","request_id":"r1","n":12}`: "r1",
		`{"n":0,"a":"","m":-1}`:              "",
	} {
		if got, ok := PlainRequestID(fields); got != want || !ok {
			t.Errorf("PlainRequestID(%s) = %q, %t; want %q", fields, got, ok, want)
		}
	}
	for _, fields := range []string{
		"", "{", `{"`, `{"a`, `{"a"`, `{"a":`, `{"a":"`, `{"a":"b`, `{"a":"b"`, `{"a":"b",`, `{"a":"b"}}`,
		`{a:"b"}`, `{"a":"\u0062"}`, `{"a\n":"b"}`, `{"request_id":1}`, `{"n":01}`, `{"n":-}`, `{"n":-01}`, `{"n":true}`,
		`{"n":{}}`, `[]`,
	} {
		if got, ok := PlainRequestID(fields); got != "" || ok {
			t.Errorf("PlainRequestID(%s) = %q, %t; want none", fields, got, ok)
		}
	}
}

// What JSON cannot express is no row.
func TestAFieldThatJSONCannotExpressIsAnError(t *testing.T) {
	for _, bad := range []any{math.NaN(), make(chan int), map[string]any{"b": math.Inf(1)}, []any{math.NaN()}} {
		if out, err := AppendObject(nil, map[string]any{"a": bad}, "r1"); err == nil || out != nil {
			t.Errorf("AppendObject of %v = %q, %v; want an error", bad, out, err)
		}
	}
}

// The file of signed heads gets each one as its row has it.
func TestASignedHeadIsKeptInItsFile(t *testing.T) {
	db := filepath.Join(t.TempDir(), "audit.db")
	s := &HeadSigner{Path: db}
	defer s.Close()
	for _, head := range []string{"one\n", "two\n"} {
		s.Keep(&Row{Fields: map[string]any{CheckpointField: head}})
	}
	if got := string(must.Get(os.ReadFile(SignedHeadsPath(db)))(t)); got != "one\n\ntwo\n\n" {
		t.Errorf("the file has %q", got)
	}
}
