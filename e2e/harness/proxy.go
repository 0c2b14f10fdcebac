package harness

import (
	"bufio"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// Ready is what aileron proxy --json prints once it serves.
type Ready struct {
	SessionID string `json:"session_id"`
	ProxyURL  string `json:"proxy_url"`
	CAFile    string `json:"ca_file"`
	APIURL    string `json:"api_url"`
}

// StartProxy starts cmd, which runs aileron proxy --json, and returns when it serves. The caller ends it and waits for
// it. If StartProxy fails, cmd is not running any more, and the error has its messages where cmd.Stderr is a
// [fmt.Stringer], such as a buffer.
func StartProxy(cmd *exec.Cmd) (Ready, error) {
	var r Ready
	out, err := cmd.StdoutPipe()
	if err != nil {
		return r, err
	}
	if err := cmd.Start(); err != nil {
		return r, err
	}
	line, err := bufio.NewReader(out).ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &r)
	}
	if err != nil {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		err = fmt.Errorf("aileron proxy printed %q: %w", line, err)
		if messages, ok := cmd.Stderr.(fmt.Stringer); ok {
			err = fmt.Errorf("%w\n%s", err, messages)
		}
		return r, err
	}
	return r, nil
}

// EndProxy ends what StartProxy has started as a person does, and waits for its end. The error has its messages as
// that of StartProxy has.
func EndProxy(cmd *exec.Cmd) error {
	_ = cmd.Process.Signal(syscall.SIGTERM)
	late := time.AfterFunc(Patience, func() { _ = cmd.Process.Kill() })
	defer late.Stop()
	err := cmd.Wait()
	if messages, ok := cmd.Stderr.(fmt.Stringer); ok && err != nil {
		err = fmt.Errorf("%w\n%s", err, messages)
	}
	if err != nil {
		err = fmt.Errorf("aileron proxy: %w", err)
	}
	return err
}

// Proxy returns the URL of the proxy, with the session's token.
func (r Ready) Proxy() (*url.URL, error) { return url.Parse(r.ProxyURL) }

// Roots returns a pool with the root of the session's CA.
func (r Ready) Roots() (*x509.CertPool, error) {
	pem, err := os.ReadFile(r.CAFile)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, errors.New(r.CAFile + " has no certificate")
	}
	return pool, nil
}
