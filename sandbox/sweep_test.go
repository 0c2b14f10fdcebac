package sandbox_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/e2e/harness"
	"github.com/ALRubinger/aileron/sandbox"
)

// A sweep may list a gateway whose box is made a moment later, and which Podman
// does not remove without it. That is for the next sweep, and not an error.
func TestASweepThatMeetsASandboxInTheMakingReportsNothing(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, e *sandbox.Engine) {
		ended := exec.Command("true")
		if err := ended.Run(); err != nil {
			t.Fatal(err)
		}
		namespace, err := os.Readlink("/proc/self/ns/pid")
		if err != nil {
			t.Fatal(err)
		}
		session := "making" + strings.ToLower(filepath.Base(filepath.Dir(t.TempDir())))
		gateway, box := "aileron-"+session+"-gw", "foreign-"+session // without our labels: in no list yet
		call := func(args ...string) error {
			if out, err := exec.Command(e.Kind(), args...).CombinedOutput(); err != nil {
				return fmt.Errorf("%s %v: %w: %s", e.Kind(), args, err, out)
			}
			return nil
		}
		t.Cleanup(func() {
			_ = call("rm", "-f", box)
			_ = call("rm", "-f", gateway)
		})
		// Another test's session may sweep the gateway before it has a box.
		harness.WaitFor(t, "both are made", func() bool {
			if err := call("create", "--name", gateway, "--network", "none",
				"--label", "aileron.session="+session, "--label", "aileron.role=gateway",
				"--label", fmt.Sprintf("aileron.owner=%d/1/%s", ended.Process.Pid, namespace), testImage.Ref, "true"); err != nil {
				t.Fatal(err)
			}
			err := call("create", "--name", box, "--network", "container:"+gateway, testImage.Ref, "true")
			if err != nil && call("inspect", "--type", "container", gateway) == nil {
				t.Fatal(err)
			}
			return err == nil
		})
		sweep(t, e)
		if err := call("inspect", box); err != nil {
			t.Error(err)
		}
		if err := call("rm", box); err != nil {
			t.Fatal(err)
		}
		sweep(t, e)
		// A sweep of another process may be removing it just now.
		harness.WaitFor(t, "the gateway is removed when nothing needs it any more", func() bool {
			return call("inspect", "--type", "container", gateway) != nil
		})
	})
}

// sweep sweeps as a process of another home does, and fails unless it succeeds. What other packages' tests have on the
// engine may end in this moment, which is an error of one sweep, and not of the next.
func sweep(t *testing.T, e *sandbox.Engine) {
	t.Helper()
	var err error
	if !harness.Poll(harness.Patience, time.Second, func() bool {
		_, err = e.Sweep(t.Context(), func(string) bool { return false })
		return err == nil
	}) {
		t.Errorf("Sweep = %v, want nothing said", err)
	}
}
