package api

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

// Each character may be split between two reads.
func TestTextIsTheSameInOnePieceAndInMany(t *testing.T) {
	text := "a\"\\\n\x00\x1f\x7fü€😀\u2028\xff\xc3(\xed\xa0\x80 \xf0\x9f"
	whole, _ := appendText(nil, []byte(text), true)
	for size := 1; size < len(text); size++ {
		var got, held []byte
		for piece := range slices.Chunk([]byte(text), size) {
			held = append(held, piece...)
			var used int
			got, used = appendText(got, held, false)
			held = held[used:]
		}
		if got, _ = appendText(got, held, true); !bytes.Equal(got, whole) {
			t.Errorf("in pieces of %d: %q, want %q", size, got, whole)
		}
	}
	var back string
	if err := json.Unmarshal([]byte(`"`+string(whole)+`"`), &back); err != nil || back != strings.ToValidUTF8(
		strings.Map(func(r rune) rune { return r }, text), "\ufffd") {
		t.Errorf("%q is read as %q, %v", text, back, err)
	}
}
