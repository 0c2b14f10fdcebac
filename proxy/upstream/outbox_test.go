package upstream

import (
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
)

// heldWrites records writes. Each waits until the test releases it.
type heldWrites struct {
	began   chan string
	release chan error
}

func (h *heldWrites) write(p []byte) (int, error) {
	h.began <- string(p)
	return len(p), <-h.release
}

func heldOutbox(exchanges int32) (*outbox, *heldWrites) {
	h := &heldWrites{began: make(chan string), release: make(chan error)}
	o := newOutbox(h.write)
	o.exchanges.Store(exchanges)
	return o, h
}

func put(t *testing.T, o *outbox, p string, want bool) {
	t.Helper()
	if taken, err := o.put([]byte(p)); err != nil || taken != want {
		t.Fatalf("put(%.20q) = %t, %v, want %t", p, taken, err, want)
	}
}

func TestPiecesOfABusyConnectionShareAWrite(t *testing.T) {
	o, h := heldOutbox(2)
	put(t, o, "a", true)
	got := []string{<-h.began}
	for _, p := range []string{"b", "c", "d"} {
		put(t, o, p, true)
	}
	h.release <- nil
	got = append(got, <-h.began)
	h.release <- nil
	if want := []string{"a", "bcd"}; !slices.Equal(got, want) {
		t.Errorf("the writes were %q, want %q", got, want)
	}
}

func TestALoneExchangeNeverWaits(t *testing.T) {
	o, _ := heldOutbox(1)
	put(t, o, "a", false)
}

// What is too large to wait comes after what waits, and the outbox is bounded.
func TestTheOutboxKeepsTheOrder(t *testing.T) {
	for name, next := range map[string]struct {
		piece string
		taken bool
	}{
		"a large piece":             {strings.Repeat("L", outboxPiece+1), false},
		"a piece that does not fit": {strings.Repeat("S", outboxPiece), true},
	} {
		t.Run(name, func(t *testing.T) {
			o, h := heldOutbox(2)
			put(t, o, "a", true)
			<-h.began
			for range pieceSize / outboxPiece {
				put(t, o, strings.Repeat("b", outboxPiece), true)
			}
			done := make(chan struct{})
			go func() {
				defer close(done)
				put(t, o, next.piece, next.taken)
			}()
			o.mu.Lock()
			if waits := len(*o.buf); waits != pieceSize {
				t.Errorf("%d bytes wait, want %d", waits, pieceSize)
			}
			o.mu.Unlock()
			h.release <- nil
			if p := <-h.began; len(p) != pieceSize {
				t.Errorf("%d bytes were written, want %d", len(p), pieceSize)
			}
			if !next.taken { // it waits for the end of the write
				select {
				case <-done:
					t.Error("a large piece overtook what waited")
				default:
				}
			}
			h.release <- nil
			if next.taken {
				if p := <-h.began; p != next.piece {
					t.Errorf("%d bytes were written, want %d", len(p), len(next.piece))
				}
				h.release <- nil
			}
			<-done
		})
	}
}

func TestAWriteThatFailsEndsTheOutbox(t *testing.T) {
	o, h := heldOutbox(2)
	put(t, o, "a", true)
	<-h.began
	put(t, o, "b", true)
	h.release <- io.ErrClosedPipe
	if taken, err := o.put([]byte(strings.Repeat("c", outboxPiece+1))); taken || !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("put = %t, %v, want %v", taken, err, io.ErrClosedPipe)
	}
}
