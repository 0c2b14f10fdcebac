package approval

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/e2e/must"
)

// office is a queue with a clock, a log and a drawer of rules of its own.
type office struct {
	*Queue
	t *testing.T

	mu      sync.Mutex
	now     time.Time
	elapsed time.Duration
	rows    []string
	fails   error // of the log
	kept    map[string]Rule
}

func newOffice(t *testing.T) *office {
	o := &office{t: t, now: time.Now(), elapsed: time.Hour, kept: map[string]Rule{}}
	o.Queue = New(Options{Session: "S", Agent: "a",
		Record: func(_ context.Context, event audit.Event, _ *Question, fields map[string]any) error {
			o.mu.Lock()
			defer o.mu.Unlock()
			if o.fails != nil {
				return o.fails
			}
			text := strings.TrimPrefix(string(event), "approval.")
			for _, name := range []string{"cause", "was", "for", "revoked"} {
				if v, ok := fields[name]; ok {
					text += fmt.Sprintf(" %s=%v", name, v)
				}
			}
			o.rows = append(o.rows, text)
			return nil
		},
		Standing: func(s Subject) (Rule, bool, error) {
			o.mu.Lock()
			defer o.mu.Unlock()
			for _, r := range o.kept {
				if r.Subject == s {
					return r, true, nil
				}
			}
			return Rule{}, false, nil
		},
		Keep:    func(r Rule) error { o.mu.Lock(); defer o.mu.Unlock(); o.kept[r.ID] = r; return nil },
		Drop:    func(id string) error { o.mu.Lock(); defer o.mu.Unlock(); delete(o.kept, id); return nil },
		Now:     func() time.Time { o.mu.Lock(); defer o.mu.Unlock(); return o.now },
		Elapsed: func() time.Duration { o.mu.Lock(); defer o.mu.Unlock(); return o.elapsed },
	})
	return o
}

// pass moves the clock that cannot be set, and the one that can.
func (o *office) pass(elapsed, wall time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.elapsed, o.now = o.elapsed+elapsed, o.now.Add(wall)
}

func merge(id string) Request {
	return Request{Subject: Subject{Connector: "github://acme/x", Hash: "sha256:1", Tool: "x", Operation: "merge",
		Binding: "bearer/x/me", BindingID: "1"}, Method: "POST",
		Scheme: "https", Host: "x.example", Port: 443, Path: "/" + id, Body: []byte("b"), BodyBytes: 1,
		BodySHA256: Digest([]byte("b")), RequestID: "R"}
}

func (o *office) ask(r Request) *Ticket {
	o.t.Helper()
	return must.Get(o.Ask(o.t.Context(), r))(o.t)
}

func (o *office) decide(id string, d Decision) error {
	_, err := o.Decide(o.t.Context(), id, d)
	return err
}

// at returns the state of a ticket now.
func (o *office) at(t *Ticket) State { return t.Wait(o.t.Context(), time.Time{}) }

func (o *office) log(want ...string) {
	o.t.Helper()
	o.mu.Lock()
	defer o.mu.Unlock()
	if !slices.Equal(o.rows, want) {
		o.t.Errorf("the log has %q, want %q", o.rows, want)
	}
}

func TestSilenceExpiresAndDecidesNothing(t *testing.T) {
	o := newOffice(t)
	held := o.ask(merge("1"))
	o.pass(time.Hour, time.Hour)
	if o.at(held) != Pending {
		t.Errorf("a request that is held is %s after an hour", o.at(held))
	}
	held.Leave()
	o.pass(Validity-time.Second, Validity-time.Second)
	again := o.ask(merge("1"))
	if again.ID() != held.ID() {
		t.Error("an equal request within ten minutes is another question")
	}
	again.Leave()
	o.pass(Validity, Validity)
	if q, _ := o.State(held.ID()); q.State != Expired {
		t.Errorf("ten minutes without a request: %s", q.State)
	}
	if err := o.decide(held.ID(), Decision{Approve: true, For: Once}); !errors.Is(err, ErrDecided) {
		t.Errorf("an approval of what has expired: %v", err)
	}
	o.log("requested", "expired")
}

