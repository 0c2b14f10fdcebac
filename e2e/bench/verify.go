package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// verify does each scenario once with each subject, and asks the origin and
// the audit log whether what happened is what is to be measured.
func (y *fixture) verify(ctx context.Context, chosen []scenario, r *report) error {
	for _, s := range y.subjects {
		before, err := y.counts(ctx)
		if err != nil {
			return err
		}
		if err := s.checkEcho(ctx); err != nil {
			return err
		}
		for _, sc := range chosen {
			if sc.check == nil || sc.alone && s.name != "aileron" {
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
			return fmt.Errorf("through %s %d requests were sent; %d arrived, %d with the credential", s.name, sent,
				after.Total-before.Total, after.Credentialed-before.Credentialed)
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

// checkEcho asks the origin for the credential that it got.
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
// has its rows, in a chain that holds. Where a scenario has failed, whole is
// false and requests are not counted: some of them never arrived.
func (y *fixture) settle(ctx context.Context, whole bool) error {
	i := slices.IndexFunc(y.subjects, func(s *subject) bool { return s.name == "aileron" })
	if i < 0 {
		return nil
	}
	seen, err := y.counts(ctx)
	if err != nil {
		return err
	}
	s := y.subjects[i]
	s.stop()
	here, elsewhere := s.sent.Load(), s.elsewhere.Load()
	switch {
	case !whole:
		here, elsewhere = 0, 0
	case seen.Credentialed != here+elsewhere:
		return fmt.Errorf("aileron carried %d requests; the origin saw %d with the credential", here+elsewhere,
			seen.Credentialed)
	}
	err = y.home.verify(ctx, 2*here)
	if y.wide != nil {
		err = errors.Join(err, y.wide.verify(ctx, 2*elsewhere))
	}
	return err
}

// verify asks whether the chain of the audit log holds and has so many rows.
func (h *home) verify(ctx context.Context, least int64) error {
	out, err := h.run(ctx, "audit", "verify", "--json")
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
	if !chain.OK || chain.Rows < least {
		return fmt.Errorf("the audit log has %d rows, want at least %d; its chain holds: %v", chain.Rows, least, chain.OK)
	}
	return nil
}
