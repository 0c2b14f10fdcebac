package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/docker/docker/api/types/system"
)

// About is what an engine reports about itself and its machine.
type About struct {
	Machine Limits // all that the machine has
	Kernel  string // the release that its containers run on
	// Rootless reports that the engine is a person's own, so that user 0 of its
	// containers is that person. This process may be another's: an ordinary
	// user may be allowed to use root's engine.
	Rootless bool

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
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, engineURL(e.cli, "/info"), nil)
	if err != nil {
		return About{}, err
	}
	res, err := e.cli.HTTPClient().Do(req)
	if err != nil {
		return About{}, err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, 4<<20))
	if err != nil {
		return About{}, err
	}
	var info struct {
		system.Info
		Rootless bool // Podman's word for it; Docker's is a security option
	}
	if res.StatusCode != http.StatusOK || json.Unmarshal(body, &info) != nil {
		return About{}, fmt.Errorf("%s: %.200s", res.Status, body)
	}
	rootless := info.Rootless || slices.ContainsFunc(info.SecurityOptions, func(option string) bool {
		return option == "rootless" || option == "name=rootless"
	})
	e.info = &About{
		Machine: Limits{Memory: info.MemTotal, CPUs: float64(info.NCPU)}, Kernel: info.KernelVersion, Rootless: rootless,
		Storage: info.Driver, Groups: "v" + info.CgroupVersion + " (" + info.CgroupDriver + ")",
		Seccomp: slices.ContainsFunc(info.SecurityOptions, func(option string) bool {
			return option == "seccomp" || strings.HasPrefix(option, "name=seccomp")
		}),
		LimitsMemory: info.MemoryLimit, LimitsCPUs: info.CPUCfsQuota, LimitsProcesses: info.PidsLimit,
	}
	return *e.info, nil
}