// How long an approval holds does not depend on a clock that a person, or NTP, sets.
func TestAnApprovalEndsByTheClockThatCannotBeSet(t *testing.T) {
	for name, c := range map[string]struct {
		elapsed, wall time.Duration
		want          bool
	}{
		"in time":       {Validity - time.Second, Validity - time.Second, true},
		"late":          {Validity, Validity, false},
		"set ahead":     {time.Second, 24 * time.Hour, true},
		"set back":      {Validity, -24 * time.Hour, false},
		"set back once": {Validity - time.Second, -24 * time.Hour, true},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOffice(t)
			first := o.ask(merge("1"))
			first.Leave()
			must.Do(t, o.decide(first.ID(), Decision{Approve: true, For: Once}))
			o.pass(c.elapsed, c.wall)
			next := o.ask(merge("1"))
			defer next.Leave()
			if passes := o.at(next) == Approved && next.Use(); passes != c.want {
				t.Errorf("it passes: %t", passes)
			}
			if !c.want {
				o.log("requested", "approved for=once", "expired was=approved", "requested")
			}
		})
	}
}

func TestTwoSurfacesDecideOnce(t *testing.T) {
	o := newOffice(t)
	for range 50 {
		ticket := o.ask(merge("1"))
		results := make([]error, 2)
		var both sync.WaitGroup
		for i, approve := range []bool{true, false} {
			both.Go(func() { results[i] = o.decide(ticket.ID(), Decision{Approve: approve, For: Once, Surface: "cli"}) })
		}
		both.Wait()
		state := o.at(ticket)
		if (results[0] == nil) == (results[1] == nil) || (results[0] == nil) != (state == Approved) {
			t.Fatalf("approve: %v, deny: %v, and it is %s", results[0], results[1], state)
		}
		for _, err := range results {
			if err != nil && !errors.Is(err, ErrDecided) {
				t.Errorf("the second decision: %v", err)
			}
		}
		_ = o.Revoke(t.Context(), ticket.ID(), "cli")
		ticket.Leave()
	}
}

func TestAnApprovalCountsWhenItIsInTheLog(t *testing.T) {
	o := newOffice(t)
	ticket := o.ask(merge("1"))
	broken := errors.New("the disk is full")
	o.fails = broken
	for _, scope := range Scopes() {
		if err := o.decide(ticket.ID(), Decision{Approve: true, For: scope}); !errors.Is(err, broken) {
			t.Errorf("for %s: %v", scope, err)
		}
	}
	if o.at(ticket) != Pending || len(o.kept) != 0 || len(o.Rules()) != 0 {
		t.Errorf("it is %s, with the rules %v and %v", o.at(ticket), o.kept, o.Rules())
	}
	if _, err := o.Ask(t.Context(), merge("2")); !errors.Is(err, broken) || len(o.List()) != 1 {
		t.Errorf("a question that is not in the log: %v", err)
	}
	// A denial denies all the same.
	if err := o.decide(ticket.ID(), Decision{For: Once}); !errors.Is(err, broken) || o.at(ticket) != Denied {
		t.Errorf("%v, and it is %s", err, o.at(ticket))
	}
}

func TestAlwaysIsForOneVersionAndOneCredential(t *testing.T) {
	o := newOffice(t)
	first := o.ask(merge("1"))
	must.Do(t, o.decide(first.ID(), Decision{Approve: true, For: Always, Surface: "cli"}))
	if o.at(first) != Approved || !first.Use() {
		t.Error("the request that was held does not pass")
	}
	first.Leave()
	same := o.ask(merge("2"))
	if same.ID() != first.ID() || o.at(same) != Approved || !same.Use() || !same.Use() {
		t.Error("another request of the operation does not pass")
	}
	for name, change := range map[string]func(*Request){
		"version":    func(r *Request) { r.Hash = "sha256:2" },
		"credential": func(r *Request) { r.Binding = "bearer/x/other" },
		"secret":     func(r *Request) { r.BindingID = "2" },
		"kind":       func(r *Request) { r.WebSocket = true },
		"operation":  func(r *Request) { r.Operation = "remove" },
		"connector":  func(r *Request) { r.Connector = "github://acme/y" },
	} {
		r := merge("1")
		change(&r)
		if other := o.ask(r); o.at(other) != Pending || other.Use() {
			t.Errorf("another %s passes", name)
		}
	}
	held := o.ask(merge("3"))
	must.Do(t, o.opts.Drop(first.ID()))
	if held.Use() {
		t.Error("it passes after it was revoked")
	}
	if next := o.ask(merge("3")); o.at(next) != Pending {
		t.Errorf("the next one is %s", o.at(next))
	}
}

