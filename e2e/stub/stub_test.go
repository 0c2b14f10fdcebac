package stub

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/e2e/harness"
	"github.com/ALRubinger/aileron/e2e/must"
)

var script = Script{Token: "the-real/token", Key: "the-real-key", Command: `echo "hello"`}

// client reaches s under every name.
func client(t *testing.T, s *Server) *http.Client {
	t.Helper()
	pem := must.Get(os.ReadFile(s.Roots))(t)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	transport := &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "tcp", s.Addr)
		},
		TLSClientConfig: &tls.Config{RootCAs: roots},
	}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

type answered struct {
	code   int
	body   string
	header http.Header
}

// ask sends a request with one "Name: value" header.
func ask(t *testing.T, c *http.Client, method, url, header, body string) answered {
	t.Helper()
	req := must.Get(http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body)))(t)
	if name, value, ok := strings.Cut(header, ": "); ok {
		req.Header.Set(name, value)
	}
	res := must.Get(c.Do(req))(t) //nolint:bodyclose // closed below
	defer res.Body.Close()
	read := must.Get(io.ReadAll(res.Body))(t)
	return answered{res.StatusCode, string(read), res.Header}
}

const bearer = "Authorization: Bearer the-real/token"

func TestOnlyTheRealCredentialOpensAService(t *testing.T) {
	c := client(t, Start(t, script))
	for _, tt := range []struct {
		method, url, header string
		want                int
	}{
		{"GET", "https://api.github.com/user", bearer, 200},
		{"GET", "https://api.github.com/user", "Authorization: token the-real/token", 200},
		{"GET", "https://api.github.com/user", "", 401},
		{"GET", "https://api.github.com/user", "Authorization: Bearer placeholder", 401},
		{"GET", "https://api.github.com/user", "Authorization: Bearer the-real-key", 401},
		{"GET", "https://api.echo.example/echo", bearer, 200},
		{"GET", "https://api.echo.example/echo", "X-Api-Key: the-real-key", 401},
		{"POST", "https://api.anthropic.com/v1/messages/count_tokens", "X-Api-Key: the-real-key", 200},
		{"POST", "https://api.anthropic.com/v1/messages/count_tokens", "Authorization: Bearer the-real-key", 401},
		{"POST", "https://api.anthropic.com/v1/messages", "X-Api-Key: sk-ant-placeholder", 401},
		{"GET", "https://api.anthropic.com/api/hello", "", 200},
		{"GET", "https://platform.claude.com/v1/oauth/hello", "", 200},
		{"POST", "https://api.openai.com/v1/responses", "Authorization: Bearer sk-placeholder", 401},
		{"GET", "https://other.example/user", bearer, 421},
	} {
		if got := ask(t, c, tt.method, tt.url, tt.header, "{}").code; got != tt.want {
			t.Errorf("%s %s with %q: %d, want %d", tt.method, tt.url, tt.header, got, tt.want)
		}
	}
}

func TestEveryRequestIsKeptAsItArrived(t *testing.T) {
	s := Start(t, script)
	c := client(t, s)
	body := strings.Repeat("0123456789abcdef", 1<<17) // 2 MiB: more than is kept
	if got := ask(t, c, "PUT", "https://api.echo.example/echo?a=b%20c", bearer, body).code; got != 200 {
		t.Fatalf("PUT: %d", got)
	}
	ask(t, c, "GET", "https://api.github.com/user", "", "")
	seen := s.Seen()
	if len(seen) != 2 {
		t.Fatalf("saw %d requests, want 2", len(seen))
	}
	got := seen[0]
	if got.Method != "PUT" || got.Host != Echo || got.Path != "/echo" || got.Query != "a=b%20c" ||
		got.Auth() != "Bearer the-real/token" || got.Body != body[:1<<20] {
		got.Body = ""
		t.Errorf("saw %+v", got)
	}
	if seen[1].Auth() != "" || seen[1].Path != "/user" {
		t.Errorf("a refused request is kept as %+v", seen[1])
	}
	// Two names, two connections; a silent connection counts too.
	if n := s.Connections(); n != 2 {
		t.Errorf("%d connections, want 2", n)
	}
	conn := must.Get(tls.Dial("tcp", s.Addr, &tls.Config{InsecureSkipVerify: true}))(t)
	conn.Close()
	if n := s.Connections(); n != 3 {
		t.Errorf("%d connections after a knock, want 3", n)
	}
}

