package chain

import (
	"cmp"
	"crypto/sha256"
	"maps"

	"github.com/oklog/ulid/v2"
)

// MaxOpen bounds the intents without an outcome that are in memory.
const MaxOpen = 1 << 16

// OpenIntents is the set of the intents without an outcome so far.
type OpenIntents struct {
	Seqs  map[[16]byte]int64
	early map[[16]byte]bool // outcomes of intents that may be in the rows before; nil: there are none before
	most  int
	Full  int64 // the first row that did not fit; 0: all did
}

func NewOpenIntents(most int) *OpenIntents {
	return &OpenIntents{Seqs: map[[16]byte]int64{}, most: most}
}

// OpenIntentsBehind returns a set for rows behind those of another one, which Join adds to that.
func OpenIntentsBehind(most int) *OpenIntents {
	o := NewOpenIntents(most)
	o.early = map[[16]byte]bool{}
	return o
}

// Add processes the next row of the log.
func (o *OpenIntents) Add(seq int64, event Event, request string) {
	if request == "" {
		return
	}
	key := requestKey(request)
	switch {
	case event != EventProxyStarted:
		o.addOutcome(seq, key)
	case o.Full > 0:
	case len(o.Seqs) == o.most:
		o.Full = seq
	default:
		o.Seqs[key] = seq
	}
}

func (o *OpenIntents) addOutcome(seq int64, key [16]byte) {
	before := len(o.Seqs)
	if delete(o.Seqs, key); o.early == nil || len(o.Seqs) < before {
		return
	}
	if o.early[key] = true; len(o.early) > o.most {
		o.Full = cmp.Or(o.Full, seq)
		clear(o.early)
	}
}

// Join adds the rows of a set of OpenIntentsBehind, which follow those of o.
func (o *OpenIntents) Join(next *OpenIntents) {
	for key := range next.early {
		delete(o.Seqs, key)
	}
	maps.Copy(o.Seqs, next.Seqs)
	o.Full = cmp.Or(o.Full, next.Full)
}

// requestKey returns a request's id in 16 bytes.
func requestKey(id string) [16]byte {
	if u, err := ulid.ParseStrict(id); err == nil {
		return u
	}
	sum := sha256.Sum256([]byte(id))
	return [16]byte(sum[:16])
}
