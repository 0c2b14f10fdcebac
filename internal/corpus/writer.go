package corpus

import (
	"encoding/base64"
	"encoding/hex"
	"math/rand/v2"
	"strconv"
	"strings"
)

// writer appends random values to a body.
type writer struct {
	b     []byte
	r     *rand.Rand
	words []string
	n     int // records so far
}

func newWriter(seed uint64, size int) *writer {
	//nolint:gosec // the bodies have to be the same each time
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

// begin writes what stands before a record.
func (w *writer) begin(first, other string) {
	if w.n++; w.n == 1 {
		w.text(first)
	} else {
		w.text(other)
	}
}

func (w *writer) text(s ...string) {
	for _, part := range s {
		w.b = append(w.b, part...)
	}
}

func (w *writer) int(n int) { w.b = strconv.AppendInt(w.b, int64(n), 10) }

// below writes a number below n.
func (w *writer) below(n int) { w.int(w.r.IntN(n)) }

// digits writes n below 10^width with leading zeros.
func (w *writer) digits(n, width int) {
	for range width {
		w.b = append(w.b, '0')
	}
	for i := len(w.b) - 1; n > 0; i, n = i-1, n/10 {
		w.b[i] = byte('0' + n%10)
	}
}

// chance reports whether a thing that happens once in n times happens now.
func (w *writer) chance(n int) bool { return w.r.IntN(n) == 0 }

func (w *writer) pick(s ...string) { w.text(s[w.r.IntN(len(s))]) }

func (w *writer) word() string { return w.words[w.r.IntN(len(w.words))] }

// prose writes some words.
func (w *writer) prose(least, most int) {
	for i := range least + w.r.IntN(most-least+1) {
		if i > 0 {
			w.text(" ")
		}
		w.text(w.word())
	}
}

// name writes a name of two or three words.
func (w *writer) name(sep string) {
	w.text(w.word(), sep, w.word())
	if w.chance(2) {
		w.text(sep)
		w.below(100)
	}
}

// random fills p.
func (w *writer) random(p []byte) {
	for len(p) >= 8 {
		v := w.r.Uint64()
		p[0], p[1], p[2], p[3] = byte(v), byte(v>>8), byte(v>>16), byte(v>>24)
		p[4], p[5], p[6], p[7] = byte(v>>32), byte(v>>40), byte(v>>48), byte(v>>56)
		p = p[8:]
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

func (w *writer) hex(n int) { w.b = hex.AppendEncode(w.b, w.bytes(n)) }

func (w *writer) base64(n int) { w.b = base64.StdEncoding.AppendEncode(w.b, w.bytes(n)) }

func (w *writer) uuid() {
	for i, n := range [...]int{4, 2, 2, 2, 6} {
		if i > 0 {
			w.text("-")
		}
		w.hex(n)
	}
}

// node writes an identifier of a node in a graph, as code hosts do: base64 of a type and a number.
func (w *writer) node(kind string) {
	id := strconv.AppendInt([]byte("0"+strconv.Itoa(len(kind))+":"+kind), int64(w.r.IntN(1<<30)), 10)
	w.b = base64.StdEncoding.AppendEncode(w.b, id)
}

// time writes a moment of the year 2025.
func (w *writer) time(fraction bool) {
	w.text("2025-")
	w.digits(1+w.r.IntN(12), 2)
	w.text("-")
	w.digits(1+w.r.IntN(28), 2)
	w.text("T")
	w.clock()
	if fraction {
		w.text(".")
		w.digits(w.r.IntN(1000), 3)
	}
	w.text("Z")
}

func (w *writer) clock() {
	w.digits(w.r.IntN(24), 2)
	w.text(":")
	w.digits(w.r.IntN(60), 2)
	w.text(":")
	w.digits(w.r.IntN(60), 2)
}
