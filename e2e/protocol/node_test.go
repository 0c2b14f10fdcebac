package protocol

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/ALRubinger/aileron/e2e/harness"
	"github.com/ALRubinger/aileron/e2e/must"
)

// nodeDir has Node's packages as testdata/node/package-lock.json names them.
// They are installed once, into the user's cache.
var nodeDir = sync.OnceValues(func() (string, error) { return harness.NodeModules("protocol-node", "testdata/node") })

// node runs one of testdata/node's programs with the packages.
func node(t *testing.T, env []string, program string, args ...string) (string, error) {
	t.Helper()
	need(t, "npm")
	dir, err := nodeDir()
	if err != nil {
		harness.Need(t, fmt.Sprint("the packages of testdata/node, which cannot be installed: ", err))
	}
	ctx, cancel := context.WithTimeout(t.Context(), harness.Patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, need(t, "node"), append([]string{filepath.Join("testdata/node", program)}, args...)...)
	cmd.Env = append(append(os.Environ(), "NODE_PATH="+filepath.Join(dir, "node_modules")), env...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err = cmd.Run()
	if errs.Len() > 0 {
		t.Logf("%s: %s", program, errs.String())
	}
	return out.String(), err
}

func TestGRPCForNodeInteroperates(t *testing.T) {
	for _, variable := range []string{"grpc_proxy", "https_proxy"} {
		t.Run(variable, func(t *testing.T) {
			const path = "/grpc.testing.TestService/UnaryCall"
			began := time.Now()
			out, err := node(t, []string{"grpc_proxy=", "https_proxy=", "no_proxy=", "no_grpc_proxy=",
				variable + "=" + shared.ProxyURL},
				"grpc.js", hostGRPC+":443", shared.CAFile, strconv.Itoa(len(secret)))
			if err != nil || out != "all is well\n" {
				t.Errorf("%v, %q", err, out)
			}
			n := 0
			harness.WaitFor(t, "the rows are written", func() bool { n = len(shared.rows(t, path, began)); return n >= 2 })
			if n != 2 {
				t.Errorf("%d rows of two unary calls", n)
			}
		})
	}
}

// serveSocket answers what a WebSocket's text asks for, and echoes the rest.
// It reports its own ends on closed.
func (s *server) serveSocket() error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	s.resolve[hostWS+":443"] = l.Addr().String()
	h := &http.Server{TLSConfig: s.tls.Clone(), ReadHeaderTimeout: time.Minute,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			auth := r.Header.Get("Authorization")
			if auth != "Bearer "+secret {
				http.Error(w, "no", http.StatusUnauthorized)
				return
			}
			// It would compress, if anyone asked it to.
			conn, err := websocket.Accept(w, r,
				&websocket.AcceptOptions{Subprotocols: []string{"echo"}, CompressionMode: websocket.CompressionContextTakeover})
			if err != nil {
				return
			}
			closed <- echo(r.Context(), conn, auth)
		})}
	h.Protocols = &http.Protocols{}
	h.Protocols.SetHTTP1(true)
	done := make(chan struct{})
	go func() { defer close(done); _ = h.ServeTLS(l, "", "") }()
	s.closers = append(s.closers, func() { _ = h.Close(); <-done })
	return nil
}

// closed is how the origin's WebSockets ended.
var closed = make(chan error, 16)

func echo(ctx context.Context, conn *websocket.Conn, auth string) error {
	conn.SetReadLimit(-1)
	for {
		kind, from, err := conn.Reader(ctx)
		if err != nil {
			return err
		}
		message, err := io.ReadAll(from)
		if err != nil {
			return err
		}
		switch string(message) {
		case "please ping":
			go func() { _ = conn.Ping(ctx) }()
			continue
		case "who":
			message = []byte("I know " + auth + ".")
		case "close":
			return conn.Close(4002, "by the origin: "+auth)
		case "abort":
			return conn.CloseNow()
		}
		to, err := conn.Writer(ctx, kind)
		if err != nil {
			return err
		}
		for piece := range slices.Chunk(message, max(1, len(message)/3)) { // each is a frame
			if _, err := to.Write(piece); err != nil {
				return err
			}
		}
		if err := to.Close(); err != nil {
			return err
		}
	}
}

