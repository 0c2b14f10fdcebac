package e2e

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os/exec"
	"strings"
	"syscall"
)

// plane is a running aileron proxy.
type plane struct {
	SessionID string `json:"session_id"`
	ProxyURL  string `json:"proxy_url"`
	CAFile    string `json:"ca_file"`
	APIURL    string `json:"api_url"`

	cmd *exec.Cmd
}

// serve starts aileron proxy; it is ended with the test.
func (u *user) serve(flags ...string) *plane {
	u.t.Helper()
	p := &plane{cmd: u.command(append(append([]string{"proxy", "--json"}, u.reach()...), flags...)...)}
	var errs bytes.Buffer
	p.cmd.Stderr = &errs
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		u.t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		u.t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadBytes('\n')
	if err != nil {
		_ = p.cmd.Wait()
		u.t.Fatalf("proxy: %v\n%s", err, errs.String())
	}
	if err := json.Unmarshal(line, p); err != nil {
		u.t.Fatalf("proxy says %q: %v", line, err)
	}
	u.t.Cleanup(func() {
		if p.cmd.ProcessState == nil {
			_ = p.cmd.Process.Signal(syscall.SIGTERM)
			if err := p.cmd.Wait(); err != nil {
				u.t.Errorf("proxy: %v\n%s", err, errs.String())
			}
		}
		if strings.Contains(errs.String(), secret[:16]) {
			u.t.Errorf("the secret is in what proxy says: %s", errs.String())
		}
	})
	return p
}
