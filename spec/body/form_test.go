package body

import (
	"encoding/json"
	"net/url"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
)

// decoded returns a value as the arguments of a call have it.
func decoded(t testing.TB, text string) any {
	t.Helper()
	dec := json.NewDecoder(strings.NewReader(text))
	dec.UseNumber()
	var v any
	must.Do(t, dec.Decode(&v))
	return v
}

func TestValuesInAForm(t *testing.T) {
	t.Parallel()
	for _, w := range []struct {
		name, value string
		style       Style
		want        string
	}{
		{"email", `"a+b@x.example"`, Repeated, "email=a%2Bb%40x.example"},
		{"n", `[1,2.50,true,"x y"]`, Repeated, "n=1&n=2.50&n=true&n=x%20y"},
		{"expand[]", `["a","b"]`, Repeated, "expand%5B%5D=a&expand%5B%5D=b"},
		{"n", `[]`, Repeated, ""},
		{"fields", `["a","b"]`, Commas, "fields=a%2Cb"},
		{"fields", `["a","b"]`, Spaces, "fields=a%20b"},
		{"fields", `["a","b"]`, Pipes, "fields=a%7Cb"},
		{"fields", `"a,b"`, Commas, "fields=a%2Cb"},
		{"fields", `[]`, Commas, ""},
		{"metadata", `{"b":"2","a":"1"}`, Brackets, "metadata%5Ba%5D=1&metadata%5Bb%5D=2"},
		{"items", `[{"price":"p","tags":["x"]},{"price":"q"}]`, Brackets, "items%5B0%5D%5Bprice%5D=p&" +
			"items%5B0%5D%5Btags%5D%5B0%5D=x&items%5B1%5D%5Bprice%5D=q"},
		{"created", `7`, Brackets, "created=7"},
		{"metadata", `{}`, Brackets, ""},
	} {
		p := NewForm(MaxSize)
		if m := p.Add(w.name, decoded(t, w.value), w.style); m != nil || p.String() != w.want {
			t.Errorf("%s %s %d: %q, %+v, want %q", w.name, w.value, w.style, p, m, w.want)
		}
	}
}

// What a server could split, rename or decode otherwise is a mistake, or stands as one value.
func TestNoValueBecomesAnotherParameter(t *testing.T) {
	t.Parallel()
	for _, w := range []struct {
		value string
		style Style
		place string // of the mistake
	}{
		{`["a,b"]`, Commas, "[0]"}, {`["a","b c"]`, Spaces, "[1]"}, {`["a|b"]`, Pipes, "[0]"},
		{`["a",""]`, Commas, "[1]"}, {`{"":"1"}`, Brackets, `.""`},
		{`{"a][b":"1"}`, Brackets, `."a][b"`}, {`{"a]=1&admin":"1"}`, Brackets, `."a]=1&admin"`},
		{`{"a":{"b[":"1"}}`, Brackets, `.a."b["`}, {`{"a\r\n":"1"}`, Brackets, `."a\r\n"`},
		{`{"a":null}`, Brackets, ".a"},
		{`[{"a":"\u0000"}]`, Brackets, "[0].a"}, {`{"a":1}`, Repeated, ""}, {`[[1]]`, Repeated, "[0]"},
		{`null`, Repeated, ""},
		{`[{}]`, Commas, "[0]"},
		{strings.Repeat(`{"a":`, 18) + "1" + strings.Repeat("}", 18), Brackets, strings.Repeat(".a", 17)},
	} {
		p := NewForm(MaxSize)
		if m := p.Add("x", decoded(t, w.value), w.style); m == nil || m.Place != w.place || m.Text == "" {
			t.Errorf("%s: %+v in %q, want one at %q", w.value, m, p, w.place)
		}
	}
	for _, hostile := range []string{"1&admin=true", "1;admin=true", "x[y]=1", "1\r\nHost: e", "%26admin%3Dtrue", "+", "ä",
		"\"'"} {
		p := NewForm(MaxSize)
		if m := p.Add("x", map[string]any{"k": hostile, "l&admin=1": "v"}, Brackets); m != nil {
			t.Fatalf("%q: %+v", hostile, m)
		}
		got, err := url.ParseQuery(p.String())
		if err != nil || len(got) != 2 || got.Get("x[k]") != hostile || got.Get("x[l&admin=1]") != "v" ||
			strings.ContainsAny(p.String(), "\r\n; \"+") {
			t.Errorf("%q: sent as %q, read as %v, %v", hostile, p, got, err)
		}
	}
}

// Long keys above many entries would make gigabytes of 1 MiB, and hold a processor for minutes.
func TestAFormIsBounded(t *testing.T) {
	t.Parallel()
	many := func(v any) []any {
		list := make([]any, 50_000)
		for i := range list {
			list[i] = v
		}
		return list
	}
	p := NewForm(MaxSize)
	m := p.Add("x", map[string]any{strings.Repeat("k", 4000): many(json.Number("1"))}, Brackets)
	if m != nil || !p.TooLong() || len(p.String()) > 3*MaxSize {
		t.Errorf("%d bytes, too long: %v, %+v", len(p.String()), p.TooLong(), m)
	}
	for _, w := range []struct {
		value any
		want  string
	}{
		{map[string]any{strings.Repeat("k", 512<<10): many(map[string]any{})}, "a name of more than 4096 bytes"},
		{map[string]any{strings.Repeat("k", 4096): "v"}, "a name of more than 4096 bytes"},
		{map[string]any{"k": many([]any{})}, "more than 10000 lists and objects"},
		{map[string]any{"k": many(map[string]any{})}, "more than 10000 lists and objects"},
		{many(many([]any{})[:2]), "more than 10000 lists and objects"},
	} {
		p := NewForm(MaxSize)
		if m := p.Add("x", w.value, Brackets); m == nil || !strings.Contains(m.Text, w.want) || p.lists > maxLists+1 {
			t.Errorf("%+v, %d lists, want %s", m, p.lists, w.want)
		}
	}
}

func TestKeysOfAParameter(t *testing.T) {
	t.Parallel()
	for parameter, want := range map[string]string{
		"x": "", "x[a]": "a", "x[]": "", "x[a][0][b-c]": "a 0 b-c", "x[a": "no", "x]": "no", "x[a]b": "no",
		"x[a[b]]": "no",
		"xx":      "no", "y": "no", "x.a": "no", "x" + strings.Repeat("[a]", 17): "no",
	} {
		keys, ok := Brackets.Keys("x", parameter)
		if got := strings.Join(keys, " "); ok != (want != "no") || ok && got != want {
			t.Errorf("%s: %q, %v, want %s", parameter, got, ok, want)
		}
		if _, ok := Repeated.Keys("x", parameter); ok != (parameter == "x") {
			t.Errorf("%s is repeated: %v", parameter, ok)
		}
	}
}
