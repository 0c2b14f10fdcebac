package corpus

import (
	"bytes"
	"testing"
)

func TestABodyIsTheSameForTheSameSeed(t *testing.T) {
	for _, k := range Kinds() {
		for _, size := range []int{0, 1, 1000, 1 << 16} {
			body := k.Make(1, size)
			if len(body) != size {
				t.Errorf("%s: %d bytes, want %d", k.Name, len(body), size)
			}
			if !bytes.Equal(body, k.Make(1, size)) {
				t.Errorf("%s: two bodies of one seed differ", k.Name)
			}
			if size > 1 && k.Name != "repeated" && bytes.Equal(body, k.Make(2, size)) {
				t.Errorf("%s: the seed changes nothing in %d bytes", k.Name, size)
			}
		}
		if long := k.Make(1, 1<<16); !bytes.HasPrefix(long, k.Make(1, 1000)) {
			t.Errorf("%s: a shorter body is not the beginning of a longer one", k.Name)
		}
	}
}

// A search that remembers what it has seen, and a processor's branch predictor, are fast on what repeats.
func TestNoRecordOccursTwice(t *testing.T) {
	const size, window = 1 << 18, 512
	for _, k := range Kinds() {
		if k.Name == "repeated" {
			continue
		}
		body, twice := k.Make(1, size), 0
		for i := 0; i+window <= size; i += window {
			if bytes.Contains(body[i+window:], body[i:i+window]) {
				twice++
			}
		}
		if twice > 0 {
			t.Errorf("%s: %d of %d windows of %d bytes occur again", k.Name, twice, size/window, window)
		}
	}
}

func TestBodiesHaveWhatTheyAreNamedAfter(t *testing.T) {
	body := func(name string) []byte {
		for _, k := range Kinds() {
			if k.Name == name {
				return k.Make(1, 1<<16)
			}
		}
		t.Fatalf("no kind %q", name)
		return nil
	}
	for name, parts := range map[string][]string{
		"code-host": {`"sha":"`, `{/sha}`, `\r\n`, `\n`, `\u003c`, `\"`, `&per_page=`, `"node_id":"`},
		"registry":  {"sha512-", `=="`, `"shasum":"`, ".tgz", "@mail.example"},
		"pulls":     {`{/sha}`, `\r\n`, `"head":{`, `"repo":{`, `%20`, `"node_id":"`},
		"packument": {"sha512-", "PGP", `\r\n`, `\u0026`, `"devDependencies":{`},
		"chat":      {`\/pull\/`, `&gt;`, `\ud83d`, `\u2022`, `"blocks":[`},
		"escapes":   {`\/`, `%2F`, `&amp;`, `\u2013`},
		"html":      {"&amp;", "&quot;", `\u003c`},
		"events":    {"data: ", `\n`, `\u2014`, "\n\n"},
		"markdown":  {"# ", "```", "]("},
	} {
		for _, part := range parts {
			if !bytes.Contains(body(name), []byte(part)) {
				t.Errorf("%s: has no %s", name, part)
			}
		}
	}
}

func BenchmarkKinds(b *testing.B) {
	for _, k := range Kinds() {
		b.Run(k.Name, func(b *testing.B) {
			b.SetBytes(1 << 20)
			for b.Loop() {
				k.Make(1, 1<<20)
			}
		})
	}
}
