package harness

import (
	"bytes"
	"os/exec"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
)

func TestAProxyThatDoesNotServeIsNamedAndEnded(t *testing.T) {
	for script, want := range map[string]string{
		"echo 'aileron: no vault' >&2":                          `printed "": EOF` + "\naileron: no vault",
		"echo 'aileron: no json' >&2; echo text; exec sleep 1d": `printed "text\n": invalid character`,
	} {
		cmd := exec.Command("/bin/sh", "-c", script)
		cmd.Stderr = &bytes.Buffer{}
		_, err := StartProxy(cmd)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "aileron: no ") {
			t.Errorf("%s: %v, want %s", script, err, want)
		}
		if cmd.ProcessState == nil {
			t.Errorf("%s: it still runs", script)
		}
	}
}

func TestAProxyThatServesDescribesItself(t *testing.T) {
	cmd := exec.Command("/bin/sh", "-c",
		`echo '{"session_id":"01A","proxy_url":"http://aileron:t@127.0.0.1:1"}'; exec sleep 1d`)
	r := must.Get(StartProxy(cmd))(t)
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	proxy, err := r.Proxy()
	if err != nil || proxy.Host != "127.0.0.1:1" || r.SessionID != "01A" {
		t.Errorf("%+v, %v", r, err)
	}
}
