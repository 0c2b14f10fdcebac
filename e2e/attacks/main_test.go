// Package attacks runs known attacks on mediating proxies against the real
// plane: real connector files, a real vault, the real audit log, the address
// floor on. Everything happens in a network namespace of its own, which has
// addresses that look public and no way out. docs/attacks.md lists what is
// run, by which oracles it is judged, and what is not run and why.
//
// A category of attacks is one file with one table; suite_test.go joins them.
package attacks

import (
	"fmt"
	"io"
	"log"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"github.com/ALRubinger/aileron/e2e/harness"
)

// inside is set in the process that has the namespace.
const inside = "AILERON_ATTACKS_INSIDE"

func TestMain(m *testing.M) {
	if os.Getenv(inside) == "" {
		os.Exit(again())
	}
	dir := os.Getenv(inside)
	if err := settle(dir); err != nil {
		fmt.Fprintln(os.Stderr, "attacks: set the namespace up:", err)
		os.Exit(1)
	}
	// net/http writes to the process's log what it does not understand, and
	// that is the binary's to keep quiet, see TestTheBinaryHolds.
	log.SetOutput(io.Discard)
	var err error
	if on, err = newStage(dir); err != nil {
		fmt.Fprintln(os.Stderr, "attacks: set the stage up:", err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// again runs the suite in namespaces of its own: as root with two new ones, as
// a user with a third that makes it root in there.
func again() int {
	dir, err := os.MkdirTemp("", "attacks-")
	if err != nil {
		fmt.Fprintln(os.Stderr, "attacks:", err)
		return 1
	}
	defer os.RemoveAll(dir)
	kinds := uintptr(syscall.CLONE_NEWNET | syscall.CLONE_NEWNS)
	if os.Geteuid() != 0 {
		kinds |= syscall.CLONE_NEWUSER
	}
	return harness.RunApart("attacks", inside+"="+dir, kinds)
}

// settle sets up the namespace: its loopback interface, the addresses of the
// fixture and the fixture's name server.
func settle(dir string) error {
	if _, err := harness.Loopback(slices.Collect(maps.Values(places))...); err != nil {
		return err
	}
	conf := filepath.Join(dir, "resolv.conf")
	if err := os.WriteFile(conf,
		[]byte("nameserver "+places["dns"].String()+"\nsearch evil.test\noptions timeout:2 attempts:1\n"),
		0o600); err != nil {
		return err
	}
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return err
	}
	real, err := filepath.EvalSymlinks("/etc/resolv.conf")
	if err != nil {
		return err
	}
	for _, name := range []string{"HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY", "https_proxy", "http_proxy", "all_proxy"} {
		_ = os.Setenv(name, "http://"+places["evil.test"].String()) // a client that obeys them is seen, see AUT-31
	}
	_ = os.Unsetenv("NO_PROXY")
	_ = os.Unsetenv("no_proxy")
	return syscall.Mount(conf, real, "", syscall.MS_BIND, "")
}
