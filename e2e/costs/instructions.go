package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
)

// counter is a program that counts the instructions of another.
type counter struct {
	name   string
	args   []string // before the program and its arguments
	result *regexp.Regexp
}

// counters are those that are tried, in this order. valgrind runs a program on a processor of its own, so its count is
// the same on every machine.
var counters = []*counter{
	{name: "valgrind", result: regexp.MustCompile(`(?m)I\s+refs:\s+([\d,]+)`),
		args: []string{"--tool=cachegrind", "--cache-sim=no", "--branch-sim=no", "--cachegrind-out-file=/dev/null"}},
	{name: "perf", result: regexp.MustCompile(`(?m)^([\d]+),[^,]*,instructions`),
		args: []string{"stat", "-x,", "-e", "instructions:u", "--"}},
}

// findCounter returns the first counter that works here, or an error that states why none does.
func findCounter(ctx context.Context) (*counter, error) {
	var all []error
	for _, c := range counters {
		path, err := exec.LookPath(c.name)
		if err != nil {
			all = append(all, fmt.Errorf("%s is not installed", c.name))
			continue
		}
		out, err := exec.CommandContext(ctx, path, append(c.args, "true")...).CombinedOutput()
		if _, failed := c.count(out); err != nil || failed != nil {
			all = append(all, fmt.Errorf("%s does not count here (%s)", c.name, lastLine(out)))
			continue
		}
		return c, nil
	}
	return nil, errors.New(joined(all))
}

func joined(all []error) string {
	var text []string
	for _, err := range all {
		text = append(text, err.Error())
	}
	return strings.Join(text, "; ")
}

func lastLine(out []byte) string {
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	return lines[len(lines)-1]
}

// unit returns what the counter's figures are called. Counts of different programs are never compared.
func (c *counter) unit() string { return "instructions (" + c.name + ")" }

func (c *counter) count(out []byte) (float64, error) {
	m := c.result.FindSubmatch(out)
	if m == nil {
		return 0, errNoCount
	}
	return strconv.ParseFloat(strings.ReplaceAll(string(m[1]), ",", ""), 64)
}

// perIteration returns the instructions of one iteration. A second run with n more of them leaves what is done once
// out of the count.
func (c *counter) perIteration(ctx context.Context, p program, b benchmark) (float64, error) {
	few, many := max(1, b.n/10), max(1, b.n/10)+b.n
	var counts [2]float64
	for i, n := range []int{few, many} {
		out, err := p.run(ctx, append(append([]string{c.name}, c.args...), p.arguments(b, n)...))
		if err != nil {
			return 0, err
		}
		if counts[i], err = c.count(out); err != nil {
			return 0, fmt.Errorf("%s: %w:\n%s", c.name, err, out)
		}
	}
	return (counts[1] - counts[0]) / float64(many-few), nil
}
