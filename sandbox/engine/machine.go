package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/network"
	api "github.com/docker/docker/api/types/system"

	"github.com/ALRubinger/aileron/internal/system"
)

// About is what an engine reports about itself and its machine.
type About struct {
	Machine Limits // all that the machine has
	Kernel  string // the release that its containers run on
	// Architecture is the machine's, as Go names those.
	Architecture string
	// Rootless reports that the engine is a person's own, so that user 0 of its
	// containers is that person. This process may be another's: an ordinary
	// user may be allowed to use root's engine.
	Rootless bool
	Remapped bool // its containers have a user namespace (Docker's userns-remap): their users are no users of the host

	Storage string // its storage driver
	Groups  string // "v1" or "v2", with the driver of control groups
	Seccomp bool   // it applies seccomp profiles
	// What it can limit.
	LimitsMemory, LimitsCPUs, LimitsProcesses bool
}

// About asks the engine once: Podman runs a program for each of its parts to
// find out.
func (e *Engine) About(ctx context.Context) (About, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.info != nil {
		return *e.info, nil
	}
	res, err := request(ctx, e.cli, http.MethodGet, engineURL(e.cli, "/info"), 4<<20)
	if err != nil {
		return About{}, err
	}
	var info struct {
		api.Info
		Rootless bool // Podman's word for it; Docker's is a security option
	}
	if res.code != http.StatusOK || json.Unmarshal(res.body, &info) != nil {
		return About{}, fmt.Errorf("%s: %.200s", res.status, res.body)
	}
	rootless := info.Rootless || slices.ContainsFunc(info.SecurityOptions, func(option string) bool {
		return option == "rootless" || option == "name=rootless"
	})
	e.info = &About{
		Machine: Limits{Memory: info.MemTotal, CPUs: float64(info.NCPU)}, Kernel: info.KernelVersion, Rootless: rootless,
		Architecture: architecture(info.Architecture),
		Remapped:     slices.Contains(info.SecurityOptions, "name=userns"),
		Storage:      info.Driver, Groups: "v" + info.CgroupVersion + " (" + info.CgroupDriver + ")",
		Seccomp: slices.ContainsFunc(info.SecurityOptions, func(option string) bool {
			return option == "seccomp" || strings.HasPrefix(option, "name=seccomp")
		}),
		LimitsMemory: info.MemoryLimit, LimitsCPUs: info.CPUCfsQuota, LimitsProcesses: info.PidsLimit,
	}
	return *e.info, nil
}

// architecture is Go's name of an architecture that uname(2) names otherwise. Podman uses Go's.
func architecture(machine string) string {
	switch machine {
	case "x86_64":
		return "amd64"
	case "aarch64":
		return "arm64"
	}
	return machine
}

// Host is what every sandbox needs to know of its engine.
type Host struct {
	Machine  Limits // as in About
	Rootless bool   // as in About
	Remapped bool   // as in About
}

// Host returns what [Engine.About] does, of a service that this process has
// started without asking it: Podman takes longer to describe itself than to
// start a container, and such a service has this machine and this process's
// rights.
func (e *Engine) Host(ctx context.Context) (Host, error) {
	if e.service != nil {
		if host, ok := ownHost("/proc/meminfo"); ok {
			return host, nil
		}
	}
	about, err := e.About(ctx)
	return Host{Machine: about.Machine, Rootless: about.Rootless, Remapped: about.Remapped}, err
}

// ownHost is the Host of an engine that this process starts. It is not known in
// a user namespace of Podman's, and of root without CAP_SYS_ADMIN: Podman
// decides by both whether it is rootless.
func ownHost(meminfo string) (Host, bool) {
	memory := memoryOf(meminfo)
	host := Host{Machine: Limits{Memory: memory, CPUs: float64(runtime.NumCPU())}, Rootless: os.Geteuid() != 0}
	known := memory > 0 && os.Getenv("_CONTAINERS_USERNS_CONFIGURED") == "" && (host.Rootless || system.IsAdmin())
	return host, known
}

// memoryOf returns the memory of a machine, in bytes, according to its
// /proc/meminfo, which Podman reads too (proc_meminfo(5)); 0 if it is not known.
func memoryOf(file string) int64 {
	text, err := os.ReadFile(file)
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if name, value, _ := strings.Cut(line, ":"); name == "MemTotal" {
			kib, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
			if err == nil {
				return kib << 10
			}
		}
	}
	return 0
}

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

// HostAlias is the name by which a container with the engine's own network
// finds the engine's host, when Config.HostAlias is set.
func (e *Engine) HostAlias() string { return e.dialect.hostAlias() }

// BridgeAddresses are the addresses that the engine's bridge may have on this
// host: its gateway, and what its device has, because Docker leaves out a
// gateway that it chose itself. There are none where the engine does not report
// its bridge.
func (e *Engine) BridgeAddresses(ctx context.Context) []netip.Addr {
	bridge, err := e.cli.NetworkInspect(ctx, e.dialect.bridge(), network.InspectOptions{})
	if err != nil {
		return nil
	}
	var found []netip.Addr
	for _, c := range bridge.IPAM.Config {
		if addr, err := netip.ParseAddr(c.Gateway); err == nil {
			found = append(found, addr)
		}
	}
	device, err := net.InterfaceByName(bridge.Options["com.docker.network.bridge.name"])
	if err != nil {
		return found
	}
	addrs, err := device.Addrs()
	if err != nil {
		return found
	}
	for _, a := range addrs {
		if prefix, err := netip.ParsePrefix(a.String()); err == nil && prefix.Addr().Is4() {
			found = append(found, prefix.Addr())
		}
	}
	return found
}

// ListenForAlias opens a TCP port of this host that a container with the engine's own network reaches
// at HostAlias: on the address that the engine's bridge has here, or on
// loopback, where engines in a virtual machine forward what is sent to the
// alias.
func (e *Engine) ListenForAlias(ctx context.Context) (net.Listener, error) {
	var lc net.ListenConfig
	for _, addr := range e.BridgeAddresses(ctx) {
		if l, err := lc.Listen(ctx, "tcp", netip.AddrPortFrom(addr, 0).String()); err == nil {
			return l, nil
		}
	}
	l, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("open a port for a sandbox: %w", err)
	}
	return l, nil
}
