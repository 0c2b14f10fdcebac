package procid_test

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/internal/procid"
)

func TestAProcessLivesUntilItEnds(t *testing.T) {
	cmd := exec.Command("cat")
	in := must.Get(cmd.StdinPipe())(t)
	must.Do(t, cmd.Start())
	id, err := procid.Of(cmd.Process.Pid)
	if err != nil || !procid.Lives(id) {
		t.Errorf("Of = %q, %v; lives: %v", id, err, procid.Lives(id))
	}
	_ = in.Close()
	must.Do(t, cmd.Wait())
	if procid.Lives(id) {
		t.Errorf("%s still lives after its end", id)
	}
	if id, err := procid.Of(cmd.Process.Pid); err == nil {
		t.Errorf("Of a process that has ended = %q, want an error", id)
	}
}

func TestANumberAloneIsNoProcess(t *testing.T) {
	own := must.Get(procid.Of(os.Getpid()))(t)
	pid, start, namespace, err := procid.Numbers(own)
	if err != nil || pid != uint64(os.Getpid()) || procid.Join(pid, start, namespace) != own {
		t.Errorf("Numbers of %s = %d, %d, %d, %v", own, pid, start, namespace, err)
	}
	for id, want := range map[string]bool{
		own:                                  true,
		procid.Join(pid, start+1, namespace): false, // its number is another process's now
		procid.Join(pid, start, namespace+1): true,  // of another namespace: not judged
		strconv.Itoa(os.Getpid()):            false,
		"":                                   false,
		strings.Replace(own, "/", "/x", 1):   false,
	} {
		if got := procid.Lives(id); got != want {
			t.Errorf("Lives(%q) = %v, want %v", id, got, want)
		}
	}
	if _, _, _, err := procid.Numbers("1/x"); err == nil {
		t.Error("Numbers of a text that is no identity: no error")
	}
}
