package meter_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/proxy/meter"
	"github.com/ALRubinger/aileron/spec"
)

// meters are those of a model: the sum of a stream's events comes last.
func meters() []spec.Meter {
	return []spec.Meter{
		{Name: "input", Source: []string{"usage", "input"}, Events: [][]string{{"message", "usage", "input"}}},
		{Name: "output", Source: []string{"usage", "output"}, Events: [][]string{{"message", "usage", "output"}}},
		{Name: "output", Source: []string{"usage", "thoughts"}},
	}
}

// model is where its name is.
func model() spec.Meter {
	return spec.Meter{Source: []string{"model"}, Events: [][]string{{"message", "model"}}}
}

// The name of a model is what an upstream chooses: one that is no short word is none.
func TestTheNameOfAModelIsAShortWord(t *testing.T) {
	usage := `"usage":{"input":1,"output":2}`
	for body, want := range map[string]string{
		`{"model":"claude-x-4.5",` + usage + `}`:                 "claude-x-4.5",
		`{` + usage + `,"model":"org/m:free@1"}`:                 "org/m:free@1",
		`{"model":"a","model":"b"}`:                              "a",
		`{"x":{"model":"a"},"y":["model","b"],"z":"model"}`:      "",
		`{"model":"` + strings.Repeat("m", 65) + `"}`:            "",
		`{"model":"a\u001b[31m"}`:                                "",
		`{"model":"a b"}`:                                        "",
		"{\"model\":\"\x1b[31m\"}":                               "",
		`{"model":""}`:                                           "",
		`{"model":"-rf"}`:                                        "",
		`{"model":7}`:                                            "",
		`{"model":{"model":"a"}}`:                                "",
		`{"model":null,"message":{"model":"of-an-event-alone"}}`: "",
	} {
		for _, size := range []int{1, 1 << 20} {
			r := meter.NewReader(meters(), model(), false)
			for rest := body; rest != ""; rest = rest[min(size, len(rest)):] {
				r.Write([]byte(rest[:min(size, len(rest))]))
			}
			if got := r.Model(); got != want {
				t.Errorf("%s in pieces of %d: Model = %q, want %q", body, size, got, want)
			}
		}
	}
	r := meter.NewReader(meters(), model(), true)
	r.Write([]byte("data: {\"message\":{\"model\":\"first\"}}\n\ndata: {\"model\":\"second\"}\n\n"))
	if got := r.Model(); got != "first" {
		t.Errorf("of events, Model = %q, want that of the first", got)
	}
}

