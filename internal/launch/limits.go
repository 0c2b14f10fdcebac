package launch

import (
	"fmt"
	"strings"

	"github.com/ALRubinger/aileron/sandbox"
	"github.com/ALRubinger/aileron/sandbox/engine"
)

// limit returns the limits of the sandbox on a machine: a share of it, unless config.toml says otherwise.
func (b *sandboxed) limit(machine engine.Limits) engine.Limits {
	limits := sandbox.Share(machine)
	if b.Config.Memory != nil {
		limits.Memory = int64(*b.Config.Memory)
	}
	if b.Config.CPUs != nil {
		limits.CPUs = float64(*b.Config.CPUs)
	}
	return limits.Within(machine)
}

// warnUnenforced warns about limits that the kernel does not enforce.
func (b *sandboxed) warnUnenforced(limits []string) {
	b.Infof("aileron: warning: [sandbox] %s not enforced: %s has no control group of its own for this sandbox "+
		"(rootless engines need delegated cgroups of version 2)", strings.Join(limits, ", "), b.prepared.Engine.Kind())
}

// exhaustedCause returns the cause of the end, with code, of a sandbox that ran out of something; "" for any other.
func exhaustedCause(e engine.Exhaustion, limits engine.Limits, code int) string {
	var causes []string
	if e.Memory {
		what := "a process of the sandbox"
		if code == 128+9 {
			what = "the command"
		}
		why := "the machine ran out of memory"
		if limits.Memory > 0 {
			why = "the sandbox reached its limit of " + engine.FormatBytes(limits.Memory) +
				"; raise [sandbox] memory in config.toml"
		}
		causes = append(causes, "out of memory: the kernel killed "+what+": "+why)
	}
	if e.Processes {
		causes = append(causes, fmt.Sprintf("out of processes: the sandbox reached its limit of %d", sandbox.MaxProcesses))
	}
	return strings.Join(causes, "; ")
}
