package judge_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/proxy/judge"
)

// agreesWithParser fails if a document of a body is decided otherwise without a parser than with it. Bodies that are
// none of GraphQL are none of its business.
func agreesWithParser(t *testing.T, body string) {
	t.Helper()
	type request struct {
		Query         string `json:"query"`
		OperationName string `json:"operationName"`
	}
	var all []request
	if json.Unmarshal([]byte(body), &all) != nil {
		var one request
		if json.Unmarshal([]byte(body), &one) != nil {
			return
		}
		all = append(all, one)
	}
	for _, r := range all {
		for _, name := range []string{r.OperationName, "", "A", "B"} {
			if _, err := judge.BothWays(r.Query, name, 10000); err != nil {
				t.Errorf("%.300q, %q: %v", r.Query, name, err)
			}
		}
	}
}

// usual are documents that need no parser, as clients write them.
var usual = []string{
	"{viewer{login}}", "query{viewer{login}}", "query Q{viewer{login}}", "mutation M { a { b } }",
	"subscription { a }", "query query{query mutation fragment on}", "{on:on{on}}", "{ a: b c: d e }",
	"query Q($a:Int!,$b:[String!]!=[\"x\" 1 -1 0],$c:T={x:{y:[]} z:{}}@d(e:1)){a(x:$a y:[$b {z:$c}] z:true w:null v:E)}",
	"query @a @b(c:\"d\") { e @f { g } h @i(j:1) }",
	"{a ... on X @y {b ...{c}} ...@include(if:false){d}}",
	"query Q{a{...F b{...G}}} fragment F on X{c{...G}} fragment G on Y @z{d}",
	"fragment F on X{c} query Q{a{...F ...F}}", "{a} fragment F on X{...G}", "{a} fragment F on X{...F}",
	"{a(b:\"\x7f\")}",
	"#c\n{#d\r\na#e\n,,}#f", "{a(b:\"\" c:\"\\\"\\\\\\/\\b\\f\\n\\r\\t\" d:\"\"\"e\nf\"\"\" g:\"\"\"\"\"\")}",
	"{a(b:\"é \u2028\ufeff\")}",
}

// These are odd, so that the parser decides: it allows some of them.
var odd = []string{
	"{...F} fragment F on X{a}", "{... on X{...F}} fragment F on X{a}", "query A{a} query B{b}", "{a} {b}",
	"{a(b:1.5)}", "{a(b:1e5)}", "{a(b:01)}", "{a(b:1a:2)}", "{a(b:-)}", "{a(b:+1)}", "{a(b:1 .5)}", "{a(b:- 1)}",
	"{a(b:\"\\u0041\")}", "{a(b:\"\x01\")}", "{a(b:\"\"\"\x01\"\"\")}", "{a(b:\"\"\"\r\"\"\")}",
	"\"about\" query Q{a}", "query(\"about\" $a:Int){a}", "fragment F($a:Int) on X{a} {b{...F}}",
	"{a{...F}}", "{a{...F}} fragment F on X{...F}", "{a{...F}} fragment F on X{...G} fragment G on X{...F}",
	"{a{...F}} fragment F on X{...G}",
	"{a} fragment F on X{b} fragment F on X{c}", "{a{...on}} fragment on on X{a}", "{a{...F}} fragment F X{a}",
	"{a{... on {b}}}", "{a{... \"on\" X {b}}}", "{. .. a}", "{....a}", "{a()}", "{a{}}",
	"query(){a}", "{a:b:c}", "{a(b)}",
	"{a(b:)}", "{a(b:[)}", "{a(b:{)}", "{a(b:{c})}", "{a(b:{1:2})}", "query($a:Int=$b){a}", "query($a){a}",
	"query($a:[Int){a}",
	"query($a:Int!!){a}", "query Q R{a}", "query{a}}", "{a}}", "{a", "{", "", "#", "a", "{$a}", "{a @}", "{a @b()}",
	"{a|b}", "{a&b}", "{1}", "{\"a\"}", "{a(1:2)}", "Query{a}", "fragment F on X{a}", "{a}\r", "{a}\ufeff",
	"{a\u00a0}", "{é}",
	"type X{a:Int}", "{a} extend type X{b:Int}", "{a)}", "(a)", "{a]", "{a(b:[1}])}",
}

