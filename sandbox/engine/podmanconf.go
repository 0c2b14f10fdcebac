package engine

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// podmanConf is what hosts need on which Podman's own defaults fail: no
// systemd, cgroups of both versions at once, file limits that cannot be
// raised. Elsewhere it changes nothing.
func podmanConf() []byte {
	var b strings.Builder
	files, procs := hardLimits()
	fmt.Fprintf(&b, "[containers]\ndefault_ulimits = [\"nofile=%d:%d\", \"nproc=%d:%d\"]\n", files, files, procs, procs)
	b.WriteString("[engine]\n")
	if _, err := os.Stat("/run/systemd/system"); err != nil {
		b.WriteString("cgroup_manager = \"cgroupfs\"\nevents_logger = \"file\"\n")
	}
	// crun refuses hybrid cgroups; runc takes them.
	if _, err := os.Stat("/sys/fs/cgroup/cgroup.controllers"); err != nil {
		if _, err := exec.LookPath("runc"); err == nil {
			b.WriteString("runtime = \"runc\"\n")
		}
	}
	return []byte(b.String())
}
