package reference

import (
	"slices"
	"strings"
)

// reading is one way to read a text: by the byte at which it begins, the symbol that is read there.
type reading []symbol

// symbol is what some bytes of a text stand for.
type symbol struct {
	is      bool // a symbol begins here
	c       byte
	end     int  // behind its last byte
	next    int  // where the following symbol begins, behind what does not count; -1: the run of symbols ends here
	natural bool // reading the text from its beginning leads here
}

// plain reads each byte as itself.
func plain(text string) reading {
	r := make(reading, len(text)+1)
	for i := range len(text) {
		r[i] = symbol{is: true, c: text[i], end: i + 1, next: i + 1, natural: true}
	}
	return r
}

// ahead returns the places of the next n symbols, from i on, and the symbols.
func (r reading) ahead(i, n int) (at []int, text string) {
	var symbols []byte
	for ; len(at) < n && i >= 0 && r[i].is; i = r[i].next {
		at, symbols = append(at, i), append(symbols, r[i].c)
	}
	return at, string(symbols)
}

// hasAny reports whether some symbol is one of chars.
func (r reading) hasAny(chars string) bool {
	return slices.ContainsFunc(r, func(s symbol) bool { return s.is && strings.IndexByte(chars, s.c) >= 0 })
}

// longestEscape is the length of &#x0000000; and more than that of any other escape.
const longestEscape = 13

// decoded reads one layer of escapes. parse returns what the escape at the beginning of a text stands for, and its
// length; 0 if there is none.
func (r reading) decoded(parse func(string) (byte, int)) reading {
	d := make(reading, len(r))
	for i := range r {
		d[i] = r[i]
		if !strings.ContainsRune(`%\&`, rune(r[i].c)) {
			continue
		}
		at, text := r.ahead(i, longestEscape)
		if c, n := parse(text); n > 0 {
			last := r[at[n-1]]
			d[i].c, d[i].end, d[i].next = c, last.end, last.next
		}
	}
	d.markNatural()
	return d
}

// markNatural marks the symbols that are read from the beginning of the text on.
func (r reading) markNatural() {
	for i := range r {
		r[i].natural = false
	}
	for i := 0; i < len(r); i = max(i+1, r[i].next) {
		r[i].natural = r[i].is
	}
}

// quotedPrintable reads =NN, and skips soft line breaks.
func (r reading) quotedPrintable() reading {
	soft := func(i int) int { // where the text goes on behind the soft line breaks at i
		for i >= 0 {
			at, text := r.ahead(i, 3)
			switch {
			case strings.HasPrefix(text, "=\r\n"):
				i = r[at[2]].next
			case strings.HasPrefix(text, "=\n"):
				i = r[at[1]].next
			default:
				return i
			}
		}
		return i
	}
	q := make(reading, len(r))
	for i := range r {
		q[i] = r[i]
		if to := soft(i); r[i].is && to != i {
			q[i] = symbol{next: to}
			continue
		}
		if at, text := r.ahead(i, 3); len(at) == 3 && text[0] == '=' && digitsOf(text[1:], 2, 16) >= 0 {
			q[i].c, q[i].end, q[i].next = byte(digitsOf(text[1:], 2, 16)), r[at[2]].end, r[at[2]].next
		}
		if q[i].is {
			q[i].next = soft(q[i].next)
		}
	}
	q.markNatural()
	return q
}

// over skips, between two symbols of k, up to most symbols of r that are in gaps. With prefixes, the 0x and \x in front
// of the digits of a byte are gaps as well.
func (k reading) over(r reading, gaps string, most int, prefixes bool) reading {
	for i := range k {
		if !k[i].is {
			continue
		}
		gap, to := 0, k[i].next
		for to >= 0 && gap <= most {
			if prefixes && r.isPrefix(to) {
				gap += 2
				to = r[r[to].next].next
			} else if r[to].is && strings.IndexByte(gaps, r[to].c) >= 0 {
				gap++
				to = r[to].next
			} else {
				break
			}
		}
		if k[i].next = to; to < 0 || gap > most || !k[to].is {
			k[i].next = -1
		}
	}
	return k
}

// isPrefix reports whether 0x or \x begins at i.
func (r reading) isPrefix(i int) bool {
	if !r[i].is || r[i].c != '0' && r[i].c != '\\' {
		return false
	}
	_, text := r.ahead(i, 2)
	return len(text) == 2 && (text[0] == '0' || text[0] == '\\') && text[1]|0x20 == 'x'
}

// joined reads base64 or base32 in lines or groups.
func (r reading) joined() reading {
	const white = " \t\r\n"
	j := slices.Clone(r)
	for i := range j {
		j[i].is = r[i].is && strings.IndexByte(white, r[i].c) < 0
		j[i].natural = j[i].is && r[i].natural
	}
	return j.over(r, white, 8, false)
}

// hexDigits reads the digits of a dump.
func (r reading) hexDigits() reading {
	d := slices.Clone(r)
	for i := range d {
		d[i].is = r[i].is && digitsOf(string(r[i].c), 1, 16) >= 0 && !r.isPrefix(i)
		d[i].natural = d[i].is && r[i].natural
	}
	return d.over(r, ": -,;\\\t\r\n\"'", 8, true)
}

// numbers reads an array of decimal numbers.
func (r reading) numbers() reading {
	digit := func(c byte) bool { return c >= '0' && c <= '9' }
	n := make(reading, len(r))
	for i := range r {
		if !r[i].is || !digit(r[i].c) {
			continue
		}
		at, text := r.ahead(i, 40)
		length := 0
		for length < len(text) && digit(text[length]) {
			length++
		}
		last := r[at[length-1]]
		n[i] = symbol{is: true, c: byte(digitsOf(text, length, 10)), end: last.end, next: last.next}
	}
	for i := 0; i < len(r); i = max(i+1, r[i].next) { // the rest of a number is none
		if n[i].natural = n[i].is && r[i].natural; n[i].natural {
			for r[i].next >= 0 && n[r[i].next].is {
				i = r[i].next
			}
		}
	}
	return n.over(r, ", \t\r\n;:\"'", 16, false)
}
