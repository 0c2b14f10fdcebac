package budget

import (
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
)

func TestWhatStandsStillForLongestMakesRoom(t *testing.T) {
	b := New(100)
	var shed []string
	hold := func(name string) *Hold { return b.Conn().Hold(func() { shed = append(shed, name) }) }
	oldest, second, moving, third := hold("oldest"), hold("second"), hold("moving"), hold("third")
	for _, h := range []*Hold{oldest, second, moving, third} {
		if !h.Stall(25) {
			t.Fatal("an empty budget has no room")
		}
	}
	moving.Move(0)
	oldest.Move(0)
	oldest.Stall(0) // it went on, and stands still since then
	if next := hold("next"); !next.Take(30) {
		t.Error("nothing made room")
	}
	if want := []string{"second", "third"}; !slices.Equal(shed, want) {
		t.Errorf("shed %v, want %v", shed, want)
	}
	if !second.Shed() || second.Take(1) {
		t.Error("what was shed may take bytes")
	}
	second.Release()
	if got := b.Used(); got != 80 {
		t.Errorf("%d bytes are used, want 80", got)
	}
}

func TestWhatMovesIsNeverShed(t *testing.T) {
	b := New(100)
	h := b.Conn().Hold(func() { t.Error("it was shed") })
	h.Take(50)
	if other := b.Conn().Hold(nil); other.Take(30) != true || other.Take(30) {
		t.Error("the budget is exceeded, or has no room where it should")
	}
}

func TestAConnectionKeepsToItsShare(t *testing.T) {
	b := New(100)
	other := b.Conn().Hold(func() { t.Error("another connection paid") })
	other.Stall(10)
	c := b.Conn()
	var shed int
	for range 5 {
		if h := c.Hold(func() { shed++ }); !h.Stall(20) {
			t.Error("it did not make room for itself")
		}
	}
	if shed != 3 || b.Used() != 50 {
		t.Errorf("%d holds were shed and %d bytes are used, want 3 and 50", shed, b.Used())
	}
}

func TestAllThatIsTakenComesBack(t *testing.T) {
	b := New(1 << 10)
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			c := b.Conn()
			for range 2000 {
				h := c.Hold(func() {})
				n := rand.Int64N(300) //nolint:gosec // any will do
				if h.Stall(n) {
					h.Move(n / 2)
					h.Give(n / 4)
				}
				h.Release()
			}
		})
	}
	group.Wait()
	if b.Used() != 0 || b.still.Len() != 0 {
		t.Errorf("%d bytes and %d holds are left", b.Used(), b.still.Len())
	}
}
