package daybook_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/internal/daybook"
	"github.com/ALRubinger/aileron/internal/format"
	"github.com/ALRubinger/aileron/proxy/meter"
)

// home is the budgets of a home, whose sessions share a clock.
type home struct {
	t    *testing.T
	dir  string
	now  time.Time
	dead map[string]bool
}

func newHome(t *testing.T) *home {
	return &home{t, t.TempDir(), time.Date(2026, 3, 9, 23, 0, 0, 0, time.Local), map[string]bool{}}
}

// ledger returns that of a session with limits of the day.
func (h *home) ledger(session string, day meter.Limits) *meter.Ledger {
	return h.limited(session, meter.Options{Day: day})
}

func (h *home) limited(session string, o meter.Options) *meter.Ledger {
	h.t.Helper()
	book := must.Get(daybook.Open(daybook.Options{Dir: h.dir, Session: session,
		Alive: func(id string) bool { return !h.dead[id] }, Now: func() time.Time { return h.now },
		SaveAfter: time.Hour}))(h.t)
	h.t.Cleanup(book.Close)
	o.Book = book
	o.Warn = func(err error) { h.t.Error(err) }
	return meter.New(o)
}

func use(t *testing.T, l *meter.Ledger, binding string, tokens int64) {
	t.Helper()
	charge, err := l.Admit([]string{"tokens"}, binding)
	if err != nil {
		t.Fatal(err)
	}
	charge.Settle(map[string]int64{"tokens": tokens, meter.Requests: 1})
}

// refused wants the error for a limit.
func refused(t *testing.T, l *meter.Ledger, binding string, want meter.Over) {
	t.Helper()
	_, err := l.Admit([]string{"tokens"}, binding)
	var over *meter.Over
	if !errors.As(err, &over) || *over != want {
		t.Errorf("Admit: %v (%+v), want %+v", err, over, want)
	}
}

func TestSessionsShareTheBudgetOfADay(t *testing.T) {
	h := newHome(t)
	limits := meter.Limits{"tokens": 100}
	var noticed []meter.Notice
	notice := func(n meter.Notice) { noticed = append(noticed, n) }
	a := h.limited("A", meter.Options{Day: limits, Notice: notice})
	b := h.limited("B", meter.Options{Day: limits, Notice: notice})
	use(t, a, "", 50)
	use(t, b, "", 40)
	use(t, a, "", 20)
	want := meter.Over{Budget: meter.OfDay, Name: "tokens", Used: 110, Limit: 100, Wait: time.Hour}
	refused(t, a, "", want)
	refused(t, b, "", want)
	refused(t, h.ledger("C", limits), "", want)
	if len(noticed) != 2 || noticed[0].Percent != 80 || noticed[1].Percent != 100 || noticed[1].Used != 110 {
		t.Errorf("noticed: %+v, want 80 and 100 percent once each, whichever session it was", noticed)
	}
	use(t, h.ledger("D", meter.Limits{"tokens": 1000}), "", 1) // the owner has raised it
}

// A session that was killed has used what had ended, and of what was under way as much as the largest; the rest comes
// back to the others.
func TestWhatAKilledSessionHadUnderWayIsCounted(t *testing.T) {
	h := newHome(t)
	limits := meter.Limits{"tokens": 160, meter.Requests: 100}
	killed, other := h.ledger("KILLED", limits), h.ledger("OTHER", limits)
	use(t, killed, "", 1)
	for range 16 {
		if _, err := killed.Admit([]string{"tokens"}, ""); err != nil {
			t.Fatal(err)
		}
	}
	charge := must.Get(other.Admit([]string{"tokens"}, ""))(t)
	refused(t, other, "", meter.Over{Budget: meter.OfDay, Name: "tokens", Used: 1, Limit: 160, Wait: time.Second,
		UnderWay: true})
	charge.Settle(nil)
	h.dead["KILLED"] = true
	next := h.ledger("NEXT", limits) // looks for those that were killed
	use(t, next, "", 142)
	use(t, other, "", 1) // 1 + 16 + 142 + 1
	refused(t, next, "", meter.Over{Budget: meter.OfDay, Name: "tokens", Used: 160, Limit: 160, Wait: time.Hour})
}

