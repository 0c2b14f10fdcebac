package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"
)

// measure is the whole bench.
func measure(ctx context.Context, o *options, out, progress io.Writer) error {
	chosen, err := choose(o.scenarios)
	if err != nil {
		return err
	}
	if o.profile != "" {
		if err := os.MkdirAll(o.profile, 0o755); err != nil {
			return err
		}
	}
	began, load := time.Now(), loadAverage()
	y, err := setUp(ctx, o)
	defer y.tearDown()
	if err != nil {
		return err
	}
	chosen = y.possible(ctx, chosen)
	r := &report{began: began, load: load, options: o, subjects: y.subjects, notes: y.absent}
	if err := y.verify(ctx, chosen, r); err != nil {
		return err
	}
	for _, why := range y.absent {
		fmt.Fprintln(progress, "bench:", why)
	}
	fmt.Fprintf(progress, "bench: every subject responds correctly; up to %d turns of %v each\n", o.turns, o.window)
	for _, sc := range chosen {
		res, err := y.play(ctx, sc, progress)
		if err != nil {
			return err
		}
		r.results = append(r.results, res)
		r.print(out, res)
	}
	failed := r.failures("aileron")
	if err := y.settle(ctx, failed == nil); err != nil {
		return errors.Join(failed, err)
	}
	fmt.Fprintf(out, "\n%s\n", r.summary())
	return errors.Join(failed, r.save())
}

// possible returns the scenarios that this machine can measure, and notes why it cannot measure others.
func (y *fixture) possible(ctx context.Context, chosen []scenario) []scenario {
	return slices.DeleteFunc(slices.Clone(chosen), func(sc scenario) bool {
		if sc.needs == nil {
			return false
		}
		err := sc.needs(ctx)
		if err != nil {
			y.absent = append(y.absent, fmt.Sprintf("%s is not measured: %v.", sc.id, err))
		}
		return err != nil
	})
}

// play runs one scenario with every subject, turn by turn.
func (y *fixture) play(ctx context.Context, sc scenario, progress io.Writer) (*result, error) {
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
			if res.left[s.name] != "" || sc.alone && s.name != "aileron" {
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
func (y *fixture) turn(ctx context.Context, sc scenario, s *subject, t turn) (figures, error) {
	p := y.profilerOf(s)
	if sc.fresh {
		fresh, err := y.launch(ctx, s.name)
		if err != nil {
			return nil, err
		}
		defer func() {
			s.sent.Add(fresh.sent.Load())
			s.elsewhere.Add(fresh.elsewhere.Load())
			fresh.stop()
		}()
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

func (y *fixture) profilerOf(s *subject) *profiler {
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
