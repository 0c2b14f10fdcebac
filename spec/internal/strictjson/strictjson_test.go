package strictjson

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
)

const maxDepth = 16

// misread reports what differs between the reader and encoding/json: what the first takes is what the second reads.
// ok reports that it takes the text, without a mistake.
func misread(text string) (why string, ok bool) {
	var reported []string
	v, whole := Read([]byte(text), Bounds{1 << 20, maxDepth}, func(_, message string) {
		reported = append(reported, message)
	})
	if ok = whole && len(reported) == 0; !ok {
		if len(reported) == 0 {
			why = "it is refused without a reason"
		}
		return why, false
	}
	dec := json.NewDecoder(strings.NewReader(text))
	dec.UseNumber()
	var want any
	if err := dec.Decode(&want); err != nil || !json.Valid([]byte(text)) || !reflect.DeepEqual(Plain(v), want) {
		return fmt.Sprintf("it is read as %#v, and by encoding/json as %#v, %v", v, want, err), true
	}
	return "", true
}

func TestTheReaderTakesWhatIsRight(t *testing.T) {
	t.Parallel()
	keys := make([]string, 40)
	for i := range keys {
		keys[i] = fmt.Sprintf(`"k%d": %d`, i, i)
	}
	many := strings.Join(keys, ",")
	for _, text := range []string{
		`{}`, ` [ ] `, `"x"`, `null`, `true`, `[false, null]`, `{"a":{"b":[1,"2",{}]},"A":[]}`,
		`[0, -0, 10, 0.5, -1.25e+10, 1E5, 1e-7]`, `"a\u00e9\n\"\\\/ \ud83d\ude00 \ud800"`, `{"a\u0062": "é\\"}`,
		"\t{\r\n\"a\" : 1 }\n", "{" + many + "}", strings.Repeat("[", maxDepth) + strings.Repeat("]", maxDepth),
	} {
		if why, ok := misread(text); why != "" || !ok {
			t.Errorf("%.60q: read = %v, %s", text, ok, why)
		}
	}
	for _, text := range []string{
		``, ` `, `{`, `[1,]`, `[,1]`, `{,}`, `{"a":1,}`, `{"a" 1}`, `{a:1}`, `[1 2]`, `{"a":1 "b":2}`, `[}`, `{]`, `"x`, `"\`,
		`"\x"`, "\"\n\"", "\"\x00\"", `tru`, `nul`, `01`, `-`, `+1`, `.5`, `1.`, `1e`, `1e+`, `--1`, `0x1`, `1_0`, `NaN`,
		`1 2`, `{} x`, `{"a":1,"a":1}`, `{"a":1,"\u0061":1}`, `{"b":{"a":1,"a":1}}`,
		"{" + many + `,"k3":0}`, "{" + many + `,"x":0,"x":0}`,
		"\ufeff{}", "\v[]", strings.Repeat("[", maxDepth+2) + strings.Repeat("]", maxDepth+2),
	} {
		if why, ok := misread(text); why != "" || ok {
			t.Errorf("%.60q: read = %v, %s", text, ok, why)
		}
	}
}

func FuzzReader(f *testing.F) {
	f.Add(`{"schema_version": "1", "tools": [{"name": "t", "operations": [{"hosts": ["a.example"]}]}]}`)
	f.Add(`{"a": [1, -2.5e3, "\u0061", null, true], "a": {"b": false}}`)
	f.Fuzz(func(t *testing.T, text string) {
		if why, _ := misread(strings.ToValidUTF8(text, "")); why != "" {
			t.Errorf("%q: %s", text, why)
		}
	})
}
