package judge

import (
	"encoding/json"
	"testing"
)

// FuzzText holds the strings of bodies to what encoding/json reads.
func FuzzText(f *testing.F) {
	for _, s := range []string{`"a"`, `""`, `"\"\\\/\b\f\n\r\t"`, `"a\nb\u0041"`, `"\ud83d\ude00"`, `"\ud83d\n"`,
		`"\u0000"`, `"é\n"`, "\"\ufffd\"", "\"\ufffd\\n\"", `"\\n"`, `"\\\\u0041"`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		var want string
		if checkJSON(raw) != nil || raw[0] != '"' || raw[len(raw)-1] != '"' || json.Unmarshal(raw, &want) != nil {
			return
		}
		if got, ok := text(raw); ok && got != want {
			t.Errorf("%q is %q, and encoding/json reads %q", raw, got, want)
		}
	})
}
