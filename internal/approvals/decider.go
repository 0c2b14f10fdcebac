package approvals

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"sync"
	"time"

	"github.com/ALRubinger/aileron/proxy/approval"
)

const (
	deciderTimeout = 5 * time.Second // from the moment at which a request begins to wait
	maxDeciding    = 4               // questions at a time
	previewShare   = 4               // tenths of the time for a preview to come
)

// SurfaceDecider is the surface of a decision of a [Decider].
const SurfaceDecider = "decider"

// Decider asks a program of the owner's about requests that begin to wait, before the owner is asked. What it does not
// decide in time, and by one valid answer, waits for the owner. It decides for once, and approves only what its
// question had in full. Make it with [NewDecider], and set Ask before [Decider.Run].
type Decider struct {
	Socket  string   // the path of a unix socket; "": Command is run
	Command []string // gets the question on its standard input
	Environ *Environ // of the command
	// Start starts the command. Nil: [exec.Cmd.Start].
	Start func(*exec.Cmd) error
	// Redact returns a text without secrets. Nil: it stays as it is.
	Redact func(string) string
	// Preview returns a question with what the service says of it, if that comes before ctx ends. Nil: there is nothing.
	Preview func(ctx context.Context, q approval.Question) approval.Question
	// Ask is called with each question that waits for the owner. why is one line.
	Ask func(q approval.Question, why string)
	// Warn reports that the program gives no answer, the first time; nil: it is not reported.
	Warn func(error)

	timeout time.Duration
	opened  chan opened
	warned  sync.Once
}

// opened is a question, and when its answer must be there.
type opened struct {
	approval.Question
	until time.Time
}

// NewDecider returns d, ready for use. It is not copied afterwards.
func NewDecider(d *Decider) *Decider {
	d.timeout, d.opened = deciderTimeout, make(chan opened, approval.MaxOpen)
	return d
}

// Opened notes a question. It never blocks: one that finds no place is the owner's at once.
func (d *Decider) Opened(q approval.Question) {
	select {
	case d.opened <- opened{q, time.Now().Add(d.timeout)}:
	default:
		go d.Ask(q, "too many questions wait for the decider")
	}
}

// Run asks about questions of a queue until ctx ends, a few at a time, and returns when all that it started has ended.
func (d *Decider) Run(ctx context.Context, queue *approval.Queue) {
	var all sync.WaitGroup
	defer all.Wait()
	for range maxDeciding {
		all.Go(func() {
			for {
				select {
				case <-ctx.Done():
					return
				case q := <-d.opened:
					d.settle(ctx, queue, q)
				}
			}
		})
	}
}

// errGone is the error of a question whose requests have left, or that was decided elsewhere.
var errGone = errors.New("no request waits for it any more")

// settle decides about a question as the program answers, or leaves it to the owner.
func (d *Decider) settle(ctx context.Context, queue *approval.Queue, q opened) {
	a, err := d.consult(ctx, queue.Gone(q.ID), q)
	if ctx.Err() != nil { // the session ends
		return
	}
	why := "the decider leaves it to you"
	switch {
	case err != nil:
		why = "the decider did not decide: " + line(err.Error())
	case a.Decision != ask:
		_, err = queue.Decide(ctx, q.ID, approval.Decision{Approve: a.Decision == approve, For: approval.Once,
			Surface: SurfaceDecider, Shown: q.Digest, Reason: a.Reason})
		if err == nil {
			return
		}
		why = "the decision of the decider does not count: " + line(err.Error())
	case a.Reason != "":
		why += ": " + a.Reason
	}
	if err != nil && !errors.Is(err, errGone) && d.Warn != nil {
		d.warned.Do(func() { d.Warn(fmt.Errorf("ask the decider of config.toml about an approval: %w", err)) })
	}
	if now, ok := queue.State(q.ID); ok && now.State == approval.Pending {
		d.Ask(q.Question, why)
	}
}

// consult asks the program about a question, until its time is over or gone is closed.
func (d *Decider) consult(ctx context.Context, gone <-chan struct{}, q opened) (Answer, error) {
	select {
	case <-gone:
		return Answer{}, errGone
	default:
	}
	ctx, timeUp := context.WithDeadlineCause(ctx, q.until, fmt.Errorf("no answer within %v", d.timeout))
	defer timeUp()
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	go func() {
		select {
		case <-gone:
			end(errGone)
		case <-ctx.Done():
		}
	}()
	if d.Preview != nil {
		within, cancel := context.WithTimeout(ctx, d.timeout*previewShare/10)
		q.Question = d.Preview(within, q.Question)
		cancel()
	}
	shown := d.shown(q.Question)
	text, err := json.Marshal(shown)
	if err != nil {
		return Answer{}, err
	}
	run := d.run
	if d.Socket != "" {
		run = d.call
	}
	reply := &reply{overflow: end}
	err = run(ctx, append(text, '\n'), reply)
	if ctx.Err() != nil {
		return Answer{}, context.Cause(ctx)
	}
	if err != nil {
		return Answer{}, err
	}
	a, err := readAnswer(reply.text)
	if err != nil {
		return Answer{}, err
	}
	a.Reason = line(d.redact(a.Reason))
	if a.Decision == approve && shown.Unseen != "" {
		return Answer{Decision: ask, Reason: "it approves what it was not shown in full: " + shown.Unseen}, nil
	}
	return a, nil
}

// shown is what a decider is asked: a question as "aileron approval show --json" prints it.
type shown struct {
	approval.Question
	Unseen string `json:"unseen,omitempty"` // what of the request is not in the question; then it is never approved
}

// shown returns a question without secrets.
func (d *Decider) shown(q approval.Question) shown {
	redacted := false
	clean := func(text string) string {
		without := d.redact(text)
		redacted = redacted || without != text
		return without
	}
	s := shown{q, Unseen(q)}
	for _, text := range []*string{&s.Method, &s.Host, &s.Path, &s.Query, &s.Asks} {
		*text = clean(*text)
	}
	if len(q.Body) > 0 {
		s.Body = []byte(clean(string(q.Body)))
	}
	for _, list := range []*[]approval.Value{&s.Inputs, &s.Fields} {
		of := make([]approval.Value, 0, len(*list))
		for _, v := range *list {
			of = append(of, approval.Value{Name: clean(v.Name), In: v.In, Value: clean(v.Value)})
		}
		*list = of
	}
	if p := q.Preview; p != nil {
		of := *p
		of.Values = make([]approval.Value, 0, len(p.Values))
		for _, v := range p.Values { // it decides about the request: no secret of a preview hides a part of that
			of.Values = append(of.Values, approval.Value{Name: v.Name, Value: d.redact(v.Value)})
		}
		s.Preview = &of
	}
	switch {
	case s.Unseen != "":
	case redacted:
		s.Unseen = "a secret in it is redacted"
	case q.WebSocket:
		s.Unseen = "what is sent on its connection later"
	}
	return s
}

func (d *Decider) redact(text string) string {
	if d.Redact == nil {
		return text
	}
	return d.Redact(text)
}