// Midnight begins a new day. What is under way counts where it began, and a clock that is set back finds what was used.
func TestADayEndsAtMidnight(t *testing.T) {
	h := newHome(t)
	limits := meter.Limits{"tokens": 100}
	l := h.ledger("A", limits)
	night, err := l.Admit([]string{"tokens"}, "")
	if err != nil {
		t.Fatal(err)
	}
	use(t, l, "", 90)
	h.now = h.now.Add(2 * time.Hour)
	use(t, l, "", 60)
	night.Settle(map[string]int64{"tokens": 20})
	use(t, l, "", 39)
	h.now = h.now.Add(-2 * time.Hour)
	refused(t, l, "", meter.Over{Budget: meter.OfDay, Name: "tokens", Used: 110, Limit: 100, Wait: time.Hour})
	h.now = h.now.Add(2 * time.Hour)
	use(t, l, "", 1)
	refused(t, l, "", meter.Over{Budget: meter.OfDay, Name: "tokens", Used: 100, Limit: 100, Wait: 23 * time.Hour})
}

// A credential has a budget of its own, and what carries another does not count.
func TestACredentialHasABudget(t *testing.T) {
	h := newHome(t)
	work := "api_key/model/work"
	l := h.limited("A", meter.Options{Bindings: map[string]meter.Limits{work: {"tokens": 10}}})
	use(t, l, "api_key/model/home", 50)
	use(t, l, work, 10)
	refused(t, l, work, meter.Over{Budget: meter.OfBinding, Name: "tokens", Used: 10, Limit: 10, Wait: time.Hour})
	use(t, l, "api_key/model/home", 50)
}

// Of sessions that send at once, no more gets through than the limit, and all of it does.
func TestSessionsAtOnceGetTheLimitTogether(t *testing.T) {
	h := newHome(t)
	var sessions sync.WaitGroup
	var mu sync.Mutex
	admitted := 0
	for _, session := range []string{"A", "B", "C", "D"} {
		l := h.ledger(session, meter.Limits{meter.Requests: 500})
		sessions.Go(func() {
			for range 200 {
				charge, err := l.Admit(nil, "")
				if err != nil {
					continue
				}
				charge.Settle(map[string]int64{meter.Requests: 1})
				mu.Lock()
				admitted++
				mu.Unlock()
			}
		})
	}
	sessions.Wait()
	if admitted != 500 {
		t.Errorf("%d of 800 requests of four sessions were admitted, want 500", admitted)
	}
}

// One session has the accounts at a time, and a process that is stopped while it has them does not stop the others.
func TestALockedFileIsNotWaitedForWithoutEnd(t *testing.T) {
	h := newHome(t)
	open := func(session string) *daybook.Book {
		book := must.Get(daybook.Open(daybook.Options{Dir: h.dir, Session: session,
			Alive: func(string) bool { return true }, Now: func() time.Time { return h.now }}))(t)
		t.Cleanup(book.Close)
		return book
	}
	a, b := open("A"), open("B")
	var inside error
	must.Do(t, a.Change("2026-03-09", func(meter.Accounts) bool {
		inside = b.Change("2026-03-09", func(meter.Accounts) bool { return true })
		return false
	}))
	if inside == nil || !strings.Contains(inside.Error(), "another session keeps it locked") {
		t.Errorf("Change while another session has the accounts: %v", inside)
	}
}

// A write that was cut off leaves the change before it; a file that cannot be read denies.
func TestATornFile(t *testing.T) {
	h := newHome(t)
	limits := meter.Limits{"tokens": 100}
	l := h.ledger("A", limits)
	use(t, l, "", 60)
	use(t, l, "", 39)
	path := filepath.Join(h.dir, "2026-03-09")
	raw := must.Get(os.ReadFile(path))(t)
	second := len(raw) > 512<<10
	if !second {
		t.Fatal("there is no second image")
	}
	newest := 0
	if strings.Count(string(raw[:200]), "use 99 ") == 0 {
		newest = 512 << 10
	}
	raw[newest+82]++
	must.Do(t, os.WriteFile(path, raw, 0o600))
	b := h.ledger("B", limits)
	must.Get(b.Admit([]string{"tokens"}, ""))(t)
	refused(t, b, "", meter.Over{Budget: meter.OfDay, Name: "tokens", Used: 60, Limit: 100,
		Wait: time.Second, UnderWay: true}) // as it was while the second request of A was under way
	raw[82], raw[512<<10+82] = 'x', 'x'
	must.Do(t, os.WriteFile(path, raw, 0o600))
	again := daybook.Options{Dir: h.dir, Session: "C", Now: func() time.Time { return h.now }}
	if _, err := daybook.Open(again); err == nil || !strings.Contains(err.Error(), "is damaged") {
		t.Errorf("Open of a damaged file: %v", err)
	}
	must.Do(t, os.WriteFile(path, []byte("aileron-budgets 2 1 0 0"+strings.Repeat(" ", 60)), 0o600))
	if _, err := l.Admit([]string{"tokens"}, ""); !errors.As(err, new(*format.Error)) {
		t.Errorf("Admit with a newer file: %v", err)
	}
}

