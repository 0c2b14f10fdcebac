package session

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"time"

	"github.com/ALRubinger/aileron/internal/unixsocket"
)

// Unlock opens the vault of a running session again after a lock: the session
// had forgotten what opens it.
func Unlock(ctx context.Context, home, id string, passphrase []byte) error {
	body, err := json.Marshal(map[string]string{"passphrase": string(passphrase)})
	if err != nil {
		return err
	}
	_, err = callControl(ctx, home, id, "POST", "/v1/vault/unlock", bytes.NewReader(body))
	return err
}

// controlTimeout bounds one call of a control socket. On a busy machine a
// session takes its time: to unlock, it derives a key.
const controlTimeout = time.Minute

// callControl sends one request to a running session's control socket and
// returns the body of the response.
func callControl(ctx context.Context, home, id, method, path string, body io.Reader) ([]byte, error) {
	return callChecked(ctx, home, id, method, path, body, func(net.Conn) error { return nil })
}

// callChecked is callControl for a socket whose other end is checked first.
func callChecked(ctx context.Context, home, id, method, path string, body io.Reader, check func(net.Conn) error,
) ([]byte, error) {
	socket := filepath.Join(sessionsDir(home), id, "control.sock")
	client := &http.Client{Timeout: controlTimeout, Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			conn, err := unixsocket.Dial(ctx, socket)
			if err == nil {
				if err = check(conn); err != nil {
					_ = conn.Close()
				}
			}
			return conn, err
		},
	}}
	defer client.CloseIdleConnections()
	req, err := http.NewRequestWithContext(ctx, method, "http://session"+path, body)
	if err != nil {
		return nil, err
	}
	res, err := client.Do(req)
	if errors.Is(err, unixsocket.ErrForeign) {
		return nil, unixsocket.ErrForeign
	}
	if err != nil {
		return nil, errors.New("the session does not answer on its control socket")
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(res.Body, 16<<20))
	if err != nil {
		return nil, errors.New("the session's response was cut short")
	}
	if res.StatusCode >= 300 {
		return nil, fmt.Errorf("the session refused with status %d", res.StatusCode)
	}
	return raw, nil
}
