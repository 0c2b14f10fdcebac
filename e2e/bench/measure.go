package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// order is the subjects, as the tables show them.
var order = []string{"direct", "connect", "goproxy", "martian", "lighth1", "light", "aileron"}

// yard is the bench set up: the origin, the subjects, and what they need.
type yard struct {
	options  *options
	cfg      partConfig
	origin   *process
	home     *home
	subjects []*subject
}

// setUp starts the origin and the subjects. The caller tears down, whatever
// the error.
func setUp(ctx context.Context, o *options) (y *yard, err error) {
	y = &yard{options: o}
	if y.cfg.dir, err = os.MkdirTemp("", "aileron-bench-"); err != nil {
		return y, err
	}
	if y.origin, err = startPart(ctx, "origin", y.cfg); err != nil {
		return y, err
	}
	y.cfg.origin = y.origin.Addr
	for _, name := range order {
		if !o.wants(name) {
			continue
		}
		s, err := y.launch(ctx, name)
		if err != nil {
			return y, err
		}
		y.subjects = append(y.subjects, s)
	}
	return y, nil
}

func (o *options) wants(subject string) bool {
	return len(o.subjects) == 0 || subject == "light" || slices.Contains(o.subjects, subject)
}

// launch starts a subject.
func (y *yard) launch(ctx context.Context, name string) (*subject, error) {
	if name == "direct" {
		roots, err := rootsOf(y.origin.CAFile)
		return &subject{name: name, addr: y.origin.Addr, origin: y.origin.Addr, roots: roots}, err
	}
	start := func() (*process, error) { return startPart(ctx, name, y.cfg) }
	if name == "aileron" {
		if err := y.makeHome(ctx); err != nil {
			return nil, err
		}
		start = func() (*process, error) { return y.home.serve(ctx) }
	}
	p, err := start()
	if err != nil {
		return nil, err
	}
	s, err := subjectOf(name, y.origin.Addr, p)
	if err != nil {
		p.stop()
	}
	return s, err
}

// makeHome sets aileron up, once.
func (y *yard) makeHome(ctx context.Context) error {
	if y.home != nil {
		return nil
	}
	binary, err := filepath.Abs(y.options.aileron)
	if y.options.profile != "" {
		binary, err = buildProfiled(ctx, y.cfg.dir)
	}
	if err != nil {
		return err
	}
	y.home, err = newHome(ctx, binary, y.cfg.dir, y.origin.Addr, y.origin.CAFile, y.options.durability)
	return err
}

func (y *yard) tearDown() {
	for _, s := range y.subjects {
		s.stop()
	}
	if y.origin != nil {
		y.origin.stop()
	}
	if y.cfg.dir != "" {
		_ = os.RemoveAll(y.cfg.dir)
	}
}

// counts asks the origin what it saw, past every subject.
func (y *yard) counts(ctx context.Context) (counts, error) {
	roots, err := rootsOf(y.origin.CAFile)
	if err != nil {
		return counts{}, err
	}
	direct := &subject{name: "direct", addr: y.origin.Addr, roots: roots}
	c, err := direct.open(ctx, apiHost+":443", "http/1.1", nil)
	if err != nil {
		return counts{}, err
	}
	defer c.Close()
	raw, err := c.get(request("GET", apiHost, "/counts"))
	if err != nil {
		return counts{}, err
	}
	var n counts
	return n, json.Unmarshal(raw, &n)
}

// measure is the whole bench.
func measure(ctx context.Context, o *options, out, progress io.Writer) error {
	chosen, err := choose(o.scenarios)
	if err != nil {
		return err
	}
	if o.profile != "" {
		if err := os.MkdirAll(o.profile, 0o755); err != nil { //nolint:gosec // for whoever reads it
			return err
		}
	}
	began := time.Now()
	y, err := setUp(ctx, o)
	defer y.tearDown()
	if err != nil {
		return err
	}
	r := &report{began: began, options: o, subjects: y.subjects}
	if err := y.verify(ctx, chosen, r); err != nil {
		return err
	}
	fmt.Fprintf(progress, "bench: every subject answers rightly; up to %d turns of %v each\n", o.turns, o.window)
	for _, sc := range chosen {
		res, err := y.play(ctx, sc, progress)
		if err != nil {
			return err
		}
		r.results = append(r.results, res)
		r.print(out, res)
	}
	if err := y.settle(ctx); err != nil {
		return err
	}
	fmt.Fprintf(out, "\n%s\n", r.summary())
	if o.markdown == "" {
		return nil
	}
	return r.write(o.markdown)
}

// play gives every subject its turns in one scenario.
func (y *yard) play(ctx context.Context, sc scenario, progress io.Writer) (*result, error) {
	res := newResult(sc)
	turns := y.options.turns
	if sc.turns > 0 {
		turns = min(turns, sc.turns, max(1, y.options.turns/2))
	}
	for n := range turns + 1 { // the first one warms up
		if n == 0 && sc.fresh {
			continue
		}
		t := turn{length: y.options.window, share: y.options.share, last: n == turns}
		if n == 0 {
			t.length /= 4
		}
		fmt.Fprintf(progress, "%s %d/%d%s", sc.id, n, turns, map[bool]string{true: "\n", false: "  "}[t.last])
		for i := range y.subjects {
			// No subject always has the same one before it.
			s := y.subjects[(i+n)%len(y.subjects)]
			if res.left[s.name] != "" {
				continue
			}
			f, err := y.turn(ctx, sc, s, t)
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			res.add(s.name, n, f, err)
		}
	}
	return res, nil
}

