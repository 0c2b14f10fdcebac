package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/ALRubinger/aileron/audit"
)

const connectorFQN = "github://bench/api"

const connectorManifest = `
[connector]
name = "` + connectorFQN + `"
version = "1.0.0"
[capabilities.network]
hosts = ["` + apiHost + `", "*.` + manyDomain + `"]
[capabilities.credential]
kind = "bearer"
scope = "what the bench asks for"
[provides]
intents = ["bench"]
`

// connectorSpec injects a bearer into every operation.
const connectorSpec = `{"schema_version":"aileron.connector.v1","connector":{"fqn":"` + connectorFQN +
	`","version":"1.0.0"},
"tools":[{"name":"api","description":"The API of the bench","operations":[
 {"name":"items","summary":"A small answer","method":"GET","path":"/v1/items",
   "hosts":["` + apiHost + `"],"credential":"bearer","idempotency":"idempotent"},
 {"name":"echo","summary":"The credential","method":"GET","path":"/v1/echo",
   "hosts":["` + apiHost + `"],"credential":"bearer","idempotency":"idempotent"},
 {"name":"blob","summary":"A large answer","method":"GET","path":"/v1/blob/{kind}/{mib}",
   "hosts":["` + apiHost + `"],"credential":"bearer","idempotency":"idempotent"},
 {"name":"leak","summary":"A large answer with the credential in it","method":"GET","path":"/v1/leak/{kind}",
   "hosts":["` + apiHost + `"],"credential":"bearer","idempotency":"idempotent"},
 {"name":"upload","summary":"A large request","method":"POST","path":"/v1/upload/{kind}",
   "hosts":["` + apiHost + `"],"credential":"bearer","idempotency":"none"},
 {"name":"events","summary":"A stream","method":"GET","path":"/v1/events/{n}/{gap}",
   "hosts":["` + apiHost + `"],"credential":"bearer","idempotency":"none"},
 {"name":"many","summary":"A small answer of many hosts","method":"GET","path":"/v1/items",
   "hosts":["*.` + manyDomain + `"],"wildcard_credential":true,"credential":"bearer","idempotency":"idempotent"}]}]}`

// home is an aileron home with a connector, a bound secret and pins.
type home struct {
	binary, dir string
	passphrase  string
	profile     string // where a binary built for it writes a CPU profile
}

// newHome sets aileron up as a user does. Its settings are the defaults but
// for the pins that lead the bench's names to the origin, and the rate.
func newHome(ctx context.Context, binary, dir, originAddr, originRoots, limits, audit string) (*home, error) {
	h := &home{binary: binary, dir: filepath.Join(dir, "home"), passphrase: "a passphrase of the bench",
		profile: filepath.Join(dir, "cpu.pprof")}
	connector := filepath.Join(dir, "connector")
	for _, d := range []string{h.dir, connector} {
		if err := os.Mkdir(d, 0o700); err != nil {
			return nil, err
		}
	}
	pins := []string{fmt.Sprintf("%q", apiHost+":443:"+originAddr), fmt.Sprintf("%q", loginHost+":443:"+originAddr)}
	for i := range manyHosts {
		pins = append(pins, fmt.Sprintf("%q", manyHost(i)+":443:"+originAddr))
	}
	// The default rate is a bound on an agent, and below what this load reaches.
	config := "[limits]\nrate = 1000000\n" + limits + "[upstream]\nca = \"" + originRoots + "\"\nresolve = [" +
		strings.Join(pins, ", ") + "]\n"
	config += audit
	for path, text := range map[string]string{
		filepath.Join(h.dir, "config.toml"):                   config,
		filepath.Join(connector, "manifest.toml"):             connectorManifest,
		filepath.Join(connector, "aileron.connector.v1.json"): connectorSpec,
		filepath.Join(dir, "secret"):                          secret + "\n",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			return nil, err
		}
	}
	if _, err := h.run(ctx, "connector", "install", connector, "--yes"); err != nil {
		return nil, err
	}
	if _, err := h.run(ctx, "binding", "setup", connectorFQN, "--identity", "bench", "--secret-file",
		filepath.Join(dir, "secret")); err != nil {
		return nil, err
	}
	return h, nil
}

func (h *home) command(args ...string) *exec.Cmd {
	cmd := exec.Command(h.binary, args...)
	cmd.Env = append(os.Environ(), "AILERON_HOME="+h.dir, "AILERON_VAULT_PASSPHRASE="+h.passphrase)
	return cmd
}

// run runs a verb to its end.
func (h *home) run(ctx context.Context, args ...string) ([]byte, error) {
	cmd := h.command(args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("run %s: %w (just build makes it)", h.binary, err)
	}
	stop := context.AfterFunc(ctx, func() { _ = cmd.Process.Kill() })
	defer stop()
	if err := cmd.Wait(); err != nil {
		return nil, fmt.Errorf("aileron %s: %w\n%s", strings.Join(args, " "), err, errs.Bytes())
	}
	return out.Bytes(), nil
}

// serve starts a session without a box.
func (h *home) serve(ctx context.Context) (*process, error) {
	cmd := h.command("proxy", "--json")
	cmd.Stderr = os.Stderr
	cmd.Env = append(cmd.Env, "AILERON_BENCH_PROFILE="+h.profile)
	return start(ctx, cmd)
}

// outcomes reads the audit log as a user does and counts, of requests that
// carried the credential, the rows of intent and those of outcome.
func (h *home) outcomes(ctx context.Context) (intents, outcomes int64, err error) {
	out, err := h.run(ctx, "audit", "list", "--json", "--limit", "0", "--connector", connectorFQN)
	if err != nil {
		return 0, 0, err
	}
	dec := json.NewDecoder(bytes.NewReader(out))
	for {
		var row struct {
			Event   audit.Event
			Binding string
		}
		if err := dec.Decode(&row); errors.Is(err, io.EOF) {
			return intents, outcomes, nil
		} else if err != nil {
			return 0, 0, err
		}
		switch {
		case row.Binding == "":
		case row.Event == audit.EventProxyStarted:
			intents++
		case row.Event == audit.EventProxyProxied:
			outcomes++
		}
	}
}
