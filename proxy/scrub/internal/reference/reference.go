// Package reference is the promise of docs/scrubbing.md as a program, for the tests of the search. It reads a text in
// every way that the page lists, from every byte on, and compares symbol by symbol with every encoding of every secret.
// It samples nothing, skips nothing, and shares no code with the search.
//
// [New] prepares the encodings of some secrets, and [Search.Judge] returns which bytes of a text have to be redacted,
// and which may be.
package reference

import (
	"slices"
	"strings"
)

// way is a reading with the encodings that are looked for in it.
type way struct {
	name    string
	reading reading
	in      alphabet
	may     alphabet // what need not be found in it
	inLines bool     // white space was removed
}

// alphabet is a set of kinds of encodings.
type alphabet int

const (
	asText alphabet = 1 << iota
	asBase64
	asBase32
	asHex
)

// ways returns every way to read text.
func ways(text string) []way {
	escapes := []struct {
		name  string
		first string // one of these begins an escape
		parse func(string) (byte, int)
	}{{"URL", "%", urlEscape}, {"JSON", `\`, jsonEscape}, {"HTML", "&", htmlEscape}, {"any", `%\&`, anyEscape}}
	raw := plain(text)
	all := []way{{name: "raw", reading: raw, in: asText | asBase64}}
	undone := all[:1:1] // the text as it is, and with every escape decoded
	for _, outer := range escapes {
		if !strings.ContainsAny(text, outer.first) {
			continue
		}
		once := raw.decoded(outer.parse)
		all = append(all, way{name: outer.name, reading: once, in: asText | asBase64, may: asHex})
		for _, inner := range escapes {
			if !once.hasAny(inner.first) {
				continue
			}
			twice := once.decoded(inner.parse)
			all = append(all, way{name: inner.name + " in " + outer.name, reading: twice, in: asText | asBase64, may: asHex})
		}
		if outer.name == "any" { // a digit that looks like a part of another escape tells half a byte
			all = append(all, way{name: "hexadecimal in any", reading: once, in: asHex})
			undone = append(undone, way{name: "any", reading: once})
		}
	}
	if strings.Contains(text, "=") {
		all = append(all, way{name: "quoted-printable", reading: raw.quotedPrintable(), in: asText | asBase64 | asHex})
	}
	for _, u := range undone {
		all = append(all, way{"joined " + u.name, u.reading.joined(), asBase64 | asBase32, 0, true},
			way{name: "hexadecimal " + u.name, reading: u.reading.hexDigits(), in: asHex},
			way{name: "numbers " + u.name, reading: u.reading.numbers(), in: asText})
	}
	return all
}

// Search searches for the secrets of some credentials. To be usable for a million texts, it looks only at the parts
// of encodings that begin with the two symbols at hand.
type Search struct {
	encodings []encoding
	beginning map[[2]byte][]wanted
}

// wanted is a part of an encoding, which has to be found or may be.
type wanted struct {
	*encoding
	part
	has bool
}

// New returns a search for some secrets.
func New(secrets []Secret) *Search {
	f := &Search{beginning: map[[2]byte][]wanted{}}
	for _, c := range secrets {
		for _, e := range encodingsOf(c) {
			if !slices.ContainsFunc(f.encodings, e.equal) { // most are the same in both alphabets of base64
				f.encodings = append(f.encodings, e)
			}
		}
	}
	for i := range f.encodings {
		e := &f.encodings[i]
		add := func(p part, has bool) {
			first := [2]byte{e.symbols[p.from], e.symbols[p.from+1]}
			f.beginning[first] = append(f.beginning[first], wanted{e, p, has})
		}
		for _, p := range e.may {
			add(p, false)
		}
		for _, p := range e.must {
			add(p, false)
			add(p, true)
		}
	}
	return f
}

// Verdict is what a search may do with each byte of a text, and what it has to do.
type Verdict struct {
	May  []bool // may be redacted
	Runs []Run  // have to be redacted
}

// Run is a run of symbols of one encoding of a secret, text[From:To].
type Run struct {
	Way, Encoding string
	From, To      int
	eighth        int // where its eighth symbol ends

	r  reading
	at []int // where its symbols begin
	wanted
}

// Must returns the bytes that have to be redacted in a text that arrives in pieces with these ends. What is in front
// of the rest of a hit, and is in another piece, may have been forwarded: up to seven symbols, of an array three
// numbers and a part of the next.
func (v Verdict) Must(ends []int) []bool {
	must := make([]bool, len(v.May))
	for _, n := range v.Runs {
		from := n.From
		for _, end := range ends {
			if end > from && end <= n.eighth {
				from = end
			}
		}
		mark(must, from, n.To)
	}
	return must
}

// Judge searches text in every way.
func (f *Search) Judge(text string) Verdict {
	v := Verdict{May: make([]bool, len(text))}
	for _, w := range ways(text) {
		var runs []Run
		for i, first := range w.reading {
			if !first.is || first.next < 0 || !w.reading[first.next].is {
				continue
			}
			second := w.reading[first.next]
			for _, p := range f.beginning[[2]byte{lowered(first.c), lowered(second.c)}] {
				if p.has && !first.natural {
					continue
				}
				at, ok := w.reading.match(i, p.symbols[p.from:p.to])
				switch {
				case !ok || p.in&w.in == 0 && (p.has || p.in&w.may == 0):
				case !p.has:
					mark(v.May, i, w.reading[at[len(at)-1]].end)
				default:
					runs = extend(runs, Run{Way: w.name, r: w.reading, at: at, wanted: p})
				}
			}
		}
		for _, n := range runs {
			if !w.inLines || n.promised(text) {
				n.Encoding, n.From, n.To = n.symbols, n.at[0], n.r[n.at[len(n.at)-1]].end
				n.eighth = n.r[n.at[min(7, len(n.at)-1)]].end
				v.Runs = append(v.Runs, n)
			}
		}
	}
	return v
}

// extend adds a run, or adds it to one that it overlaps.
func extend(runs []Run, n Run) []Run {
	for i := len(runs) - 1; i >= 0; i-- {
		old := &runs[i]
		if k := slices.Index(old.at, n.at[0]); k >= 0 && old.encoding == n.encoding && old.from+k == n.from {
			old.at = append(old.at[:k:k], n.at...)
			return runs
		}
	}
	return append(runs, n)
}

const base64Characters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/-_"

// promised reports whether the lines and groups of a run are long enough.
func (n *Run) promised(text string) bool {
	groups, lines := []int{1}, true
	for i := 1; i < len(n.at); i++ {
		between := text[n.r[n.at[i-1]].end:n.at[i]]
		if between == "" {
			groups[len(groups)-1]++
			continue
		}
		groups = append(groups, 1)
		if !strings.Contains(between, "\n") && !strings.Contains(between, `\n`) {
			if strings.Trim(between, " \t") != "" {
				return false // an escaped blank
			}
			lines = false
		}
	}
	least := 16
	if lines && n.in == asBase64 {
		least = 8
	}
	// The first group may have begun before the run; the last one of a document may be shorter.
	before := strings.TrimRight(text[:n.at[0]], base64Characters)
	groups[0] += n.at[0] - len(before)
	for i, length := range groups {
		if i < len(groups)-1 && length < least {
			return false
		}
	}
	groups[0] -= n.at[0] - len(before)
	return len(groups) == 1 || lines || slices.Max(groups) >= 16
}

// match returns where the symbols from i on begin if they are those of want.
func (r reading) match(i int, want string) (at []int, ok bool) {
	place := i
	for n := range len(want) {
		if place < 0 || !r[place].is || lowered(r[place].c) != want[n] {
			return nil, false
		}
		place = r[place].next
	}
	at = make([]int, 0, len(want))
	for range len(want) {
		at, i = append(at, i), r[i].next
	}
	return at, true
}

func lowered(c byte) byte {
	if c >= 'A' && c <= 'Z' {
		c += 'a' - 'A'
	}
	return c
}

func mark(bytes []bool, from, to int) {
	for i := from; i < to; i++ {
		bytes[i] = true
	}
}