func TestTheCredentialIsEchoed(t *testing.T) {
	s := Start(t, script)
	c := client(t, s)
	value := "Bearer " + script.Token
	echo := ask(t, c, "GET", "https://api.echo.example/echo", bearer, "")
	if echo.header.Get("X-Echo-Authorization") != value || !strings.Contains(echo.body, value) {
		t.Errorf("/echo: %+v", echo)
	}
	chunks := strings.Split(strings.TrimSpace(ask(t, c, "GET", "https://api.echo.example/echo-chunks", bearer, "").body),
		"\n")
	if len(chunks) != len(value)+2 {
		t.Errorf("/echo-chunks: %d lines, want %d", len(chunks), len(value)+2)
	}
	for _, line := range chunks {
		if !strings.HasSuffix(line, value+" end") {
			t.Errorf("/echo-chunks: %q", line)
		}
	}
	close(s.Release)
	if got := ask(t, c, "GET", "https://api.echo.example/stall", bearer, "").code; got != 200 {
		t.Errorf("/stall: %d", got)
	}
}

// Real gh decides what the stub for GitHub must know.
func TestGhShowsAnAccountARepositoryAndItsIssues(t *testing.T) {
	gh, err := exec.LookPath("gh")
	if err != nil {
		harness.Need(t, "gh: scripts/prepare --tests installs it")
	}
	s := Start(t, script)
	// gh finds the stub through a proxy that tunnels every name to it.
	tunnel := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		upstream, err := net.Dial("tcp", s.Addr)
		if err != nil || r.Method != http.MethodConnect {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		defer upstream.Close()
		conn, buffered, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\n\r\n")
		go func() { _, _ = io.Copy(upstream, buffered) }()
		_, _ = io.Copy(conn, upstream)
	}))
	t.Cleanup(tunnel.Close)
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"api", "user", "--jq", ".login"}, "octo-stand-in\n"},
		{[]string{"api", "repos/o/r/issues", "-f", "title=New", "--jq", ".number"}, "8\n"},
		{[]string{"issue", "list", "-R", "o/r"}, "7\tOPEN\tAn issue of the stub"},
		{[]string{"repo", "view", "o/r"}, "A repository of the stub"},
		{[]string{"auth", "status"}, "Logged in to github.com as octo-stand-in"},
	} {
		cmd := exec.CommandContext(t.Context(), gh, tt.args...)
		cmd.Env = []string{"HOME=" + t.TempDir(), "PATH=" + os.Getenv("PATH"), "GH_TOKEN=" + script.Token,
			"HTTPS_PROXY=" + tunnel.URL, "SSL_CERT_FILE=" + s.Roots, "GH_NO_UPDATE_NOTIFIER=1"}
		out, err := cmd.CombinedOutput()
		if err != nil || !strings.Contains(string(out), tt.want) {
			t.Errorf("gh %s: %v, %q, want %q", strings.Join(tt.args, " "), err, out, tt.want)
		}
	}
	if t.Failed() {
		for _, seen := range s.Seen() {
			t.Logf("%s %s %s", seen.Method, seen.Path, seen.Body)
		}
	}
}

const (
	tools = `"tools":[{"name":"read","input_schema":{"properties":{"path":{"type":"string"}}}},
		{"name":"bash","input_schema":{"properties":{"command":{"type":"string"},"description":{"type":"string"}}}}]`
	functions = `"tools":[{"type":"function","function":{"name":"shell","parameters":{` +
		`"properties":{"command":{"type":"array"}}}}}]`
	flat = `"tools":[{"type":"function","name":"exec_command","parameters":{"properties":{"cmd":{"type":"string"}}}}]`
)