func TestReader(t *testing.T) {
	deep := strings.Repeat(`{"a":`, 100) + `1` + strings.Repeat(`}`, 100)
	for name, c := range map[string]struct {
		stream bool
		body   string
		want   map[string]int64
		bad    bool
	}{
		"document":       {body: `{"x":[1,{"usage":{"input":9}}],"usage":{"input":3,"output":4}}`, want: of(3, 4)},
		"same name adds": {body: `{"usage":{"input":1,"output":4,"thoughts":6}}`, want: of(1, 10)},
		"in a text": {body: `{"text":"\",\"usage\":{\"input\":9}","usage":{"input":1,"output":2}}`,
			want: of(1, 2)},
		"text as a key": {body: `{"text":"usage","a":{"input":9},"usage":{"input":1,"output":2}}`, want: of(1, 2)},
		"elsewhere":     {body: `{"a":{"usage":{"input":9}},"input":8}`, want: map[string]int64{}},
		"in an array":   {body: `{"usage":[{"input":9}]}`, want: map[string]int64{}},
		"array of documents": {body: `[{"usage":{"input":1,"output":1}},` + "\n" +
			`{"usage":{"input":1,"output":7}}]`, want: of(1, 7)},
		"deep": {body: `{"a":` + deep + `,"usage":{"input":1,"output":2}}`, want: of(1, 2)},
		"long key": {body: `{"` + strings.Repeat("usage", 99) + `":{"input":9},"usage":{"input":1,"output":2}}`,
			want: of(1, 2)},
		"escaped key":    {body: `{"us\u0061ge":{"input":9}}`, want: map[string]int64{}},
		"larger counts":  {body: `{"usage":{"input":5,"output":2},"usage":{"input":1,"output":9}}`, want: of(5, 9)},
		"text as number": {body: `{"usage":{"input":"7","output":2}}`, want: map[string]int64{"output": 2}},
		"null":           {body: `{"usage":{"input":null,"output":2}}`, want: map[string]int64{"output": 2}},
		"literals":       {body: `{"e":true,"f":false,"usage":{"input":1e2,"output":1.5}}`, want: of(100, 2)},
		"negative": {body: `{"usage":{"input":-1,"output":2}}`,
			want: map[string]int64{"output": 2}, bad: true},
		"too large": {body: `{"usage":{"input":1e300,"output":2}}`,
			want: map[string]int64{"output": 2}, bad: true},
		"too long": {body: `{"usage":{"input":` + strings.Repeat("1", 99) + `,"output":2}}`,
			want: map[string]int64{"output": 2}, bad: true},
		"ends in a number": {body: `{"usage":{"input":12`, want: map[string]int64{}},
		"no event":         {body: `{"message":{"usage":{"input":3}}}`, want: map[string]int64{}},
		"events": {stream: true,
			body: "event: message_start\r\ndata: {\"message\":{\"usage\":{\"input\":30,\"output\":1}}}\r\n" +
				"\r\n: usage\ndata:{\"delta\":{\"text\":\"}{\"}}\n\nevent: message_delta\ndata: {\"usage\":{\"output\":42}}\n\n",
			want: of(30, 42)},
		"lines that end in CR": {stream: true,
			body: "event: a\rdata: {\"message\":{\"usage\":{\"input\":30}}}\r\rdata: {\"a\":\r\r" +
				"data: {\"usage\":\rdata: {\"output\":42}}\r\n\r\n",
			want: of(30, 42)},
		"done": {stream: true,
			body: "data: {\"usage\":{\"input\":1,\"output\":2}}\n\ndata: [DONE]\n\n",
			want: of(1, 2)},
		"broken event": {stream: true,
			body: "data: {\"usage\":{\"in\n\ndata: {\"usage\":{\"input\":1,\"output\":2}}\n\n",
			want: of(1, 2)},
		"event in lines": {stream: true,
			body: "data: {\"usage\":\ndata: {\"input\":1,\ndata: \"output\":2}}\n\n",
			want: of(1, 2)},
		"other field": {stream: true,
			body: "dat: {\"usage\":{\"input\":1}}\n\nddata: {\"usage\":{\"input\":1}}\n\n",
			want: map[string]int64{}},
		"usage that is no": {stream: true, body: "data: {\"usage\":null}\n\n", want: map[string]int64{}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, size := range []int{1, 3, 1 << 20} {
				r := meter.NewReader(meters(), model(), c.stream)
				for rest := c.body; rest != ""; rest = rest[min(size, len(rest)):] {
					r.Write([]byte(rest[:min(size, len(rest))]))
				}
				if got, good := r.Read(); !maps.Equal(got, c.want) || good == c.bad {
					t.Errorf("in pieces of %d: Read = %v, %v; want %v, %v", size, got, good, c.want, !c.bad)
				}
			}
		})
	}
}

func of(input, output int64) map[string]int64 {
	return map[string]int64{"input": input, "output": output}
}

func TestReaderKeepsNothingOfTheResponse(t *testing.T) {
	r := meter.NewReader(meters(), model(), true)
	event := []byte("data: {\"delta\":{\"text\":\"" + strings.Repeat("word ", 200) + "\"}}\n\n")
	if n := testing.AllocsPerRun(100, func() { r.Write(event) }); n != 0 {
		t.Errorf("an event takes %v allocations, want none", n)
	}
}

func FuzzReader(f *testing.F) {
	f.Add(`{"usage":{"input":1}}`, true)
	f.Add("data: {\"usage\":{\"output\":2}}\n\n", false)
	f.Fuzz(func(t *testing.T, body string, stream bool) {
		whole, pieces := meter.NewReader(meters(), model(), stream), meter.NewReader(meters(), model(), stream)
		whole.Write([]byte(body))
		for i := range len(body) {
			pieces.Write([]byte{body[i]})
		}
		a, good := whole.Read()
		b, same := pieces.Read()
		if !maps.Equal(a, b) || good != same {
			t.Errorf("whole: %v, %v; in pieces: %v, %v", a, good, b, same)
		}
		for name, n := range a {
			if n < 0 {
				t.Errorf("%s is %d", name, n)
			}
		}
	})
}

func BenchmarkReader(b *testing.B) {
	event := []byte("event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":" +
		"{\"type\":\"text_delta\",\"text\":\"some words of it\"}}\n\n")
	r := meter.NewReader(meters(), model(), true)
	b.SetBytes(int64(len(event)))
	for b.Loop() {
		r.Write(event)
	}
}
