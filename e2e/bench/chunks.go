package main

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/ALRubinger/aileron/e2e/corpus"
)

// chunks returns what bodies repeat, by the name of the kind: 2 MiB each, the same for the origin and for clients.
var chunks = sync.OnceValue(func() map[string][]byte {
	all := map[string][]byte{}
	for _, k := range corpus.Kinds() {
		all[k.Name] = k.Make(1, 2<<20)
	}
	all[hostile] = bytes.Repeat([]byte(hostileText), (2<<20)/len(hostileText))
	return all
})

// contentType returns the type of a kind of body.
func contentType(kind string) string {
	kinds := corpus.Kinds()
	if i := slices.IndexFunc(kinds, func(k corpus.Kind) bool { return k.Name == kind }); i >= 0 {
		return kinds[i].Type
	}
	return "application/octet-stream"
}

// leaking returns a body with the secret in it, in several forms, and the same body as a client may see it. Most
// places lie across the border of two pieces of 32 KiB.
func leaking(body []byte) (leaky, redacted []byte) {
	leaky, redacted = bytes.Clone(body), bytes.Clone(body)
	for i, form := range []string{
		secret, url.QueryEscape(secret), hex.EncodeToString([]byte(secret)),
		base64.RawStdEncoding.EncodeToString([]byte(secret)), strings.ReplaceAll(secret, "/", `\/`), secret,
	} {
		// Quotes end what stands before, so that no neighbour takes part in a form.
		place := `","` + form + `","`
		at := (i+1)*(256<<10) - 10*i
		copy(leaky[at:], place)
		copy(redacted[at:], strings.Replace(place, form, strings.Repeat("*", len(form)), 1))
	}
	return leaky, redacted
}

// repeating is a writer that compares what it gets with chunk over and over.
type repeating struct {
	chunk []byte
	n     int64 // bytes so far, all of which were right
}

// Write returns an error that names the first byte that is not the chunk's.
func (r *repeating) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0; {
		want := r.chunk[r.n%int64(len(r.chunk)):]
		want = want[:min(len(want), len(rest))]
		if !bytes.Equal(rest[:len(want)], want) {
			i := 0
			for rest[i] == want[i] {
				i++
			}
			return 0, fmt.Errorf("byte %d is another: %.40q, want %.40q", r.n+int64(i), rest[i:], want[i:])
		}
		r.n, rest = r.n+int64(len(want)), rest[len(want):]
	}
	return len(p), nil
}
