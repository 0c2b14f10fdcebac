package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"
)

const (
	manyConnectors = 256
	installSeconds = "seconds, 256"
	installOne     = "seconds, 1"
)

// installation installs and binds connectors by one command, each time in a home of its own.
func installation(ctx context.Context, s *subject, t turn) (figures, error) {
	one, err := s.install(ctx, 1)
	if err != nil {
		return nil, err
	}
	many, err := s.install(ctx, t.many(manyConnectors))
	return figures{installOne: one.Seconds(), installSeconds: many.Seconds()}, err
}

// install returns how long the command takes for n connectors.
func (y *fixture) install(ctx context.Context, n int) (time.Duration, error) {
	dir, err := os.MkdirTemp(y.cfg.dir, "connectors-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	h := &home{binary: y.home.binary, dir: filepath.Join(dir, "home"), passphrase: y.home.passphrase}
	secrets := filepath.Join(dir, "secrets")
	sources, err := writeConnectors(filepath.Join(dir, "sources"), n)
	if err != nil {
		return 0, err
	}
	var lines strings.Builder
	for i := range n {
		fmt.Fprintf(&lines, "%s-%d=%s-%d\n", connectorFQN, i, secret, i)
	}
	if err := os.WriteFile(secrets, []byte(lines.String()), 0o600); err != nil {
		return 0, err
	}
	args := append([]string{"connector", "install", "--yes", "--secrets-file", secrets}, sources...)
	began := time.Now()
	if _, err := h.run(ctx, args...); err != nil {
		return 0, err
	}
	took := time.Since(began)
	bound, err := h.run(ctx, "binding", "list", "--json")
	if got := bytes.Count(bound, []byte(`"`+connectorFQN+"-")); err == nil && got != n {
		err = fmt.Errorf("%d of %d connectors are bound:\n%.2000s", got, n, bound)
	}
	return took, err
}

// writeConnectors writes n connectors into a new directory, and returns the directory of each.
func writeConnectors(in string, n int) (dirs []string, err error) {
	if err := os.Mkdir(in, 0o700); err != nil {
		return nil, err
	}
	for i := range n {
		dir := filepath.Join(in, fmt.Sprint("c", i))
		if err := writeConnector(dir, fmt.Sprint(connectorFQN, "-", i), fmt.Sprintf("api%d.bench.example", i)); err != nil {
			return nil, err
		}
		dirs = append(dirs, dir)
	}
	return dirs, nil
}

// writeConnector writes a connector with one operation at a host. Its command has the connector's own name.
func writeConnector(dir, fqn, host string) error {
	manifest := strings.NewReplacer(connectorFQN, fqn, `"`+apiHost+`", "*.`+manyDomain+`"`, `"`+host+`"`).
		Replace(connectorManifest)
	text := `{"schema_version":"aileron.connector.v1","connector":{"fqn":"` + fqn + `","version":"1.0.0"},
"tools":[{"name":"` + path.Base(fqn) + `","description":"One of many","operations":[
 {"name":"items","summary":"A small answer","method":"GET","path":"/v1/items",
   "hosts":["` + host + `"],"credential":"bearer","idempotency":"idempotent"}]}]}`
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	for name, text := range map[string]string{"manifest.toml": manifest, "aileron.connector.v1.json": text} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			return err
		}
	}
	return nil
}
