// Package seal tries the seal from inside real boxes: a hostile program
// (testdata/probe) in a box on each engine goes through every way out that
// its author knows, and what it reports is compared with what the manual
// promises, with the audit log, and with every packet that left the program.
//
// The tests run in a network namespace in which every address is local: what
// aileron dials is seen whether anything listens there or not, and nothing of
// it can leave the machine.
package seal

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/ALRubinger/aileron/e2e/harness"
)

// inside holds, in the process that has the namespace, the directory of the
// built programs.
const inside = "AILERON_SEAL_INSIDE"

func TestMain(m *testing.M) {
	if os.Getenv(inside) == "" {
		os.Exit(again())
	}
	if err := settle(); err != nil {
		fmt.Fprintln(os.Stderr, "seal: set the namespace up:", err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// again builds what is needed and runs this program in a namespace of its own.
func again() int {
	if os.Geteuid() != 0 {
		return harness.NotRun("seal", "boxes of several users on several engines need root")
	}
	dir, err := os.MkdirTemp("", "seal-")
	if err == nil {
		defer os.RemoveAll(dir)
		err = os.Chmod(dir, 0o755)
	}
	if err == nil {
		err = build(dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "seal:", err)
		return 1
	}
	return harness.RunApart("seal", inside+"="+dir, syscall.CLONE_NEWNET)
}

func build(dir string) error {
	return harness.Build(dir, map[string]string{"aileron": "../../cmd/aileron", "probe": "./testdata/probe"})
}

// program is a built program.
func program(name string) string { return filepath.Join(os.Getenv(inside), name) }

// Addresses of the host, as its network would give it.
var hostAddresses = []string{"10.77.0.1", "fd77::1"}

// settle makes every address of the world one of this namespace's own.
func settle() error {
	lo, err := harness.Loopback(netip.MustParseAddr(hostAddresses[0]), netip.MustParseAddr(hostAddresses[1]))
	if err != nil {
		return err
	}
	for _, all := range []*net.IPNet{{IP: net.IPv4zero.To4(), Mask: net.CIDRMask(0, 32)},
		{IP: net.IPv6zero, Mask: net.CIDRMask(0, 128)}} {
		if err := netlink.RouteAdd(&netlink.Route{LinkIndex: lo.Attrs().Index, Dst: all, Type: unix.RTN_LOCAL,
			Table: unix.RT_TABLE_LOCAL, Scope: unix.RT_SCOPE_HOST}); err != nil {
			return fmt.Errorf("make %s local: %w", all, err)
		}
	}
	return nil
}
