package spec

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

func TestARequestIsReadAsItIs(t *testing.T) {
	r, err := ParseRequest([]byte(`{"connector_fqn":"github://acme/x","tool":"t","operation":"o","method":"P\r\n",` +
		`"upstream_url":"https://a.example/\u0000","headers":{"b":["2","3"],"A":"1\n"},"body_base64":"AP8="}`))
	want := [][2]string{{"A", "1\n"}, {"b", "2"}, {"b", "3"}}
	if err != nil || r.Connector != "github://acme/x" || r.Tool != "t" || r.Operation != "o" || r.Method != "P\r\n" ||
		r.URL != "https://a.example/\x00" || string(r.Body) != "\x00\xff" || len(r.Fields) != 3 {
		t.Fatalf("it is %+v, %v", r, err)
	}
	for i := range want {
		if r.Fields[i] != want[i] {
			t.Errorf("the fields are %q, want %q", r.Fields, want)
		}
	}
}

func TestAMistakeInARequestIsNamed(t *testing.T) {
	const head = `"connector_fqn":"a","tool":"t","operation":"o","method":"GET","upstream_url":"u"`
	for text, want := range map[string]string{
		`{` + head[:len(head)-19] + `}`:          "upstream_url: it is missing",
		`{` + head + `,"headers":"x"}`:           "headers: it is not an object",
		`{` + head + `,"headers":null}`:          "headers: it is not an object",
		`{` + head + `,"headers":{"a":{}}}`:      "headers.a: it is neither a string nor a list of strings",
		`{` + head + `,"headers":{"a":["1",2]}}`: "headers.a: it is neither a string nor a list of strings",
		`{` + head + `,"body_base64":"a"}`:       "body_base64: it is not base64",
		`{` + head + `,"body_base64":"YQ"}`:      "body_base64: it is not base64",
		`{` + head + `,"body_base64":"Y\nQ=="}`:  "body_base64: it is not base64",
		`{` + head + `,"body_base64":"YR=="}`:    "body_base64: it is not base64",
		`{` + head + `,"Headers":{}}`:            `Headers: unknown key; use "headers"`,
		`{` + head + `,"tool":"u"}`:              "tool: duplicate key",
		`{` + head + `} {}`:                      "after the end",
		`[]`:                                     "it is not an object",
	} {
		if r, err := ParseRequest([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s is %+v, %v; want %s", text, r, err, want)
		}
	}
}

// What is accepted is what a plain decoder reads.
func FuzzParseRequest(f *testing.F) {
	f.Add([]byte(`{"connector_fqn":"a","tool":"t","operation":"o","method":"GET","upstream_url":"https://a.example/",` +
		`"headers":{"A":"1","b":["2"]},"body_base64":"AA=="}`))
	f.Add([]byte(`{"connector_fqn":"a","tool":"t","operation":"o","method":"GET","upstream_url":"\ud800","METHOD":"x"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := ParseRequest(data)
		if err != nil {
			if len(err.Error()) > maxMistake+8 {
				t.Errorf("the mistake is named in %d bytes", len(err.Error()))
			}
			return
		}
		var plain struct {
			Connector string         `json:"connector_fqn"`
			Tool      string         `json:"tool"`
			Operation string         `json:"operation"`
			Method    string         `json:"method"`
			URL       string         `json:"upstream_url"`
			Headers   map[string]any `json:"headers"`
			Body      []byte         `json:"body_base64"`
		}
		dec := json.NewDecoder(bytes.NewReader(data))
		dec.DisallowUnknownFields()
		if err := dec.Decode(&plain); err != nil {
			t.Fatalf("a plain decoder fails: %v", err)
		}
		n := 0
		for _, v := range plain.Headers {
			if list, ok := v.([]any); ok {
				n += len(list)
			} else {
				n++
			}
		}
		if plain.Connector != r.Connector || plain.Tool != r.Tool || plain.Operation != r.Operation ||
			plain.Method != r.Method || plain.URL != r.URL || !bytes.Equal(plain.Body, r.Body) || n != len(r.Fields) {
			t.Errorf("%q is %+v, and a plain decoder reads %+v", data, r, plain)
		}
	})
}
