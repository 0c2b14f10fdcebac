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
var order = []string{"direct", "connect", "lighth1", "light", "aileron"}

// yard is the bench set up: the origin, the subjects, and what they need.
type yard struct {
	dir      string
	origin   *process
	home     *home
	aileron  *process
	parts    []*process
	subjects []*subject
}

// setUp starts the origin and the subjects. The caller tears down, whatever
// the error.
func setUp(ctx context.Context, o *options) (y *yard, err error) {
	y = &yard{}
	if y.dir, err = os.MkdirTemp("", "aileron-bench-"); err != nil {
		return y, err
	}
	cfg := partConfig{dir: y.dir}
	if y.origin, err = startPart(ctx, "origin", cfg); err != nil {
		return y, err
	}
	cfg.origin = y.origin.Addr
	for _, name := range order {
		if !o.wants(name) {
			continue
		}
		s, err := y.start(ctx, name, cfg, o)
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

func (y *yard) start(ctx context.Context, name string, cfg partConfig, o *options) (*subject, error) {
	switch name {
	case "direct":
		roots, err := rootsOf(y.origin.CAFile)
		return &subject{name: name, addr: y.origin.Addr, origin: y.origin.Addr, roots: roots}, err
	case "aileron":
		binary, err := filepath.Abs(o.aileron)
		if err != nil {
			return nil, err
		}
		if y.home, err = newHome(ctx, binary, y.dir, y.origin.Addr, y.origin.CAFile, o.durability); err != nil {
			return nil, err
		}
		if y.aileron, err = y.home.serve(ctx); err != nil {
			return nil, err
		}
		return subjectOf(name, y.origin.Addr, y.aileron)
	}
	p, err := startPart(ctx, name, cfg)
	if err != nil {
		return nil, err
	}
	y.parts = append(y.parts, p)
	return subjectOf(name, y.origin.Addr, p)
}

func (y *yard) tearDown() {
	for _, p := range append([]*process{y.aileron, y.origin}, y.parts...) {
		if p != nil {
			p.stop()
		}
	}
	if y.dir != "" {
		_ = os.RemoveAll(y.dir)
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
	fmt.Fprintf(progress, "bench: every subject answers rightly; %d turns of %v each\n", o.turns, o.window)
	for _, sc := range chosen {
		res := newResult(sc)
		r.results = append(r.results, res)
		for n := range o.turns + 1 { // the first one warms up
			t := turn{length: o.window, quick: o.quick}
			if n == 0 {
				t.length /= 4
			}
			for i := range y.subjects {
				// No subject always has the same one before it.
				s := y.subjects[(i+n)%len(y.subjects)]
				if res.left[s.name] != "" {
					continue
				}
				f, err := sc.run(ctx, s, t)
				if ctx.Err() != nil {
					return ctx.Err()
				}
				res.add(s.name, n, f, err)
			}
			fmt.Fprintf(progress, "\r%-3s turn %d of %d ", sc.id, n, o.turns)
		}
		fmt.Fprint(progress, "\r")
		r.print(out, res)
	}
	if err := y.settle(ctx); err != nil {
		return err
	}
	fmt.Fprintf(out, "\n%s\n", r.summary())
	if o.markdown == "" {
		return nil
	}
	return os.WriteFile(o.markdown, []byte(r.markdown()), 0o644) //nolint:gosec // a report is for everyone
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
	if y.aileron == nil {
		return nil
	}
	i := slices.IndexFunc(y.subjects, func(s *subject) bool { return s.name == "aileron" })
	sent := y.subjects[i].sent.Load()
	seen, err := y.counts(ctx)
	if err != nil {
		return err
	}
	y.aileron.stop()
	y.aileron = nil
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
	if !chain.OK || chain.Rows < 2*sent || seen.Credentialed != sent {
		return fmt.Errorf("aileron carried %d requests; the origin saw %d with the credential, the audit log has %d rows, its chain holds: %v", sent, seen.Credentialed, chain.Rows, chain.OK)
	}
	return nil
}
