package mcpserver

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"

	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/proxy/api"
)

// Session is the API of a session, see package api. Its zero value is no session.
type Session struct {
	URL   string // ends in /v1
	Token string
}

// SessionOf returns the session that the environment of a command describes, and reports whether there is one. It fails
// for one that is not of this host: a file of a project may set AILERON_API_URL, and the token would leave.
func SessionOf(getenv func(string) string) (Session, bool, error) {
	s := Session{URL: strings.TrimSuffix(getenv("AILERON_API_URL"), "/"), Token: getenv("AILERON_TOKEN")}
	if s.URL == "" || s.Token == "" {
		return s, false, nil
	}
	u, err := url.Parse(s.URL)
	if err == nil {
		var at netip.Addr
		if at, err = netip.ParseAddr(u.Hostname()); err == nil && !at.IsLoopback() {
			err = fmt.Errorf("%s is no loopback address", at)
		}
	}
	if err != nil {
		return s, true, hint.New(fmt.Errorf("use the session of AILERON_API_URL: %w", err),
			"start it in aileron run or aileron launch --sandbox=off, or without that variable for a session of its own")
	}
	return s, true, nil
}

// client calls the API of a session.
type client struct {
	Session
	http *http.Client
}

func newClient(s Session) *client {
	// No proxy of the environment: it is the session's own.
	return &client{s, &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: maxCalls}}}
}

// maxList bounds the list of a session's operations.
const maxList = 16 << 20

// operations lists the session's operations that have every word of q, and describes at most limit of them.
func (c *client) operations(ctx context.Context, q, group string, limit int) (api.OperationList, error) {
	return c.list(ctx, url.Values{"q": {q}, "group": {group}, "limit": {strconv.Itoa(limit)}})
}

// named lists the session's operations of a name, see [api.OperationDescription.FullName].
func (c *client) named(ctx context.Context, name string) (api.OperationList, error) {
	return c.list(ctx, url.Values{"name": {name}})
}

func (c *client) list(ctx context.Context, query url.Values) (list api.OperationList, err error) {
	res, err := c.do(ctx, http.MethodGet, "/operations?"+query.Encode(), nil)
	if err != nil {
		return list, err
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(res.Body, maxList))
	switch {
	case err != nil:
		return list, fmt.Errorf("list the session's operations: %w", err)
	case res.StatusCode != http.StatusOK:
		return list, fmt.Errorf("list the session's operations: %s", messageOf(res.StatusCode, raw))
	}
	if err := json.Unmarshal(raw, &list); err != nil {
		return list, fmt.Errorf("list the session's operations: %w", err)
	}
	return list, nil
}

// messageOf returns the message of an error of the API.
func messageOf(status int, raw []byte) string {
	var body struct {
		Error struct{ Message string }
	}
	if json.Unmarshal(raw, &body) != nil || body.Error.Message == "" {
		return fmt.Sprintf("status %d", status)
	}
	return body.Error.Message
}

// outcome is what became of a call. The caller closes its body.
type outcome struct {
	status  int // of the upstream, or of the denial
	auditID string
	denied  bool // the body is the line and the object of a denial; else it is the upstream's
	body    io.ReadCloser
}

// acceptShim asks the API for an upstream's body as it is, after a line of its own: see package api, shim.go.
const acceptShim = "application/vnd.aileron.shim.v1"

// run calls an operation by name. args is a JSON object, or empty.
func (c *client) run(ctx context.Context, op api.ListedOperation, args json.RawMessage) (outcome, error) {
	call := map[string]any{"connector_fqn": op.ConnectorFQN, "tool": op.Tool, "operation": op.Operation}
	if len(args) > 0 {
		call["args"] = args
	}
	raw, err := json.Marshal(call)
	if err != nil {
		return outcome{}, fmt.Errorf("the arguments are no JSON: %w", err)
	}
	res, err := c.do(ctx, http.MethodPost, "/connector-operations/run", raw)
	if err != nil {
		return outcome{}, err
	}
	body := bufio.NewReader(res.Body)
	head, err := body.ReadString('\n')
	words := strings.Fields(head)
	if err != nil || len(words) != 4 {
		rest, _ := io.ReadAll(io.LimitReader(body, 64<<10)) // an error of the API itself has no such line
		_ = res.Body.Close()
		return outcome{}, errors.New(messageOf(res.StatusCode, append([]byte(head), rest...)))
	}
	status, _ := strconv.Atoi(words[1])
	return outcome{status: status, auditID: words[2], denied: words[3] == "denial", body: struct {
		io.Reader
		io.Closer
	}{body, res.Body}}, nil
}

// do sends a request to the API.
func (c *client) do(ctx context.Context, method, path string, body []byte) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, method, c.URL+path, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("AILERON_API_URL is no URL of a session: %w", err)
	}
	r.Header.Set("Authorization", "Bearer "+c.Token)
	r.Header.Set(api.SurfaceField, "mcp")
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", acceptShim)
	}
	res, err := c.http.Do(r)
	if err == nil {
		return res, nil
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if u := (*url.Error)(nil); errors.As(err, &u) {
		err = u.Err
	}
	return nil, hint.New(fmt.Errorf("the session does not answer: %w", err),
		"it has ended; start its agent again, or this server outside of a session")
}
