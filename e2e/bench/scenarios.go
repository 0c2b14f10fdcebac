package main

import (
	"context"
	"time"
)

// scenario is one kind of load, and what is asked of a proxy under it.
type scenario struct {
	id, what string
	metrics  []metric
	// run measures one turn of a subject.
	run func(ctx context.Context, s *subject, t turn) (figures, error)
	// check does once what run does often, and says what is wrong.
	check func(ctx context.Context, s *subject) error
}

// turn is how long and how much one turn is.
type turn struct {
	length time.Duration
	quick  bool
}

// figures are what a turn measured, by the name of the metric.
type figures map[string]float64

// metric is one figure of a scenario. A goal is a bound on the figure's ratio
// to another subject's, or on the figure itself.
type metric struct {
	name    string
	bound   float64 // 0: there is no goal
	of      string  // the subject that the ratio is to; "": the figure itself
	atLeast bool    // bound is a lower one
}

const (
	cpuPer1000 = "CPU ms/1000"
	rate       = "requests/s"
	median     = "p50 µs"
	tail       = "p99 µs"
	cpuPerGiB  = "CPU s/GiB"
	speed      = "MiB/s"
	peak       = "peak RSS MiB"
	growth     = "peak RSS growth MiB"
)

// scenarios are the table of goals, in its order.
var scenarios = []scenario{
	{"A1", "small GETs on one connection", []metric{{cpuPer1000, 1.25, "light", false}, {name: rate}, {name: median}, {name: tail}}, small(1), checkSmall},
	{"A64", "small GETs on 64 connections", []metric{{cpuPer1000, 1.3, "light", false}, {rate, 0.8, "light", true}, {name: median}, {name: tail}}, small(64), checkSmall},
}