func TestDocumentsAreDecidedAsTheParserDoes(t *testing.T) {
	for i, text := range append(append([]string{}, usual...), odd...) {
		for _, name := range []string{"", "Q", "A", "query", "X"} {
			quick, err := judge.BothWays(text, name, 10000)
			if err != nil {
				t.Errorf("%q, %q: %v", text, name, err)
			}
			if name != "" || i >= len(usual) {
				continue
			}
			if !quick {
				t.Errorf("%q needs a parser", text)
			}
		}
	}
	for _, text := range odd {
		if quick, _ := judge.BothWays(text, "", 10000); quick {
			t.Errorf("%q is decided without the parser", text)
		}
	}
}

// Cuts, repetitions and exchanges of characters of what is usual are decided alike.
func TestMutilatedDocumentsAreDecidedAsTheParserDoes(t *testing.T) {
	const with = "{}()[]:$@!=.\"\\#n\n\r 0-,&|é"
	quick := 0
	for _, text := range usual {
		for i := range text {
			for _, c := range with {
				for _, changed := range []string{text[:i] + string(c) + text[i:], text[:i] + string(c) + text[i+1:], text[:i],
					text[i:], text[:i] + text[i+1:], text + text[i:]} {
					was, err := judge.BothWays(strings.ToValidUTF8(changed, "?"), "", 10000)
					if err != nil {
						t.Errorf("%q: %v", changed, err)
					}
					if was {
						quick++
					}
				}
			}
		}
	}
	if quick < 1000 {
		t.Errorf("only %d of them were decided without the parser", quick)
	}
}

// Depths and numbers at the bounds are decided alike.
func TestBoundsAreThoseOfTheParser(t *testing.T) {
	for n := 50; n <= 66; n++ {
		nested := strings.Repeat("{a", n) + strings.Repeat("}", n)
		inFragment := "{b{...F}} fragment F on X" + nested
		inValue := "{a(b:" + strings.Repeat("[", n) + strings.Repeat("]", n) + ")}"
		var chain strings.Builder
		chain.WriteString("{b{...F0}}")
		for i := range n {
			chain.WriteString("fragment F" + string(rune('0'+i)) + " on X{...F" + string(rune('1'+i)) + "}")
		}
		chain.WriteString("fragment F" + string(rune('0'+n)) + " on X{a}")
		for _, text := range []string{nested, inFragment, inValue, chain.String()} {
			if _, err := judge.BothWays(text, "", 10000); err != nil {
				t.Errorf("%d: %.80q: %v", n, text, err)
			}
		}
	}
	for most := range 12 { // it has 9 tokens
		quick, err := judge.BothWays("{a ...{b}}#c\n", "", most)
		if err != nil || quick != (most >= 10) {
			t.Errorf("%d tokens: %v, %v", most, quick, err)
		}
	}
}

// FuzzQuick holds what is decided without a parser to what the parser decides.
func FuzzQuick(f *testing.F) {
	for _, text := range append(append([]string{}, usual...), odd...) {
		f.Add(text, "")
	}
	f.Add("query A{a} mutation B{b}", "B")
	f.Fuzz(func(t *testing.T, text, name string) {
		if text = strings.ToValidUTF8(text, "?"); strings.Contains(text, "\x00") {
			return // readGraphQL has refused it
		}
		if _, err := judge.BothWays(text, name, 10000); err != nil {
			t.Errorf("%q, %q: %v", text, name, err)
		}
	})
}

// Of a document of too many tokens, no more is read than those.
func TestALongDocumentIsNotReadToItsEnd(t *testing.T) {
	for _, text := range []string{"{" + strings.Repeat("a ", 5000) + "}", "{a(b:[" + strings.Repeat("1 ", 5000) + "])}"} {
		if read := judge.ReadQuickly(text, 100); read < 100 || read > 400 {
			t.Errorf("%.20q: %d bytes are read of 100 tokens", text, read)
		}
		if _, err := judge.BothWays(text, "", 100); err != nil {
			t.Errorf("%.20q: %v", text, err)
		}
	}
}

// Fields at the root count once each, however many there are, also over the requests of a batch.
func TestFieldsThatRepeatCountOnce(t *testing.T) {
	all := "{" + manyFields(256) + " " + manyFields(256) + "}"
	content := must.Get(judge.Read(forge[0], jsonType(), "", []byte("["+query(all)+","+query(all)+"]")))(t)
	if n := len(content.Parts()); n != 256 {
		t.Errorf("it asks for %d fields, want 256", n)
	}
	_, err := judge.Read(forge[0], jsonType(), "", []byte("["+query(all)+","+query("{other}")+"]"))
	if err == nil || !strings.Contains(err.Error(), "more than 256 fields") {
		t.Errorf("with one more: %v", err)
	}
}
