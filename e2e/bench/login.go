package main

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// loginHost is asked with the token of a login. The origin responds to it as to apiHost, and issues the token, which is
// the secret that is bound for apiHost: what is searched for in responses is the same.
const loginHost = "login.bench.example"

const (
	loginCPU   = "CPU ms/1000, login"
	loginTimes = "CPU × a bearer's"
)

// loginManifest ends the manifest of a connector with a login.
const loginManifest = `
[capabilities.credential.oauth2]
grant = "client_credentials"
token_url = "https://` + loginHost + `/v1/token"
client_id = "bench"
`

// logIn installs the connector for loginHost, and logs in.
func (h *home) logIn(ctx context.Context, dir string) error {
	const fqn = connectorFQN + "-login"
	connector, client := filepath.Join(dir, "login"), filepath.Join(dir, "client-secret")
	if err := writeConnector(connector, fqn, loginHost); err != nil {
		return err
	}
	for _, name := range []string{"manifest.toml", "aileron.connector.v1.json"} {
		text, err := os.ReadFile(filepath.Join(connector, name))
		if err != nil {
			return err
		}
		text = []byte(strings.ReplaceAll(string(text), `"bearer"`, `"oauth2"`))
		if name == "manifest.toml" {
			text = append(text, loginManifest...)
		}
		if err := os.WriteFile(filepath.Join(connector, name), text, 0o600); err != nil {
			return err
		}
	}
	if err := os.WriteFile(client, []byte("the secret of the bench's client"), 0o600); err != nil {
		return err
	}
	if _, err := h.run(ctx, "connector", "install", connector, "--yes"); err != nil {
		return err
	}
	_, err := h.run(ctx, "binding", "setup", fqn, "--client-id", "bench", "--client-secret-file", client)
	return err
}

// token is the response of the token endpoint.
func token(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{"access_token": secret, "token_type": "Bearer",
		"expires_in": int((24 * time.Hour).Seconds())})
}

// loginParts is in how many parts a turn measures requests with a bearer, and with the token of a login.
const loginParts = 8

// besideBearer compares small requests with a fresh token of a login to those with a bearer, of one session, in parts
// that take turns.
func besideBearer(ctx context.Context, s *subject, t turn) (figures, error) {
	session, err := s.another(ctx, true)
	if err != nil {
		return nil, err
	}
	defer func() {
		s.elsewhere.Add(session.sent.Load())
		session.stop()
	}()
	var cpu [2]float64
	var of [2][]worker
	for i, host := range []string{apiHost, loginHost} {
		workers, end, err := session.smallAt(ctx, host, 64)
		defer end() //nolint:revive // of two
		if err != nil {
			return nil, err
		}
		of[i] = workers
	}
	for part := range 2*loginParts + 2 {
		i := (part + part/2) % 2 // 0 1 1 0 0 1 1 0: what drifts does not prefer one
		f, err := drive(session, t, of[i])
		if err != nil {
			return nil, err
		}
		if part >= 2 {
			cpu[i] += f[cpuPer1000] / loginParts
		}
	}
	return figures{loginCPU: cpu[1], loginTimes: cpu[1] / cpu[0]}, nil
}
