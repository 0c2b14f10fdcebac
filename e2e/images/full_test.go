package images

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/e2e/harness"
	"github.com/ALRubinger/aileron/e2e/must"
)

// A Podman whose storage is 48 MiB, in a mount namespace of its own, has the
// images of the machine's besides.
const fullDisk = `set -eu
mkdir small
mount -t tmpfs -o size=48m tmpfs small
printf '[storage]\ndriver = "overlay"\ngraphroot = "%s"\nrunroot = "%s"\n' "$PWD/small/g" "$PWD/run" >storage.conf
printf '[storage.options]\nadditionalimagestores = ["%s"]\n' "$images" >>storage.conf
export CONTAINERS_STORAGE_CONF=$PWD/storage.conf
code=0
"$@" || code=$?
podman images -a -q --filter readonly=false
podman ps -a -q --external
du -s small/g/overlay | cut -f1
exit $code
`

func TestABuildThatFillsTheDiskLeavesNothing(t *testing.T) {
	t.Parallel()
	needEngine(t, "podman")
	if os.Geteuid() != 0 || exec.Command("unshare", "-m", "true").Run() != nil {
		harness.Need(t, "root, who may make a mount namespace")
	}
	p := newPerson(t, "podman")
	driver, _ := tool("podman", "info", "--format", "{{.Store.GraphDriverName}}")
	if strings.TrimSpace(string(driver)) != "overlay" {
		harness.Need(t, "a Podman whose storage is overlay")
	}
	images := must.Get(tool("podman", "info", "--format", "{{.Store.GraphRoot}}"))(t)
	p.dockerfile("USER root", "RUN true 1 of "+p.mark(), "RUN head -c 100M /dev/zero >/large", "RUN true")
	cmd := exec.Command("unshare", "-m", "sh", "-c", fullDisk, "sh", binary, "sandbox", "build", "--sandbox=podman",
		"--if-missing", "--yes", "--dir", p.project)
	cmd.Dir = filepath.Dir(p.home)
	cmd.Env = append(os.Environ(), "AILERON_HOME="+p.home, "images="+strings.TrimSpace(string(images)))
	var out, errs strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errs
	_ = cmd.Run()
	end := lastLines(errs.String(), 1)
	code := cmd.ProcessState.ExitCode()
	if code != 1 || !strings.Contains(end, ": step 4/6: the engine's disk is full: ") ||
		!strings.Contains(end, "No space left on device; hint: free some space where podman keeps its images") {
		t.Errorf("exit %d\n%s", code, errs.String())
	}
	if got := strings.TrimSpace(out.String()); got != "4" && got != "0" { // KiB, of the directory itself
		t.Errorf("what is left: %q", got)
	}
}
