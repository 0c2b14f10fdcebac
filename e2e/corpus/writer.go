package corpus

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"maps"
	"math/rand/v2"
	"strconv"
	"strings"
)

// part is a part of a template: a text, or what is written in its place.
//
//	~w~ a word   ~words 3-9~ three to nine   ~letters~ two letters   ~<100~ a number below 100
//	~hex 20~ and ~base64 20~ twenty random bytes   ~dump~ sixteen, as hexdump -C prints them
//	~node KIND~ the identifier of a node in a graph, as code hosts have them
//	~time~ a moment, and ~fine~ one with milliseconds   ~version~ a number of the record
//	~name~, ~repo~, ~sha~ are the same throughout a record
type part struct {
	text, verb  string
	least, most int
}

// compile reads templates.
func compile(first, second map[string][]string) map[string][][]part {
	all, texts := map[string][][]part{}, maps.Clone(first)
	maps.Copy(texts, second)
	for name, list := range texts {
		for _, text := range list {
			var parts []part
			for i, piece := range strings.Split(text, "~") {
				p := part{text: piece, least: 1, most: 1}
				if i%2 == 1 {
					p = compiled(piece)
				}
				parts = append(parts, p)
			}
			all[name] = append(all[name], parts)
		}
	}
	return all
}

// compiled reads what stands between two ~.
func compiled(piece string) part {
	verb, bounds, _ := strings.Cut(piece, " ")
	if below, ok := strings.CutPrefix(verb, "<"); ok {
		verb, bounds = "<", below
	}
	p := part{text: bounds, verb: verb, least: 1, most: 1}
	least, most, _ := strings.Cut(bounds, "-")
	if n, err := strconv.Atoi(least); err == nil {
		p.least, p.most = n, n
	}
	if n, err := strconv.Atoi(most); err == nil {
		p.most = n
	}
	return p
}

// writer appends random values to a body.
type writer struct {
	b     []byte
	r     *rand.Rand
	words []string
	n     int // records so far
}

func newWriter(seed uint64, size int) *writer {
	return &writer{b: make([]byte, 0, size+4<<10), r: rand.New(rand.NewPCG(seed, 0x636f72707573)),
		words: strings.Fields(vocabulary)}
}

// vocabulary is the words of all prose, the frequent ones more than once.
const vocabulary = `the the the the a a a of of of to to to and and and in in is is it it that for for on on with as at
be by this this are was not not or from an if we we can you has have when when but all there should which will no only
does after before same each one two more other than then into over also any its our they use uses used using new old
error errors fails failed failing test tests build builds fix fixes fixed adds added removes change changes changed
value values string strings number list map array object field fields type types method function call calls caller
request requests response header headers body stream server client connection timeout retry retries cache cached file
files path paths directory module package packages version versions release branch commit merge review comment issue
label milestone token user users account session key keys config option options default flag flags command output log
logs message line lines page pages link links table column row query index search result results read reads write
writes open close start stop run runs wait waits lock memory buffer byte bytes size limit bound loop race deadlock
panic nil null empty missing wrong broken slow fast large small first last next previous current together instead
because however although behind between without inside documentation example reproduce expected actual behaviour
platform container image workflow pipeline deploy deployment environment variable secret permission policy dependency
upgrade downgrade deprecated interface implementation performance regression benchmark allocation throughput latency`

func (w *writer) word() string { return w.words[w.r.IntN(len(w.words))] }

// write writes a record of a name.
func (w *writer) write(name string) {
	choices := templates[name]
	var own map[string]string
	for _, p := range choices[w.r.IntN(len(choices))] {
		if p.verb == "" {
			w.b = append(w.b, p.text...)
			continue
		}
		w.fill(p, &own)
	}
}

// fill writes what a part stands for; own are the values that its record repeats.
func (w *writer) fill(p part, own *map[string]string) {
	switch p.verb {
	case "w":
		w.b = append(w.b, w.word()...)
	case "words":
		for i := range p.least + w.r.IntN(p.most-p.least+1) {
			if i > 0 {
				w.b = append(w.b, ' ')
			}
			w.b = append(w.b, w.word()...)
		}
	case "letters":
		w.b = append(w.b, byte('a'+w.r.IntN(26)), byte('A'+w.r.IntN(26)))
	case "<":
		w.b = strconv.AppendInt(w.b, int64(w.r.IntN(p.most)), 10)
	case "hex":
		w.b = hex.AppendEncode(w.b, w.bytes(p.most))
	case "base64":
		w.b = base64.StdEncoding.AppendEncode(w.b, w.bytes(p.most))
	case "node":
		w.b = base64.StdEncoding.AppendEncode(w.b, fmt.Appendf(nil, "0%d:%s%d", len(p.text), p.text, w.r.IntN(1<<30)))
	case "dump":
		line := w.bytes(16)
		w.b = fmt.Appendf(w.b, "%08x: % x  %s", 16*w.n, line, strings.Map(printable, string(line)))
	case "time", "fine":
		w.time(p.verb == "fine")
	case "version":
		w.b = fmt.Appendf(w.b, "%d.%d.%d", w.n/200, w.n/10%20, w.n%10)
	case "name", "repo", "sha":
		w.b = append(w.b, w.own(p.verb, own)...)
	default:
		for range p.least + w.r.IntN(p.most-p.least+1) {
			w.write(p.verb)
		}
	}
}

// own returns a value that a record repeats.
func (w *writer) own(verb string, own *map[string]string) string {
	if *own == nil {
		*own = map[string]string{"name": w.word() + "-" + w.word(), "repo": w.word() + "/" + w.word(),
			"sha": hex.EncodeToString(w.bytes(20))}
	}
	return (*own)[verb]
}

func printable(r rune) rune {
	if r < ' ' || r > '~' {
		return '.'
	}
	return r
}

// random fills p.
func (w *writer) random(p []byte) {
	for ; len(p) >= 8; p = p[8:] {
		binary.LittleEndian.PutUint64(p, w.r.Uint64())
	}
	for i := range p {
		p[i] = byte(w.r.Uint32())
	}
}

// bytes returns n random bytes.
func (w *writer) bytes(n int) []byte {
	p := make([]byte, n)
	w.random(p)
	return p
}

// time writes a moment of the year 2025.
func (w *writer) time(fraction bool) {
	w.b = append(w.b, "2025"...)
	for _, unit := range []struct {
		before       byte
		least, below int
	}{{'-', 1, 12}, {'-', 1, 28}, {'T', 0, 24}, {':', 0, 60}, {':', 0, 60}} {
		n := unit.least + w.r.IntN(unit.below)
		w.b = append(w.b, unit.before, byte('0'+n/10), byte('0'+n%10))
	}
	if n := w.r.IntN(1000); fraction {
		w.b = append(w.b, '.', byte('0'+n/100), byte('0'+n/10%10), byte('0'+n%10))
	}
	w.b = append(w.b, 'Z')
}
