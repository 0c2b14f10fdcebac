package budget

import (
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
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
	if next := hold("next"); !next.TryTake(30) {
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
	if other := b.Conn().Hold(nil); !other.TryTake(30) || other.TryTake(30) {
		t.Error("the budget is exceeded, or has no room where it should")
	}
}

func TestWhatWasShedShedsNothing(t *testing.T) {
	b := New(100)
	var shed []string
	hold := func(name string) *Hold { return b.Conn().Hold(func() { shed = append(shed, name) }) }
	first, second := hold("first"), hold("second")
	first.Stall(50)
	second.Stall(50)
	hold("third").TryTake(50)
	if first.TryTake(30) || first.Stall(30) {
		t.Error("what was shed may take bytes")
	}
	if want := []string{"first"}; !slices.Equal(shed, want) {
		t.Errorf("shed %v, want %v", shed, want)
	}
}

func TestAConnectionKeepsToItsShare(t *testing.T) {
	b := New(100)
	other := b.Conn().Hold(func() { t.Error("another connection paid") })
	other.Stall(10)
	c := b.Conn()
	var shed int
	for range 5 {
		h := c.Hold(func() { shed++ })
		if h.Stall(0); !h.TryTake(20) {
			t.Error("it did not make room for itself")
		}
	}
	if shed != 2 || b.Used() != 70 {
		t.Errorf("%d holds were shed and %d bytes are used, want 2 and 70", shed, b.Used())
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
				n := rand.Int64N(300)
				if h.Stall(n) {
					h.Move(n / 2)
					h.Give(n / 4)
				}
				h.Release()
			}
		})
	}
	group.Wait()
	if b.Used() != 0 || b.still != (queue{}) {
		t.Errorf("%d bytes and the holds %+v are left", b.Used(), b.still)
	}
}

// A client that reads its responses stands still for a moment, and may have done so
// for longest.
func TestAConnectionThatHoldsLittleMakesRoomLast(t *testing.T) {
	b := New(1000)
	b.Conn().Hold(func() { t.Error("who holds little made room") }).Stall(20)
	greedy, shed := []*Conn{b.Conn(), b.Conn()}, 0
	for i := range 50 {
		h := greedy[i%2].Hold(func() { shed++ })
		if h.Stall(0); !h.TryTake(40) {
			t.Fatal("there is no room")
		}
	}
	if want := 50 - 980/40; shed != want {
		t.Errorf("%d holds were shed, want %d", shed, want)
	}
}

// On a busy machine an exchange waits for its upstream for longer than others need to
// take all that there is.
func TestAHoldThatAsksForMuchShedsMuchFirst(t *testing.T) {
	b := New(1000)
	waits := b.Conn().Hold(func() { t.Error("an exchange that holds little made room") })
	waits.Stall(12)
	b.Conn().Hold(nil).TryTake(600) // so that an equal share is more than those below have
	shed := 0
	for range 50 {
		h := b.Conn().Hold(func() { shed++ })
		if h.Stall(0); !h.TryTake(10) || !h.TryTake(60) {
			t.Fatal("there is no room")
		}
	}
	if want := 50 - (1000-600-12)/70; shed != want {
		t.Errorf("%d holds were shed, want %d", shed, want)
	}
}

// Shed bytes are in use until they are released: new holds wait for that.
func TestANewHoldWaitsForWhatWasShed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(800)
		var first []*Hold
		for range 4 {
			h := b.Conn().Hold(func() {})
			h.Stall(200)
			first = append(first, h)
		}
		took := make(chan bool, 1)
		go func() { took <- b.Conn().Hold(nil).Take(300) }()
		synctest.Wait()
		if len(took) > 0 || !first[0].Shed() || !first[1].Shed() || first[2].Shed() {
			t.Fatal("it did not shed what it needs, or does not wait for its end")
		}
		first[0].Release()
		synctest.Wait()
		if len(took) > 0 {
			t.Fatal("it did not wait for all that was shed")
		}
		first[1].Release()
		if !<-took {
			t.Error("it has no room although there is some")
		}
		first[2].Stall(0)
		began := time.Now()
		go func() { took <- b.Conn().Hold(nil).Take(200) }()
		if <-took; time.Since(began) != maxWait {
			t.Errorf("it waited for %v for what was never released", time.Since(began))
		}
	})
}

// Connections that hold much may all be moving when one of them wants more.
func TestALargeConnectionShedsNoSmallOne(t *testing.T) {
	b := New(1000)
	b.Conn().Hold(func() { t.Error("who holds little made room") }).Stall(20)
	first, second := b.Conn(), b.Conn()
	if !first.Hold(nil).TryTake(480) || !second.Hold(nil).TryTake(480) {
		t.Fatal("there was no room to begin with")
	}
	if second.Hold(nil).TryTake(30) {
		t.Error("the budget is exceeded")
	}
}

// Holds that wait for shed bytes may be shed themselves. They must not wait for each
// other then.
func TestAHoldThatIsShedWhileItWaitsGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(800)
		first := b.Conn().Hold(func() {})
		first.Stall(400)
		second := b.Conn().Hold(func() {})
		took := make(chan bool, 1)
		began := time.Now()
		go func() { took <- second.Stall(500) }()
		synctest.Wait()
		if !first.Shed() || len(took) > 0 {
			t.Fatal("it does not wait for what was shed")
		}
		b.Conn().Hold(nil).TryTake(450)
		if <-took || time.Since(began) > 0 {
			t.Errorf("it was shed, and went on waiting for %v", time.Since(began))
		}
	})
}

// Holds leave the queue from its beginning, its middle and its end.
func TestTheQueueKeepsItsOrder(t *testing.T) {
	holds := make([]*Hold, 5)
	var q queue
	for i := range holds {
		holds[i] = &Hold{}
		q.push(holds[i])
	}
	for _, left := range [][]int{{0, 1, 2, 3, 4}, {0, 1, 3, 4}, {1, 3, 4}, {1, 3}, {3}, {}} {
		var forth, back []*Hold
		for h := q.first; h != nil; h = h.next {
			forth = append(forth, h)
		}
		for h := q.last; h != nil; h = h.prev {
			back = append(back, h)
		}
		slices.Reverse(back)
		want := []*Hold(nil)
		for _, i := range left {
			want = append(want, holds[i])
		}
		if !slices.Equal(forth, want) || !slices.Equal(back, want) {
			t.Fatalf("%d and %d holds, want those of %v", len(forth), len(back), left)
		}
		for _, gone := range []int{2, 0, 4, 1, 3} {
			if holds[gone].still {
				q.remove(holds[gone])
				break
			}
		}
	}
}

func TestStandingStillAllocatesNothing(t *testing.T) {
	h := New(0).Conn().Hold(nil)
	if n := testing.AllocsPerRun(100, func() { h.Stall(10); h.Move(10) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
