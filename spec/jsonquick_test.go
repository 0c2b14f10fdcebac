package spec

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
)

// quickAgrees reports what differs between the two readers: what the quick one takes is what the strict decoder reads,
// without a mistake.
func quickAgrees(text string) string {
	quick, ok := readQuickly(text)
	if !ok {
		return ""
	}
	var d diagnostics
	if v, ok := readForMistakes([]byte(text), &d); !ok || len(d.list) > 0 || !reflect.DeepEqual(v, quick) {
		return fmt.Sprintf("the quick reader has %#v, the decoder %#v, %v, %v", quick, v, ok, d.list)
	}
	return ""
}

func TestTheQuickReaderTakesWhatIsRight(t *testing.T) {
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
		if _, ok := readQuickly(text); !ok {
			t.Errorf("%.60q is left to the decoder", text)
		}
		if why := quickAgrees(text); why != "" {
			t.Errorf("%.60q: %s", text, why)
		}
	}
	for _, text := range []string{
		``, ` `, `{`, `[1,]`, `[,1]`, `{,}`, `{"a":1,}`, `{"a" 1}`, `{a:1}`, `[1 2]`, `{"a":1 "b":2}`, `[}`, `{]`, `"x`, `"\`,
		`"\x"`, "\"\n\"", "\"\x00\"", `tru`, `nul`, `01`, `-`, `+1`, `.5`, `1.`, `1e`, `1e+`, `--1`, `0x1`, `1_0`, `NaN`,
		`1 2`, `{} x`, `{"a":1,"a":1}`, `{"a":1,"\u0061":1}`, `{"b":{"a":1,"a":1}}`,
		"{" + many + `,"k3":0}`, "{" + many + `,"x":0,"x":0}`,
		"\ufeff{}", "\v[]", strings.Repeat("[", maxDepth+2) + strings.Repeat("]", maxDepth+2),
	} {
		if v, ok := readQuickly(text); ok {
			t.Errorf("%.60q is read as %#v", text, v)
		}
	}
}

func FuzzQuickReader(f *testing.F) {
	f.Add(specWith(goodFields))
	f.Add(`{"a": [1, -2.5e3, "\u0061", null, true], "a": {"b": false}}`)
	f.Fuzz(func(t *testing.T, text string) {
		if why := quickAgrees(strings.ToValidUTF8(text, "")); why != "" {
			t.Errorf("%q: %s", text, why)
		}
	})
}
