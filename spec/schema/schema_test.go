package schema

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/spec/internal/strictjson"
)

// read reads a schema, and returns the first mistake in it.
func read(t testing.TB, text string) (s *Schema, mistake string) {
	t.Helper()
	v, ok := strictjson.Read([]byte(text), strictjson.Bounds{Size: 1 << 20, Depth: 64}, func(place, message string) {
		t.Fatalf("%s: %s", place, message)
	})
	if !ok {
		t.Fatalf("%s is no JSON", text)
	}
	left := MaxSize
	s = Read(v, &left, func(s string) bool { return !strings.Contains(s, "\n") }, false, func(place, message string) {
		if mistake == "" {
			mistake = place + ": " + message
		}
	})
	return s, mistake
}

func value(t testing.TB, text string) any {
	t.Helper()
	v, ok := strictjson.Read([]byte(text), strictjson.Bounds{Size: 1 << 20, Depth: 64}, func(place, message string) {
		t.Fatalf("%s: %s", place, message)
	})
	if !ok {
		t.Fatalf("%s is no JSON", text)
	}
	return strictjson.Plain(v)
}

func TestMistakesHaveTheirPlace(t *testing.T) {
	t.Parallel()
	s, mistake := read(t, `{"type":"object","required":["a"],"additionalProperties":false,"properties":{
		"a":{"type":["string","null"]},"l":{"type":"array","items":{"type":"object","required":["n"],
		"properties":{"n":{"type":"integer"},"k":{"enum":["x",1,null,true]}}}},"any":{}}}`)
	if mistake != "" {
		t.Fatal(mistake)
	}
	for text, want := range map[string]string{
		`{"a":"x"}`: "", `{"a":null,"l":[{"n":1,"k":null},{"n":-2,"more":[]}],"any":{"deep":[1]}}`: "",
		`{}`: ".a: it is missing", `{"a":1}`: ".a: it is not a string", `{"a":"x","b":1}`: ".b: there is no such property",
		`[]`: ": it is not an object", `null`: ": it is not an object", `{"a":"x","l":{}}`: ".l: it is not an array",
		`{"a":"x","l":[{"n":1},{"n":1.5}]}`: ".l[1].n: it is not an integer",
		`{"a":"x","l":[{"n":1},7]}`:         ".l[1]: it is not an object",
		`{"a":"x","l":[{"n":1,"k":"y"}]}`:   ".l[0].k: it is not one of x, 1, null, true",
		`{"a":"x","l":[{"n":1,"k":["x"]}]}`: ".l[0].k: it is not one of x, 1, null, true",
		`{"a":"x","b\u001b[1m":1}`:          `."b\x1b[1m": there is no such property`,
		`{"a":"x","l":[{"n":null}]}`:        ".l[0].n: it is not an integer",
	} {
		got := ""
		if m := s.Check(value(t, text)); m != nil {
			got = m.Place + ": " + m.Text
		}
		if got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
	again, mistake := read(t, string(must.Get(json.Marshal(s))(t)))
	if mistake != "" || !reflect.DeepEqual(again, s) {
		t.Errorf("written and read again it is %s, %s", must.Get(json.Marshal(again))(t), mistake)
	}
}

func TestFaultsOfASchema(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat(`{"type":"array","items":`, 8) + "{}" + strings.Repeat("}", 8)
	many := make([]string, 600)
	for i := range many {
		many[i] = fmt.Sprintf(`"p%d":{}`, i)
	}
	for text, want := range map[string]string{
		`[]`: ": it is not an object", `{"$ref":"#/a"}`: `."$ref": unknown key`, `{"type":"null"}`: ".type: it is not string",
		`{"type":["string"]}`: ".type: it is neither", `{"items":{}}`: ".items: it is a key of the type",
		`{"type":"string","properties":{}}`: ".properties: it is a key of", `{"enum":[]}`: ".enum: it is not a list with",
		`{"enum":[{}]}`: ".enum[0]: it is a list or an object", `{"enum":[1,1]}`: ".enum[1]: it appears twice",
		`{"description":"a\nb"}`: ".description: it has a line break",
		deep:                     strings.Repeat(".items", 8) + ": it is nested more",
		`{"type":"object","properties":{` + strings.Join(many, ",") + `}}`:         ".properties: it has more than 512",
		`{"type":"object","additionalProperties":{}}`:                              ".additionalProperties: it is not true",
		`{"enum":["` + strings.Repeat(strings.Repeat("x", 1000)+`","`, 70) + `"]}`: ".enum[1]: it appears twice",
		`{"type":"object","properties":{"":{}}}`:                                   `.properties."": it has no name`,
	} {
		if _, got := read(t, text); !strings.HasPrefix(got, want) {
			t.Errorf("%.80s: %q, want %q", text, got, want)
		}
	}
	var large []string
	for i := range 100 {
		large = append(large, fmt.Sprintf(`"%03d%s"`, i, strings.Repeat("x", 900)))
	}
	if _, got := read(t, `{"enum":[`+strings.Join(large, ",")+`]}`); !strings.Contains(got, "more than 65536 bytes") {
		t.Errorf("90 KB: %q", got)
	}
}

func TestExamplesAreOfTheirSchema(t *testing.T) {
	t.Parallel()
	for _, text := range []string{`{}`, `{"type":"array","items":{"type":"object","required":["a","b"],"properties":{
		"a":{"type":"boolean"},"b":{"type":"array"}}}}`, `{"enum":[null]}`, `{"type":"number"}`,
		`{"type":"object","required":["x"]}`} {
		s, mistake := read(t, text)
		if m := s.Check(s.Example("TEXT")); m != nil || mistake != "" {
			t.Errorf("%s: %+v is none: %+v, %s", text, s.Example("TEXT"), m, mistake)
		}
	}
}

// A schema that a document repeats at each level has as many properties as a tree; its size is known without one.
func TestCutsShareTheirParts(t *testing.T) {
	t.Parallel()
	s := &Schema{Type: "string", Enum: []any{"a"}}
	for range 40 {
		s = &Schema{Type: "object", Properties: []Property{{"a", s}, {"b", s}, {"c", s}}}
	}
	var c Cutter
	if size := c.Size(s); size < MaxSize {
		t.Errorf("3^40 properties have %d bytes", size)
	}
	for levels := range MaxLevels + 1 {
		small := c.Cut(s, levels)
		if levels < 2 {
			if small != nil {
				t.Errorf("%d levels tell %+v", levels, small)
			}
			continue
		}
		text := must.Get(json.Marshal(small))(t)
		if size := c.Size(small); size < len(text) || levels < 6 && size > 4*len(text) {
			t.Errorf("%d levels have %d bytes, and are taken for %d", levels, len(text), size)
		}
	}
}

func BenchmarkCheck(b *testing.B) {
	s, _ := read(b, `{"type":"array","items":{"type":"object","required":["id"],"properties":{"id":{"type":"integer"},
		"name":{"type":"string"},"tags":{"type":"array","items":{"type":"string","enum":["a","b"]}}}}}`)
	v := value(b, "["+
		strings.TrimSuffix(strings.Repeat(`{"id":1,"name":"abcdefgh","tags":["a","b","a"]},`, 1365), ",")+"]")
	b.ReportAllocs()
	for b.Loop() {
		if m := s.Check(v); m != nil {
			b.Fatal(m)
		}
	}
}

// The first mistake is that of the schema's order, whether an object has few of many properties or all of them.
func TestMistakesHaveTheOrderOfTheSchema(t *testing.T) {
	var declared, all []string
	for i := range 300 {
		declared = append(declared, fmt.Sprintf(`"p%d":{"type":"string"}`, i))
		all = append(all, fmt.Sprintf(`"p%d":%d`, i, i))
	}
	s, mistake := read(t, `{"type":"object","properties":{`+strings.Join(declared, ",")+`}}`)
	if mistake != "" {
		t.Fatal(mistake)
	}
	for text, want := range map[string]string{
		`{"p299":1,"p10":1,"p7":"x","p9":1,"q":1}`: ".p9", `{"p299":1}`: ".p299", `{"p1":"x","q":1}`: "", `{}`: "",
		`{` + strings.Join(all, ",") + `}`: ".p0",
	} {
		if m := s.Check(value(t, text)); m == nil && want != "" || m != nil && m.Place != want {
			t.Errorf("%.60s: %+v, want one at %q", text, m, want)
		}
	}
}

// A list of small objects is checked in their size, and not in that of the schema.
func BenchmarkManyPropertiesOfSmallObjects(b *testing.B) {
	var declared []string
	for i := range 512 {
		declared = append(declared, fmt.Sprintf(`"p%d":{"type":"string"}`, i))
	}
	s, _ := read(b, `{"type":"array","items":{"type":"object","properties":{`+strings.Join(declared, ",")+`}}}`)
	v := value(b, `[`+strings.Repeat(`{"a":1},`, 99_999)+`{}]`)
	for b.Loop() {
		if m := s.Check(v); m != nil {
			b.Fatalf("%+v", m)
		}
	}
}
