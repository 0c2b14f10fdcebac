package main

import (
	"fmt"
	"strings"

	"github.com/ALRubinger/aileron/internal/config"
	"github.com/ALRubinger/aileron/sandbox"
	"github.com/ALRubinger/aileron/sandbox/engine"
)

// boxLimits returns the limits of a box on a machine.
func boxLimits(machine engine.Limits, conf config.Sandbox) engine.Limits {
	limits := sandbox.Share(machine)
	if conf.Memory != nil {
		limits.Memory = int64(*conf.Memory)
	}
	if conf.CPUs != nil {
		limits.CPUs = float64(*conf.CPUs)
	}
	return limits.Within(machine)
}

// sayUnenforced warns of limits that do not hold.
func (b *boxRun) sayUnenforced(limits []string) {
	b.app.infof("aileron: warning: [sandbox] %s not enforced: %s has no control group of its own for this box (rootless engines need delegated cgroups of version 2)",
		strings.Join(limits, ", "), b.sandbox.Engine.Kind())
}

// exhaustedCause is how a box ended that ran out of something, with code; ""
// for one that did not.
func exhaustedCause(e engine.Exhaustion, limits engine.Limits, code int) string {
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