func TestTheModelCallsOneToolAndThenEnds(t *testing.T) {
	c := client(t, Start(t, script))
	for _, tt := range []struct {
		name, url, header, body string
		call                    string // the joined pieces of the call's arguments; "" for a final text
	}{
		{"messages", "https://api.anthropic.com/v1/messages", "X-Api-Key: the-real-key",
			`{"stream":true,"messages":[{"role":"user","content":"go"}],` + tools + `}`,
			`{"command":"echo \"hello\"","description":"Runs the test's command"}`},
		{"messages with a result", "https://api.anthropic.com/v1/messages", "X-Api-Key: the-real-key",
			`{"stream":true,"messages":[{"role":"user","content":[{"type": "tool_result","tool_use_id":"toolu_1"}]}],` + tools +
				`}`, ""},
		{"messages without tools", "https://api.anthropic.com/v1/messages", "X-Api-Key: the-real-key",
			`{"stream":true,"messages":[]}`, ""},
		{"completions", "https://api.openai.com/v1/chat/completions", "Authorization: Bearer the-real-key",
			`{"stream":true,"messages":[],` + functions + `}`,
			`{"command":["sh","-c","echo \"hello\""]}`},
		{"completions with a result", "https://api.openai.com/v1/chat/completions", "Authorization: Bearer the-real-key",
			`{"stream":true,"messages":[{"role":"tool","content":"hello"}],` + functions + `}`, ""},
		{"responses", "https://api.openai.com/v1/responses", "Authorization: Bearer the-real-key",
			`{"stream":true,"input":[],` + flat + `}`,
			`{"cmd":"echo \"hello\""}`},
		{"responses with a result", "https://api.openai.com/v1/responses", "Authorization: Bearer the-real-key",
			`{"stream":true,"input":[{"type":"function_call_output","call_id":"call_1","output":"hello"}],` + flat + `}`, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			res := ask(t, c, "POST", tt.url, tt.header, tt.body)
			if res.code != 200 || !strings.HasPrefix(res.header.Get("Content-Type"), "text/event-stream") {
				t.Fatalf("%d %s", res.code, res.body)
			}
			call, text := pieces(t, res.body)
			if call != tt.call {
				t.Errorf("the call's arguments are %q, want %q", call, tt.call)
			}
			if want := tt.call == ""; want != (text == final) {
				t.Errorf("the text is %q", text)
			}
		})
	}
	whole := ask(t, c, "POST", "https://api.anthropic.com/v1/messages", "X-Api-Key: the-real-key",
		`{"messages":[],`+tools+`}`).body
	if !strings.Contains(whole, `"stop_reason":"tool_use"`) || !json.Valid([]byte(whole)) {
		t.Errorf("not streamed: %s", whole)
	}
}

// pieces joins what the events of any of the three protocols add to the
// call's arguments and to the text.
func pieces(t *testing.T, body string) (call, text string) {
	t.Helper()
	for line := range strings.Lines(body) {
		data, ok := strings.CutPrefix(strings.TrimSpace(line), "data: ")
		if !ok || data == "[DONE]" {
			continue
		}
		var event struct {
			Type    string
			Delta   json.RawMessage
			Choices []struct {
				Delta struct {
					Content   string
					ToolCalls []struct{ Function struct{ Arguments string } } `json:"tool_calls"`
				}
			}
		}
		if err := json.Unmarshal([]byte(data), &event); err != nil {
			t.Fatalf("%s: %v", data, err)
		}
		switch event.Type {
		case "content_block_delta":
			var d struct {
				Text        string
				PartialJSON string `json:"partial_json"`
			}
			_ = json.Unmarshal(event.Delta, &d)
			call, text = call+d.PartialJSON, text+d.Text
		case "response.function_call_arguments.delta", "response.output_text.delta":
			var d string
			_ = json.Unmarshal(event.Delta, &d)
			if strings.Contains(event.Type, "arguments") {
				call += d
			} else {
				text += d
			}
		}
		for _, choice := range event.Choices {
			text += choice.Delta.Content
			for _, c := range choice.Delta.ToolCalls {
				call += c.Function.Arguments
			}
		}
	}
	return call, text
}
