package chain

import (
	"crypto/sha256"

	"github.com/oklog/ulid/v2"
)

// MaxOpen bounds the intents without an outcome that are in memory.
const MaxOpen = 1 << 16

// OpenIntents is the set of the intents without an outcome so far.
type OpenIntents struct {
	Seqs map[[16]byte]int64
	most int
	Full int64 // the first intent that did not fit; 0: all did
}

func NewOpenIntents(most int) *OpenIntents {
	return &OpenIntents{Seqs: map[[16]byte]int64{}, most: most}
}

// Add processes the next row of the log.
func (o *OpenIntents) Add(seq int64, event Event, request string) {
	if request == "" {
		return
	}
	key := requestKey(request)
	switch {
	case event != EventProxyStarted:
		delete(o.Seqs, key)
	case o.Full > 0:
	case len(o.Seqs) == o.most:
		o.Full = seq
	default:
		o.Seqs[key] = seq
	}
}

// requestKey returns a request's id in 16 bytes.
func requestKey(id string) [16]byte {
	if u, err := ulid.ParseStrict(id); err == nil {
		return u
	}
	sum := sha256.Sum256([]byte(id))
	return [16]byte(sum[:16])
}