// turn is one subject's turn, with profiles where they are asked for.
func (y *yard) turn(ctx context.Context, sc scenario, s *subject, t turn) (figures, error) {
	p := y.profilerOf(s)
	if sc.fresh {
		fresh, err := y.launch(ctx, s.name)
		if err != nil {
			return nil, err
		}
		defer func() { s.sent.Add(fresh.sent.Load()); fresh.stop() }()
		if p = y.profilerOf(fresh); p != nil {
			t.rest = func() error { return errors.Join(p.begin(), p.end(sc.id)) }
		}
		return sc.run(ctx, fresh, t)
	}
	if p == nil {
		return sc.run(ctx, s, t)
	}
	if err := p.begin(); err != nil {
		return nil, err
	}
	f, err := sc.run(ctx, s, t)
	return f, errors.Join(err, p.end(sc.id))
}

func (y *yard) profilerOf(s *subject) *profiler {
	if s.name != "aileron" || y.options.profile == "" {
		return nil
	}
	return &profiler{dir: y.options.profile, out: y.home.profile, pid: s.pid}
}

func choose(ids []string) ([]scenario, error) {
	if len(ids) == 0 {
		return scenarios, nil
	}
	var chosen []scenario
	for _, id := range ids {
		i := slices.IndexFunc(scenarios, func(s scenario) bool { return strings.EqualFold(s.id, id) })
		if i < 0 {
			return nil, fmt.Errorf("there is no scenario %q", id)
		}
		chosen = append(chosen, scenarios[i])
	}
	return chosen, nil
}

// verify does each scenario once with each subject, and asks the origin and
// the audit log whether what happened is what is to be measured.
func (y *yard) verify(ctx context.Context, chosen []scenario, r *report) error {
	for _, s := range y.subjects {
		before, err := y.counts(ctx)
		if err != nil {
			return err
		}
		if err := s.checkEcho(ctx); err != nil {
			return err
		}
		for _, sc := range chosen {
			if sc.check == nil {
				continue
			}
			err := sc.check(ctx, s)
			if errors.Is(err, errNoH2) {
				r.notes = append(r.notes, fmt.Sprintf("%s %s: %v.", sc.id, s.name, err))
				continue
			}
			if err != nil {
				return fmt.Errorf("%s through %s is wrong: %w", sc.id, s.name, err)
			}
		}
		after, err := y.counts(ctx)
		if err != nil {
			return err
		}
		sent, want := s.sent.Load(), int64(0)
		if s.name == "aileron" {
			want = sent
		}
		if after.Total-before.Total != sent || after.Credentialed-before.Credentialed != want {
			return fmt.Errorf("through %s %d requests were sent; %d arrived, %d with the credential", s.name, sent, after.Total-before.Total, after.Credentialed-before.Credentialed)
		}
		if s.name == "aileron" {
			intents, outcomes, err := y.home.outcomes(ctx)
			if err != nil {
				return err
			}
			if intents != sent || outcomes != sent {
				return fmt.Errorf("for %d requests aileron wrote %d rows of intent and %d of outcome", sent, intents, outcomes)
			}
		}
	}
	return nil
}

// checkEcho asks the origin to say the credential that it got.
func (s *subject) checkEcho(ctx context.Context) error {
	c, err := s.open(ctx, apiHost+":443", "http/1.1", nil)
	if err != nil {
		return err
	}
	defer c.Close()
	got, err := c.get(request("GET", apiHost, "/v1/echo"))
	if err != nil {
		return err
	}
	want := "Bearer " + placeholder
	if s.name == "aileron" {
		want = "Bearer " + strings.Repeat("*", len(secret))
	}
	if string(got) != want {
		return fmt.Errorf("%s let through %q, want %q", s.name, got, want)
	}
	return nil
}

// settle ends aileron's session and asks whether every request of the run
// has its rows, in a chain that holds.
func (y *yard) settle(ctx context.Context) error {
	i := slices.IndexFunc(y.subjects, func(s *subject) bool { return s.name == "aileron" })
	if i < 0 {
		return nil
	}
	seen, err := y.counts(ctx)
	if err != nil {
		return err
	}
	y.subjects[i].stop()
	out, err := y.home.run(ctx, "audit", "verify", "--json")
	if err != nil {
		return err
	}
	var chain struct {
		OK   bool  `json:"ok"`
		Rows int64 `json:"rows"`
	}
	if err := json.Unmarshal(out, &chain); err != nil {
		return err
	}
	if sent := y.subjects[i].sent.Load(); !chain.OK || chain.Rows < 2*sent || seen.Credentialed != sent {
		return fmt.Errorf("aileron carried %d requests; the origin saw %d with the credential, the audit log has %d rows, its chain holds: %v", sent, seen.Credentialed, chain.Rows, chain.OK)
	}
	return nil
}
