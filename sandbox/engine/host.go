package engine

import (
	"context"
	"os"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Host is what every sandbox needs to know of its engine.
type Host struct {
	Machine  Limits // as in About
	Rootless bool   // as in About
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
	return Host{Machine: about.Machine, Rootless: about.Rootless}, err
}

// ownHost is the Host of an engine that this process starts. It is not known in
// a user namespace of Podman's, and of root without CAP_SYS_ADMIN: Podman
// decides by both whether it is rootless.
func ownHost(meminfo string) (Host, bool) {
	memory := memoryOf(meminfo)
	host := Host{Machine: Limits{Memory: memory, CPUs: float64(runtime.NumCPU())}, Rootless: os.Geteuid() != 0}
	known := memory > 0 && os.Getenv("_CONTAINERS_USERNS_CONFIGURED") == "" && (host.Rootless || isAdmin())
	return host, known
}

// isAdmin reports whether this process has CAP_SYS_ADMIN.
func isAdmin() bool {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var sets [2]unix.CapUserData // version 3 has 64 capabilities
	return unix.Capget(&header, &sets[0]) == nil && sets[0].Effective&(1<<unix.CAP_SYS_ADMIN) != 0
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