// A power cut may take back what the system has not written, in both images of a file: its copy is on the disk.
func TestAPowerCutLeavesTheCopy(t *testing.T) {
	h := newHome(t)
	limits := meter.Limits{"tokens": 100}
	open := func(t *testing.T, session string) (*daybook.Book, *meter.Ledger) {
		t.Helper()
		book := must.Get(daybook.Open(daybook.Options{Dir: h.dir, Session: session,
			Alive: func(string) bool { return true }, Now: func() time.Time { return h.now }, SaveAfter: time.Hour}))(t)
		t.Cleanup(book.Close)
		return book, meter.New(meter.Options{Day: limits, Book: book, Warn: func(err error) { t.Error(err) }})
	}
	book, l := open(t, "A")
	use(t, l, "", 30)
	path := filepath.Join(h.dir, "2026-03-09")
	before := must.Get(os.ReadFile(path))(t)
	use(t, l, "", 30)
	book.Close()
	saved := must.Get(os.ReadFile(path + ".saved"))(t)
	for why, raw := range map[string][]byte{
		"older": before,
		"torn": slices.Concat(make([]byte, 82), []byte("x"), make([]byte, 512<<10-83),
			[]byte("aileron-budgets 1 9 40 ab")),
		"damaged": slices.Concat([]byte("x"), make([]byte, 600<<10)),
		"empty":   {},
	} {
		t.Run(why, func(t *testing.T) {
			must.Do(t, os.WriteFile(path, raw, 0o600))
			must.Do(t, os.WriteFile(path+".saved", saved, 0o600))
			_, l := open(t, "B")
			use(t, l, "", 40)
			refused(t, l, "", meter.Over{Budget: meter.OfDay, Name: "tokens", Used: 100, Limit: 100, Wait: time.Hour})
		})
	}
	entries := must.Get(os.ReadDir(h.dir))(t)
	if len(entries) != 2 {
		t.Errorf("%d files are left of a day: %v", len(entries), entries)
	}
}

// Requests of one session that never end do not keep another from what they have not used.
func TestOneSessionDoesNotBlockAnother(t *testing.T) {
	h := newHome(t)
	limits := meter.Limits{"tokens": 160}
	idle, other := h.ledger("IDLE", limits), h.ledger("OTHER", limits)
	for range 16 {
		must.Get(idle.Admit([]string{"tokens"}, ""))(t)
	}
	refused(t, idle, "", meter.Over{Budget: meter.OfDay, Name: "tokens", Limit: 160, Wait: time.Second, UnderWay: true})
	for range 3 {
		use(t, other, "", 50)
	}
	use(t, other, "", 10)
	refused(t, other, "", meter.Over{Budget: meter.OfDay, Name: "tokens", Used: 160, Limit: 160, Wait: time.Hour})
	if err := other.Check([]string{"tokens"}, ""); !errors.As(err, new(*meter.Over)) {
		t.Errorf("Check of what is used up: %v", err)
	}
	if err := idle.Check([]string{"tokens"}, "", &meter.Over{Budget: meter.OfDay, Name: "tokens"}); err != nil {
		t.Errorf("Check of what may exceed the limit: %v", err)
	}
}

// Sessions whose limits differ tell each use of a limit once.
func TestSessionsWithOtherLimitsTellOnce(t *testing.T) {
	h := newHome(t)
	var told []int64
	notice := func(n meter.Notice) { told = append(told, n.Used) }
	small := h.limited("A", meter.Options{Day: meter.Limits{"tokens": 100}, Notice: notice})
	large := h.limited("B", meter.Options{Day: meter.Limits{"tokens": 1000}, Notice: notice})
	use(t, small, "", 85)
	for range 50 {
		use(t, large, "", 0)
		use(t, small, "", 0)
	}
	use(t, large, "", 715)
	if want := []int64{85, 800}; !slices.Equal(told, want) {
		t.Errorf("told at %v, want %v", told, want)
	}
}

// Where only a day has a limit, a request is expected to use as much as the largest of the day.
func TestTheLargestOfADayIsExpected(t *testing.T) {
	h := newHome(t)
	use(t, h.ledger("A", meter.Limits{"tokens": 1000}), "", 300)
	charge := must.Get(h.ledger("B", meter.Limits{"tokens": 1000}).Admit([]string{"tokens"}, ""))(t)
	if n := charge.Expected("tokens"); n != 300 {
		t.Errorf("Expected: %d, want 300", n)
	}
}