func TestARevokedApprovalLetsNothingPass(t *testing.T) {
	o := newOffice(t)
	once, session := o.ask(merge("1")), o.ask(Request{Path: "/",
		Subject: Subject{Connector: "f", Hash: "h", Tool: "t", Operation: "o"}})
	must.Do(t, o.decide(once.ID(), Decision{Approve: true, For: Once}))
	must.Do(t, o.decide(session.ID(), Decision{Approve: true, For: Session}))
	for _, ticket := range []*Ticket{once, session} {
		must.Do(t, o.Revoke(t.Context(), ticket.ID(), "cli"))
		if ticket.Use() {
			t.Error("a request that was waiting passes")
		}
		if err := o.Revoke(t.Context(), ticket.ID(), "cli"); !errors.Is(err, ErrUnknown) {
			t.Errorf("it is revoked twice: %v", err)
		}
	}
	if next := o.ask(merge("1")); next.ID() == once.ID() || o.at(next) != Pending {
		t.Error("the next request is not asked about")
	}
}

// What no connector allows has no operation that a decision could be kept for.
func TestARequestWithoutAnOperationIsDecidedOnce(t *testing.T) {
	o := newOffice(t)
	r := merge("1")
	r.Subject = Subject{}
	ticket := o.ask(r)
	for _, scope := range []Scope{Session, Always} {
		if err := o.decide(ticket.ID(), Decision{Approve: true, For: scope}); !errors.Is(err, ErrNoObject) {
			t.Errorf("for %s: %v", scope, err)
		}
	}
	must.Do(t, o.decide(ticket.ID(), Decision{Approve: true, For: Once}))
}

func TestTheEndOfASessionReleasesAll(t *testing.T) {
	o := newOffice(t)
	approved := o.ask(merge("0"))
	must.Do(t, o.decide(approved.ID(), Decision{Approve: true, For: Once}))
	var held sync.WaitGroup
	for i := range 10 {
		ticket := o.ask(merge(fmt.Sprint(i + 1)))
		held.Go(func() {
			defer ticket.Leave()
			if s := ticket.Wait(t.Context(), time.Now().Add(time.Hour)); s != Expired {
				t.Errorf("a request that was held is %s", s)
			}
		})
	}
	o.Close()
	held.Wait()
	if approved.Use() {
		t.Error("an approval is used after the end")
	}
	if _, err := o.Ask(t.Context(), merge("1")); !errors.Is(err, ErrClosed) {
		t.Errorf("a request after the end: %v", err)
	}
	if err := o.decide(approved.ID(), Decision{Approve: true, For: Once}); !errors.Is(err, ErrClosed) {
		t.Errorf("a decision after the end: %v", err)
	}
	if n := len(slices.DeleteFunc(o.rows, func(r string) bool { return !strings.HasPrefix(r, "expired") })); n != 11 {
		t.Errorf("%d questions have expired in the log", n)
	}
}

// What has been decided does not keep what the sandbox sent, and the last ones are known.
func TestWhatHasEndedIsBounded(t *testing.T) {
	o := newOffice(t)
	var ids []string
	for i := range 3 * maxEnded {
		r := merge(fmt.Sprint(i))
		r.Body = make([]byte, 2*MaxShown)
		o.pass(5*time.Second, 5*time.Second)
		ticket := o.ask(r)
		if q, _ := o.State(ticket.ID()); len(q.Body) != MaxShown {
			t.Fatalf("%d bytes of the body are kept", len(q.Body))
		}
		must.Do(t, o.decide(ticket.ID(), Decision{Approve: true, For: Once}))
		if !ticket.Use() {
			t.Fatal("it does not pass")
		}
		ticket.Leave()
		ids = append(ids, ticket.ID())
	}
	all := o.List()
	if len(all) != maxEnded || all[maxEnded-1].ID != ids[len(ids)-1] {
		t.Errorf("%d questions are known", len(all))
	}
	for _, q := range all {
		if len(q.Body) > 0 || !q.Used {
			t.Errorf("%+v", q)
		}
	}
}