type happened struct {
	Event, Text string
	OK          bool
	Code        int
	Status      int
}

// socket runs ws behind the session and returns what happened.
func socket(t *testing.T, url, what string) []happened {
	t.Helper()
	out, err := node(t, nil, "socket.js", url, shared.ProxyURL, shared.CAFile, what)
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var all []happened
	for line := range strings.Lines(out) {
		var h happened
		must.Do(t, json.Unmarshal([]byte(line), &h))
		all = append(all, h)
	}
	return all
}

const socketURL = "wss://" + hostWS + "/socket"

func TestWebSocketsCarryEveryKindOfMessage(t *testing.T) {
	began := time.Now()
	all := socket(t, socketURL, "messages")
	if len(all) == 0 || all[0].Event != "open" || all[0].Text != "echo|" {
		t.Errorf("the handshake: %+v, want the protocol echo and no extension", all)
	}
	var echoes []string
	for _, h := range all {
		if h.Event == "echo" {
			echoes = append(echoes, h.Text)
			if !h.OK {
				t.Errorf("%s came back as something else", h.Text)
			}
		}
	}
	if got, want := strings.Join(echoes,
		", "), "text, binary, empty, large, large text, fragments, pong, ping"; got != want {
		t.Errorf("echoes: %s; want %s", got, want)
	}
	if last := all[len(all)-1]; last.Event != "close" || last.Code != 4001 {
		t.Errorf("the client's end: %+v", last)
	}
	var end websocket.CloseError
	if err := <-closed; !errors.As(err, &end) || end.Code != 4001 || end.Reason != "by the client" {
		t.Errorf("the origin's end: %v", err)
	}
	if r := shared.row(t, "/socket", began); r["decision"] != "upgrade" || r["operation"] != "socket" ||
		r["status"] != float64(101) || r["request_bytes"].(float64) < 2<<20 || r["response_bytes"].(float64) < 2<<20 {
		t.Errorf("the row is %v", r)
	}
}

func TestWebSocketsTellNoSecret(t *testing.T) {
	hidden := "Bearer " + strings.Repeat("*", len(secret))
	for what, want := range map[string]happened{
		"who":   {Event: "message", Text: "I know " + hidden + "."},
		"close": {Event: "close", Code: 4002, Text: "by the origin: " + hidden},
		"abort": {Event: "close", Code: 1006},
	} {
		t.Run(what, func(t *testing.T) {
			all := socket(t, socketURL, what)
			<-closed
			if !slices.Contains(all, want) {
				t.Errorf("got %+v, want %+v", all, want)
			}
		})
	}
}

func TestAWebSocketsClientThatGoesAwayEndsTheOrigin(t *testing.T) {
	began := time.Now()
	socket(t, socketURL, "die")
	if err := <-closed; err == nil || websocket.CloseStatus(err) >= 0 {
		t.Errorf("the origin's end: %v, want one without a code", err)
	}
	if r := shared.row(t, "/socket", began); r["decision"] != "upgrade" {
		t.Errorf("the row is %v", r)
	}
}

func TestAWebSocketThatIsNotDeclaredIsRefused(t *testing.T) {
	all := socket(t, "wss://"+hostH1+"/v1/hello", "messages")
	if len(all) == 0 || all[0].Event != "refused" || all[0].Status != 426 ||
		!strings.Contains(all[0].Text, "upgrade_not_declared") {
		t.Errorf("got %+v", all)
	}
}

// Node's http.request sends the proxy's address as the Host of a CONNECT: the
// request target decides (RFC 9112 section 3.2.3).
func TestNodesOwnConnectIsAccepted(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), harness.Patience)
	defer cancel()
	began := time.Now()
	cmd := exec.CommandContext(ctx, need(t, "node"), "testdata/node/connect.js", hostH1, "/v1/hello", shared.ProxyURL,
		shared.CAFile)
	out, err := cmd.CombinedOutput()
	if err != nil || string(out) != "200 hello\n" {
		t.Fatalf("%v: %s", err, out)
	}
	if r := shared.row(t, "/v1/hello", began); r["decision"] != "proxied" || r["host"] != hostH1 {
		t.Errorf("the row is %v", r)
	}
}
