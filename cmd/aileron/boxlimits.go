package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/ALRubinger/aileron/sandbox"
	"github.com/ALRubinger/aileron/sandbox/engine"
)

// memorySize is a size in config.toml: "512m", "4g", "1.5GiB", or a number of
// bytes; 0 and "none" are no limit.
type memorySize int64

// minBoxMemory is the least with which a shell starts in a box.
const minBoxMemory = 16 << 20

// UnmarshalTOML reads the value of the key.
func (m *memorySize) UnmarshalTOML(value any) error {
	n, err := parseMemory(fmt.Sprint(value))
	*m = memorySize(n)
	return err
}

func parseMemory(text string) (int64, error) {
	bad := fmt.Errorf(`sandbox.memory is %q; it must be a size such as "512m" or "4g", or "none"`, text)
	number := strings.ToLower(strings.TrimSpace(text))
	if number == "none" {
		return 0, nil
	}
	unit := 1.0
	for i, suffix := range []string{"k", "m", "g", "t"} {
		for _, form := range []string{suffix + "ib", suffix + "b", suffix} {
			if rest, ok := strings.CutSuffix(number, form); ok {
				number, unit = strings.TrimSpace(rest), math.Pow(1024, float64(i+1))
				break
			}
		}
	}
	n, err := strconv.ParseFloat(number, 64)
	switch n *= unit; {
	case err != nil || math.IsNaN(n) || n < 0 || n >= 1<<62:
		return 0, bad
	case n > 0 && n < minBoxMemory:
		return 0, fmt.Errorf(`sandbox.memory is %q; it must be at least "16m", or no command starts; "none" takes the limit off`, text)
	}
	return int64(n), nil
}

// cpuCount is a number of CPUs in config.toml; 0 and "none" are no limit.
type cpuCount float64

// UnmarshalTOML reads the value of the key.
func (c *cpuCount) UnmarshalTOML(value any) error {
	text := fmt.Sprint(value)
	if text == "none" {
		*c = 0
		return nil
	}
	n, err := strconv.ParseFloat(text, 64)
	switch {
	case err != nil || math.IsNaN(n) || n < 0 || n > 1<<20:
		return fmt.Errorf(`sandbox.cpus is %q; it must be a number such as 1.5, or "none"`, text)
	case n > 0 && n < 0.01:
		return errors.New(`sandbox.cpus is less than 0.01, the least that engines take; "none" takes the limit off`)
	}
	*c = cpuCount(n)
	return nil
}

// boxLimits returns the limits of a box on an engine, and prints them.
func (a *app) boxLimits(ctx context.Context, engine *sandbox.Engine, conf sandboxConfig) (sandbox.Limits, error) {
	machine, err := engine.Machine(ctx)
	if err != nil {
		return sandbox.Limits{}, err
	}
	limits := sandbox.Share(machine)
	if conf.Memory != nil {
		limits.Memory = int64(*conf.Memory)
	}
	if conf.CPUs != nil {
		limits.CPUs = float64(*conf.CPUs)
	}
	limits = limits.Within(machine)
	a.sayf("aileron: the box may use %v ([sandbox] memory, cpus in config.toml)", limits)
	return limits, nil
}

// sayUnenforced warns of limits that do not hold.
func (b *boxRun) sayUnenforced(limits []string) {
	b.app.sayf("aileron: warning: [sandbox] %s not enforced: %s has no control group of its own for this box (rootless engines need delegated cgroups of version 2)",
		strings.Join(limits, ", "), b.engine.Kind())
}

// exhaustedCause is how a box ended that ran out of something, with code; ""
// for one that did not.
func exhaustedCause(e sandbox.Exhaustion, limits sandbox.Limits, code int) string {
	var causes []string
	if e.Memory {
		what := "a process of the box"
		if code == 128+9 {
			what = "the command"
		}
		why := "the machine ran out of memory"
		if limits.Memory > 0 {
			why = "the box reached its limit of " + engine.FormatBytes(limits.Memory) + "; raise [sandbox] memory in config.toml"
		}
		causes = append(causes, "out of memory: the kernel killed "+what+": "+why)
	}
	if e.Processes {
		causes = append(causes, fmt.Sprintf("out of processes: the box reached its limit of %d", sandbox.MaxProcesses))
	}
	return strings.Join(causes, "; ")
}
