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
	_, err = controlClient{home: home, id: id}.call(ctx, "POST", "/v1/vault/unlock", bytes.NewReader(body))
	return err
}

// controlTimeout bounds one call of a control socket. On a busy machine a
// session takes its time: to unlock, it derives a key.
const controlTimeout = time.Minute

// maxControlBody bounds the response of a control socket.
const maxControlBody = 16 << 20

// controlClient calls the control socket of a running session.
type controlClient struct {
	home, id string
	check    func(net.Conn) error // accepts the socket's other end before anything is sent; nil accepts any
}

// call sends one request and returns the body of the response. A response that
// is not a success is an error with the session's message.
func (c controlClient) call(ctx context.Context, method, path string, body io.Reader) ([]byte, error) {
	client := &http.Client{Timeout: controlTimeout, Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return c.dial(ctx) },
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
	raw, err := io.ReadAll(io.LimitReader(res.Body, maxControlBody))
	if err != nil {
		return nil, errors.New("the session's response was cut short")
	}
	if res.StatusCode >= 300 {
		return nil, refusedBy(res.StatusCode, raw)
	}
	return raw, nil
}

// dial connects to the control socket.
func (c controlClient) dial(ctx context.Context) (net.Conn, error) {
	conn, err := unixsocket.Dial(ctx, filepath.Join(sessionsDir(c.home), c.id, "control.sock"))
	if err != nil || c.check == nil {
		return conn, err
	}
	if err := c.check(conn); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return conn, nil
}

// refusedBy returns the error of a response that respondError wrote.
func refusedBy(status int, raw []byte) error {
	var body struct {
		Error struct {
			Message string `json:"message"`
		} `json:"error"`
	}
	if json.Unmarshal(raw, &body) != nil || body.Error.Message == "" {
		return fmt.Errorf("the session refused with status %d", status)
	}
	return fmt.Errorf("the session refused with status %d: %s", status, body.Error.Message)
}