// A person who denies is not asked again without end.
func TestQuestionsComeNotTooOften(t *testing.T) {
	o := newOffice(t)
	for i := range maxAsked {
		ticket := o.ask(merge(fmt.Sprint(i)))
		must.Do(t, o.decide(ticket.ID(), Decision{For: Once}))
		ticket.Leave()
	}
	if _, err := o.Ask(t.Context(), merge("one more")); !errors.Is(err, ErrFull) {
		t.Errorf("one more: %v", err)
	}
	o.pass(Validity+time.Second, Validity+time.Second)
	o.ask(merge("later"))
}

// What cannot be kept is no decision, and the log says so.
func TestWhatCannotBeKeptIsNoDecision(t *testing.T) {
	o := newOffice(t)
	full := errors.New("the disk is full")
	o.opts.Keep = func(Rule) error {
		if n := len(o.rows); n < 2 || o.rows[n-1] != "approved for=always" {
			t.Errorf("it is kept after %q", o.rows)
		}
		return full
	}
	ticket := o.ask(merge("1"))
	err := o.decide(ticket.ID(), Decision{Approve: true, For: Always})
	if !errors.Is(err, full) || o.at(ticket) != Pending {
		t.Errorf("%v, and it is %s", err, o.at(ticket))
	}
	o.log("requested", "approved for=always", "denied revoked=true")
	r := merge("2")
	r.AnyPath = true
	if err := o.decide(o.ask(r).ID(), Decision{Approve: true, For: Always}); !errors.Is(err, ErrAnyPath) {
		t.Errorf("an operation of every path: %v", err)
	}
}

// If a decision may be missing from what can be read, a person is asked.
func TestADecisionThatCannotBeReadApprovesNothing(t *testing.T) {
	o := newOffice(t)
	standing := o.opts.Standing
	first, other := o.ask(merge("1")), o.ask(merge("2"))
	must.Do(t, o.decide(first.ID(), Decision{Approve: true, For: Session}))
	o.opts.Standing = func(s Subject) (Rule, bool, error) {
		r, ok, _ := standing(s)
		return r, ok, errors.New("too many open files")
	}
	if next := o.ask(merge("3")); o.at(next) != Pending {
		t.Errorf("a decision for the session: %s", o.at(next))
	}
	must.Do(t, o.decide(other.ID(), Decision{For: Always}))
	if next := o.ask(merge("4")); o.at(next) != Denied {
		t.Errorf("one that denies, and could be read: %s", o.at(next))
	}
}

// What is done for the requests that wait ends when the last one leaves, or when the question is decided.
func TestAQuestionIsGoneWhenNoRequestWaits(t *testing.T) {
	is := func(gone <-chan struct{}) bool {
		select {
		case <-gone:
			return true
		default:
			return false
		}
	}
	o := newOffice(t)
	first, second := o.ask(merge("1")), o.ask(merge("1"))
	gone, too := o.Gone(first.ID()), o.Gone(first.ID())
	first.Leave()
	if is(gone) || is(too) {
		t.Error("it is gone while a request waits")
	}
	second.Leave()
	if !is(gone) || !is(too) || !is(o.Gone(first.ID())) || !is(o.Gone("none")) {
		t.Error("it is not gone when the last request has left")
	}
	third := o.ask(merge("1"))
	again := o.Gone(third.ID())
	if !is(gone) || is(again) {
		t.Error("what has begun for a new request is gone")
	}
	must.Do(t, o.decide(third.ID(), Decision{Approve: true, For: Once, Surface: "cli"}))
	if !is(again) || !is(o.Gone(third.ID())) {
		t.Error("it is not gone when it is decided")
	}
	for name, end := range map[string]func(id string){
		"session": func(id string) { must.Do(t, o.decide(id, Decision{For: Session, Surface: "cli"})) },
		"close":   func(string) { o.Close() },
	} {
		o = newOffice(t)
		ticket := o.ask(merge("1"))
		gone := o.Gone(ticket.ID())
		end(ticket.ID())
		if !is(gone) {
			t.Errorf("%s: it is not gone", name)
		}
		ticket.Leave()
	}
}

// The clock of a queue goes on, and not by the time of day.
func TestTheClockSinceBootGoesOn(t *testing.T) {
	before := sinceBoot()
	if now := sinceBoot(); before <= 0 || now < before {
		t.Errorf("it is %v, and then %v", before, now)
	}
}
