package main

import (
	"cmp"
	"slices"
)

// judgement is a goal, and how far from it each subject is.
type judgement struct {
	*result
	metric
}

// ranking returns every goal of the run, the one that aileron misses by most first, and those that were not measured
// before all others.
func (r *report) ranking() []judgement {
	var all []judgement
	for _, res := range r.results {
		for _, m := range res.metrics {
			if m.bound != 0 {
				all = append(all, judgement{res, m})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b judgement) int { return -cmp.Compare(a.miss(), b.miss()) })
	return all
}

// miss returns how many times over its goal aileron is.
func (j judgement) miss() float64 {
	d, ok := j.distance("aileron", j.metric)
	if !ok {
		return unmeasured
	}
	return d
}

// unmeasured is farther from a goal than any measurement.
const unmeasured = 1e9

// worstFirst returns the results, the one with the goal that is missed by most first.
func (r *report) worstFirst() []*result {
	var sorted []*result
	for _, j := range r.ranking() {
		if !slices.Contains(sorted, j.result) {
			sorted = append(sorted, j.result)
		}
	}
	for _, res := range r.results { // those without a goal
		if !slices.Contains(sorted, res) {
			sorted = append(sorted, res)
		}
	}
	return sorted
}

// times returns how many times over its goal aileron is, in words.
func (j judgement) times() string {
	if d, ok := j.distance("aileron", j.metric); ok {
		return number(d)
	}
	return "?"
}

// unit returns what a goal is about, as a person reads it.
func (j judgement) unit() string {
	if j.relative {
		return j.name + ", × " + reference
	}
	return j.name
}