// In Havana the clock goes from 23:59 to 1:00.
func TestAMidnightThatIsSkipped(t *testing.T) {
	havana, err := time.LoadLocation("America/Havana")
	if err != nil {
		t.Skipf("the time zones are missing: %v", err)
	}
	now := time.Date(2026, 3, 7, 23, 30, 0, 0, havana)
	book := must.Get(daybook.Open(daybook.Options{Dir: t.TempDir(), Session: "A", Now: func() time.Time { return now },
		Alive: func(string) bool { return true }}))(t)
	defer book.Close()
	if day, left := book.Day(); day != "2026-03-07" || left != 30*time.Minute {
		t.Errorf("Day: %s, %v, want 30 minutes of the 7th", day, left)
	}
	now = now.Add(40 * time.Minute)
	if day, left := book.Day(); day != "2026-03-08" || left != 22*time.Hour+50*time.Minute {
		t.Errorf("Day: %s, %v, want 22h50m of the 8th", day, left)
	}
}

// What cannot be written is written with the next change, and at the end.
func TestASettlementIsNotLost(t *testing.T) {
	h := newHome(t)
	limits := meter.Limits{"tokens": 100}
	var warned []error
	book := must.Get(daybook.Open(daybook.Options{Dir: h.dir, Session: "A", Now: func() time.Time { return h.now },
		Alive: func(string) bool { return true }}))(t)
	broken := &breaking{Book: book}
	l := meter.New(meter.Options{Day: limits, Book: broken, Warn: func(err error) { warned = append(warned, err) }})
	first := must.Get(l.Admit([]string{"tokens"}, ""))(t)
	broken.err = errors.New("no space left on device")
	first.Settle(map[string]int64{"tokens": 40})
	if len(warned) != 1 || !strings.Contains(warned[0].Error(), "no space left") {
		t.Errorf("warned: %v", warned)
	}
	broken.err = nil
	second := must.Get(l.Admit([]string{"tokens"}, ""))(t)
	broken.err = errors.New("no space left on device")
	second.Settle(map[string]int64{"tokens": 60})
	broken.err = nil
	l.Close()
	l.Close()
	book.Close()
	refused(t, h.ledger("B", limits), "", meter.Over{Budget: meter.OfDay, Name: "tokens", Used: 100, Limit: 100,
		Wait: time.Hour})
	if raw := string(must.Get(os.ReadFile(filepath.Join(h.dir, "2026-03-09")))(t)); strings.Count(raw, "open ") > 1 {
		t.Errorf("something is under way still: %q", strings.ReplaceAll(raw, "\x00", ""))
	}
}

// breaking is a book that cannot be changed while it has an error.
type breaking struct {
	meter.Book
	err error
}

func (b *breaking) Change(day string, f func(meter.Accounts) bool) error {
	if b.err != nil {
		return b.err
	}
	return b.Book.Change(day, f)
}

// The first change of a day that was cut off is none.
func TestATornFirstWrite(t *testing.T) {
	h := newHome(t)
	limits := meter.Limits{"tokens": 100}
	h.ledger("A", limits)
	path := filepath.Join(h.dir, "2026-03-09")
	must.Do(t, os.Truncate(path, 512<<10))
	f := must.Get(os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0))(t)
	must.Get(f.WriteString("aileron-budgets 1 1 40 ab"))(t)
	must.Do(t, f.Close())
	use(t, h.ledger("B", limits), "", 100)
	refused(t, h.ledger("C", limits), "", meter.Over{Budget: meter.OfDay, Name: "tokens", Used: 100, Limit: 100,
		Wait: time.Hour})
}

func BenchmarkRequest(b *testing.B) {
	book, err := daybook.Open(daybook.Options{Dir: b.TempDir(), Session: "A", Alive: func(string) bool { return true }})
	if err != nil {
		b.Fatal(err)
	}
	defer book.Close()
	l := meter.New(meter.Options{Day: meter.Limits{"input_tokens": 1 << 40, "output_tokens": 1 << 40}, Book: book})
	names := []string{"input_tokens", "output_tokens"}
	for b.Loop() {
		charge, err := l.Admit(names, "")
		if err != nil {
			b.Fatal(err)
		}
		charge.Settle(map[string]int64{"input_tokens": 10, "output_tokens": 20})
	}
}
