package chain

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"
)

// Sets of consecutive rows, joined, are the set of all of them.
func TestJoinedIntentsAreThoseOfAllRows(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		parts := 1 + random.IntN(4)
		whole, joined := NewOpenIntents(MaxOpen), NewOpenIntents(MaxOpen)
		var seq int64
		for part := range parts {
			one := joined
			if part > 0 {
				one = OpenIntentsBehind(MaxOpen)
			}
			for range random.IntN(30) {
				seq++
				event := EventProxyUnknown
				request := fmt.Sprint("outcome of none ", seq)
				if id := random.Int64N(seq); id%2 == 1 {
					event, request = EventProxyStarted, fmt.Sprint(seq)
				} else if id > 3 {
					request = fmt.Sprint(id)
				}
				whole.Add(seq, event, request)
				one.Add(seq, event, request)
			}
			if part > 0 {
				joined.Join(one)
			}
		}
		if !maps.Equal(joined.Seqs, whole.Seqs) || joined.Full != 0 {
			t.Fatalf("%d intents are open, want %d", len(joined.Seqs), len(whole.Seqs))
		}
	}
}

// A set that cannot remember each outcome whose intent is before its rows is not complete.
func TestTooManyEarlyOutcomesAreNotForgotten(t *testing.T) {
	first, next := NewOpenIntents(2), OpenIntentsBehind(2)
	for seq := range int64(3) {
		next.Add(seq+10, EventProxyUnknown, fmt.Sprint("request ", seq))
	}
	if first.Join(next); first.Full != 12 {
		t.Errorf("row %d did not fit, want 12", first.Full)
	}
	alone := NewOpenIntents(2)
	for seq := range int64(3) {
		alone.Add(seq+10, EventProxyUnknown, fmt.Sprint("request ", seq))
	}
	if alone.Full != 0 {
		t.Errorf("row %d did not fit, want none: no rows are before them", alone.Full)
	}
}
