package main

import (
	"fmt"
	"math"
)

// metric is one figure of a scenario, and its goal: a bound on the figure itself, or on its ratio to the reference's.
// Without a bound there is no goal.
type metric struct {
	name     string
	bound    float64
	relative bool // to the reference
	least    bool // the bound is a lower one
}

func figure(name string) metric                 { return metric{name: name} }
func atMost(name string, bound float64) metric  { return metric{name: name, bound: bound} }
func atLeast(name string, bound float64) metric { return metric{name: name, bound: bound, least: true} }
func times(name string, bound float64) metric {
	return metric{name: name, bound: bound, relative: true}
}
func timesAtLeast(name string, bound float64) metric { return metric{name, bound, true, true} }

// goal returns the goal in words, "" if there is none.
func (m metric) goal() string {
	if m.bound == 0 {
		return ""
	}
	sign, unit := "≤ ", ""
	if m.least {
		sign = "≥ "
	}
	if m.relative {
		unit = " × " + reference
	}
	return sign + number(m.bound) + unit
}

// judged returns what the goal bounds: the subject's figure, or its ratio to the reference's.
func (r *result) judged(subject string, m metric) (float64, bool) {
	v, ok := r.value(subject, m.name)
	if !ok || !m.relative {
		return v, ok
	}
	base, ok := r.value(reference, m.name)
	return v / base, ok && base != 0
}

// distance returns how many times over its goal a subject is: 1 has just met it, 2 needs half, and less than 1 is
// better than asked for.
func (r *result) distance(subject string, m metric) (float64, bool) {
	v, ok := r.judged(subject, m)
	switch {
	case !ok || m.bound == 0:
		return 0, false
	case !m.least:
		return v / m.bound, true
	case v == 0:
		return math.Inf(1), true
	}
	return m.bound / v, true
}

// verdict returns whether aileron meets the goal, in words.
func (r *result) verdict(m metric) string {
	v, ok := r.judged("aileron", m)
	switch {
	case m.bound == 0:
		return ""
	case !ok:
		return "not measured"
	case m.least && v >= m.bound, !m.least && v <= m.bound:
		return "met"
	}
	return "missed"
}

// number returns v with three significant digits.
func number(v float64) string {
	switch a := max(v, -v); {
	case a >= 100:
		return fmt.Sprintf("%.0f", v)
	case a >= 10:
		return fmt.Sprintf("%.1f", v)
	case a == 0:
		return "0"
	case a < 0.1:
		return fmt.Sprintf("%.3f", v)
	}
	return fmt.Sprintf("%.2f", v)
}
