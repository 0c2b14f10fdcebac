package audit

import (
	"encoding/json"
	"testing"
	"testing/quick"
	"time"
)

// The row that is hashed is what encoding/json would write, whatever its columns are.
func TestTheCanonicalRowIsPlainJSON(t *testing.T) {
	same := func(r Row, name, value string, n int) bool {
		r.TS = time.Unix(int64(n), int64(n)).UTC()
		fields, err := appendObject(nil, map[string]any{name: value, "n": n, "list": []string{value}})
		if err != nil {
			t.Fatal(err)
		}
		want, err := json.Marshal(map[string]any{name: value, "n": n, "list": []string{value}})
		if err != nil || string(want) != string(fields) {
			t.Errorf("the fields are %s, want %s", fields, want)
		}
		type plain Row
		want, err = json.Marshal(struct {
			plain
			TS       string          `json:"ts"`
			Fields   json.RawMessage `json:"fields"`
			PrevHash *string         `json:"prev_hash,omitempty"`
			Hash     *string         `json:"hash,omitempty"`
		}{plain: plain(r), TS: r.stamp(), Fields: fields})
		if err != nil {
			t.Fatal(err)
		}
		got := r.canonical(nil, string(fields))
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
