package scrub

import "testing"

// A search skips what begins no escape by its second byte alone.
func TestTheSecondByteOfEveryEscape(t *testing.T) {
	rests := []string{"", "1", "11", "41;", "x41;", "041", "0041", "0000041", "00000041", "{41}", "mp;", "mp", "t;", "t",
		"uot;", "uot", "\n", "ewLine;", "ab;", "at;", "um;"}
	found := map[byte]int{}
	for _, lead := range []byte(`%\&=`) {
		for second := range 256 {
			for _, rest := range rests {
				text := append([]byte{lead, byte(second)}, rest...)
				if _, n := escape(text); n == 1 {
					continue
				}
				if found[lead]++; follows[second]&traits[lead] == 0 {
					t.Errorf("%q begins with an escape that a search skips", text)
				}
			}
		}
	}
	for _, lead := range []byte(`%\&=`) {
		if found[lead] == 0 {
			t.Errorf("no text begins with an escape of %q", lead)
		}
	}
}
