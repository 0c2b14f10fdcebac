package forge

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/e2e/harness"
	"github.com/ALRubinger/aileron/e2e/must"
)

// Sixteen installations at once, each killed at some moment, leave a store that is whole:
// every connector in it verifies, and what they left is gone with the next command that
// installs something.
func TestKilledInstallationsLeaveAWholeStore(t *testing.T) {
	t.Parallel()
	f := Start(t)
	u := newUser(t, f)
	const versions = 8
	for n := range versions {
		v := fmt.Sprintf("1.%d.0", n)
		f.Publish(t, tracker, v, asset, packed(t, tracker, v, "x"))
	}
	u.ok("connector", "install", tracker+"@1.0.0", "--yes") // the home exists
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	killed := 0
	for round := range 4 {
		var all sync.WaitGroup
		var mu sync.Mutex
		for n := range 16 {
			after := time.Duration(random.IntN(600)) * time.Millisecond
			all.Go(func() {
				args := []string{"connector", "install", tracker + fmt.Sprintf("@1.%d.0", n%versions), "--yes"}
				cmd := exec.CommandContext(t.Context(), program, append(args, f.Flags()...)...)
				cmd.Env = harness.Env(u.home, "")
				var errs bytes.Buffer
				cmd.Stderr = &errs
				if err := cmd.Start(); err != nil {
					t.Error(err)
					return
				}
				timer := time.AfterFunc(after, func() { _ = cmd.Process.Kill() })
				err := cmd.Wait()
				if timer.Stop() && err != nil {
					t.Errorf("it was not killed, and ends with %v: %s", err, errs.String())
				}
				mu.Lock()
				defer mu.Unlock()
				if cmd.ProcessState.ExitCode() == -1 {
					killed++
				}
			})
		}
		all.Wait()
		if out, errs, code := u.start("connector", "verify"); code != 0 {
			t.Fatalf("round %d: verify ends with %d: %s%s", round, code, out, errs)
		}
	}
	t.Logf("%d of 64 were killed", killed)
	for n := range versions {
		u.ok("connector", "install", tracker+fmt.Sprintf("@1.%d.0", n), "--yes")
	}
	u.ok("connector", "check", tracker+"@1.0.0") // which takes the lock, whatever was installed already
	left := must.Get(os.ReadDir(filepath.Join(u.home, "store/tmp")))(t)
	left = slices.DeleteFunc(left, func(e os.DirEntry) bool { return e.Name() == ".lock" })
	installed, err := os.ReadDir(filepath.Join(u.home, "store/connectors/sha256"))
	if err != nil || len(installed) != versions || len(left) > 0 {
		t.Errorf("%d connectors are installed, and %v is left: %v", len(installed), left, err)
	}
	if out, errs, code := u.start("audit", "verify"); code != 0 {
		t.Errorf("the audit log does not verify: %s%s", out, errs)
	}
}
