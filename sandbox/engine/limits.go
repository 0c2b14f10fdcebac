package engine

import (
	"strconv"
	"strings"

	"github.com/docker/docker/api/types/container"
)

// Limits bound what a container may use of its engine's machine. A zero field
// is no bound.
type Limits struct {
	Memory int64 // in bytes, and there is no swap besides
	CPUs   float64
}

// Within returns the limits without those that the machine sets by itself.
func (l Limits) Within(machine Limits) Limits {
	if machine.Memory > 0 && l.Memory >= machine.Memory {
		l.Memory = 0
	}
	if machine.CPUs > 0 && l.CPUs >= machine.CPUs {
		l.CPUs = 0
	}
	return l
}

// String describes the limits for people.
func (l Limits) String() string {
	memory, cpus := "all memory", "all CPUs"
	if l.Memory > 0 {
		memory = FormatBytes(l.Memory) + " of memory, without swap,"
	}
	if l.CPUs > 0 {
		cpus = strconv.FormatFloat(l.CPUs, 'f', -1, 64) + " CPUs"
	}
	return memory + " and " + cpus
}

// FormatBytes returns a size in the largest binary unit of which it has at
// least one, with at most one decimal.
func FormatBytes(n int64) string {
	size, unit := float64(n), "bytes"
	for _, next := range []string{"KiB", "MiB", "GiB", "TiB"} {
		if size < 1024 {
			break
		}
		size, unit = size/1024, next
	}
	return strings.TrimSuffix(strconv.FormatFloat(size, 'f', 1, 64), ".0") + " " + unit
}

// cpuPeriod is the period of the kernel's CPU quota, in microseconds.
const cpuPeriod = 100_000

// resources adds the limits to those of a container.
func (l Limits) resources(r container.Resources) container.Resources {
	if l.Memory > 0 {
		r.Memory, r.MemorySwap = l.Memory, l.Memory // the sum of both: no swap
	}
	if l.CPUs > 0 {
		r.CPUPeriod, r.CPUQuota = cpuPeriod, int64(l.CPUs*cpuPeriod)
	}
	return r
}

// Exhaustion is what a container ran out of.
type Exhaustion struct {
	Memory    bool // the kernel killed a process of it
	Processes bool // it could not start another one
}

// Add adds what another report has.
func (e *Exhaustion) Add(other Exhaustion) {
	e.Memory = e.Memory || other.Memory
	e.Processes = e.Processes || other.Processes
}
