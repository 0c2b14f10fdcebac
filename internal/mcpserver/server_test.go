package mcpserver_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/internal/mcpserver"
	"github.com/ALRubinger/aileron/proxy/api"
)

// sessionAPI stands in for the API of a session, for what a real one does not do on request. The tests of e2e have a
// real one.
type sessionAPI struct {
	mu         sync.Mutex
	generation int64
	ops        []api.ListedOperation

	run func(w http.ResponseWriter, r *http.Request) // responds to a call
}

func (s *sessionAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Authorization") != "Bearer token" || r.Header.Get(api.SurfaceField) != "mcp" {
		http.Error(w, "no token", http.StatusUnauthorized)
		return
	}
	if r.URL.Path != "/v1/operations" {
		s.run(w, r)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	limit, named := 50, r.URL.Query().Get("name")
	if text := r.URL.Query().Get("limit"); text != "" {
		limit, _ = strconv.Atoi(text)
	}
	list := api.OperationList{Generation: s.generation, Operations: []api.ListedOperation{}}
	for _, op := range s.ops {
		all := true
		if group := r.URL.Query().Get("group"); group != "" && group != op.Group {
			continue
		}
		for _, w := range strings.Fields(r.URL.Query().Get("q")) {
			all = all && strings.Contains(op.ConnectorFQN+" "+op.Tool+"."+op.Operation, w)
		}
		if !all || named != "" && op.FullName() != named {
			continue
		}
		list.Total++
		if op.Callable {
			list.Callable++
		}
		if len(list.Operations) < limit {
			list.Operations = append(list.Operations, op)
		}
	}
	_ = json.NewEncoder(w).Encode(list)
}

// set replaces the operations.
func (s *sessionAPI) set(ops ...api.ListedOperation) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.generation++
	s.ops = ops
}

// reply responds to every call with a status and a body, as an upstream would.
func reply(status int, body string) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprintf(w, "0 %d 01ROW response\n%s", status, body)
	}
}

func operation(fqn, tool, name, method string) api.ListedOperation {
	return api.ListedOperation{Callable: true, Summary: "Summary of " + name,
		OperationDescription: api.OperationDescription{ConnectorFQN: fqn, Tool: tool, Operation: name, Method: method,
			Path: "/x", Hosts: []string{"api.example:443"}, Bound: true}}
}

// connect returns the session of a client that is connected to a server.
func connect(t *testing.T, s *sessionAPI, o *mcp.ClientOptions) *mcp.ClientSession {
	t.Helper()
	server := serverOf(t, s)
	fromClient, toServer := io.Pipe()
	fromServer, toClient := io.Pipe()
	served := make(chan error, 1)
	go func() { served <- server.Serve(t.Context(), fromClient, toClient) }()
	client := mcp.NewClient(&mcp.Implementation{Name: "test"}, o)
	cs := must.Get(client.Connect(t.Context(), &mcp.IOTransport{Reader: fromServer, Writer: toServer}, nil))(t)
	t.Cleanup(func() {
		_ = cs.Close()
		if err := <-served; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	return cs
}

func serverOf(t *testing.T, s *sessionAPI) *mcpserver.Server {
	t.Helper()
	at := httptest.NewServer(s)
	t.Cleanup(at.Close)
	session := mcpserver.Session{URL: at.URL + "/v1", Token: "token"}
	return must.Get(mcpserver.New(t.Context(), session, mcpserver.Options{}))(t)
}

// toolNames returns the names of the tools of a server.
func toolNames(t *testing.T, cs *mcp.ClientSession) (names []string) {
	t.Helper()
	for tool := range cs.Tools(t.Context(), nil) {
		names = append(names, tool.Name)
	}
	return names
}

// call calls a tool, and returns the texts of the result.
func call(t *testing.T, cs *mcp.ClientSession, tool string, args any) (texts []string, isError bool) {
	t.Helper()
	r := must.Get(cs.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: args}))(t)
	for _, c := range r.Content {
		text, ok := c.(*mcp.TextContent)
		if !ok {
			t.Fatalf("content %T, want text", c)
		}
		texts = append(texts, text.Text)
	}
	return texts, r.IsError
}

func TestAnOperationIsATool(t *testing.T) {
	op := operation("github://acme/tracker", "tracker", "issues.update", "PUT")
	op.Credential = "bearer"
	op.Inputs = []api.InputDescription{
		{Name: "id", Type: "integer", In: "path", Required: true, Description: "its number"},
		{Name: "state", Type: "string", Values: []string{"open", "closed"}},
		{Name: "ref", Type: "string", Values: []string{"*.txt"}}, {Name: "any"}}
	whole := operation("github://acme/tracker", "tracker", "host", "*")
	whole.Callable = false
	cs := connect(t, &sessionAPI{ops: []api.ListedOperation{op, whole}}, nil)
	list := must.Get(cs.ListTools(t.Context(), nil))(t)
	if got := toolNames(t, cs); !slices.Equal(got, []string{"read_more", "tracker.issues.update"}) {
		t.Fatalf("tools %q", got)
	}
	got := string(must.Get(json.Marshal(list.Tools[1]))(t))
	want := `{"annotations":{"destructiveHint":true,"idempotentHint":true,"openWorldHint":true,"readOnlyHint":false},` +
		`"description":"Summary of issues.update\nPUT https://api.example/x\nAileron adds the credential: pass none.",` +
		`"inputSchema":{"additionalProperties":false,"properties":{"any":{},"id":{"description":"its number",` +
		`"type":"integer"},"ref":{"description":"One of: *.txt","type":"string"},"state":{"enum":["open","closed"],` +
		`"type":"string"}},"required":["id"],"type":"object"},"name":"tracker.issues.update"}`
	if got != want {
		t.Errorf("the tool is\n%s\nwant\n%s", got, want)
	}
}

func TestHintsComeFromTheMethodAndTheIdempotency(t *testing.T) {
	var ops []api.ListedOperation
	for _, method := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"} {
		ops = append(ops, operation("github://a/b", "t", method, method))
	}
	again := operation("github://a/b", "t", "again", "POST")
	again.Idempotent = true
	cs := connect(t, &sessionAPI{ops: append(ops, again)}, nil)
	got := map[string]string{}
	for tool := range cs.Tools(t.Context(), nil) {
		a := tool.Annotations
		got[tool.Name] = fmt.Sprint(a.ReadOnlyHint, a.IdempotentHint, *a.DestructiveHint, *a.OpenWorldHint)
	}
	for name, want := range map[string]string{
		"t.GET": "true true false true", "t.HEAD": "true true false true", "t.POST": "false false true true",
		"t.PUT": "false true true true", "t.PATCH": "false false true true", "t.DELETE": "false true true true",
		"t.again": "false true true true",
	} {
		if got[name] != want {
			t.Errorf("%s: read-only, idempotent, destructive, open: %s, want %s", name, got[name], want)
		}
	}
}

// A name leads to the same operation, whatever others there are and in which order.
func TestNamesAreUniqueAndWithinTheProtocol(t *testing.T) {
	ops := []api.ListedOperation{
		operation("github://acme/one", "t", "get", "GET"), operation("github://acme/two", "t", "get", "GET"),
		operation("gitlab://acme/two", "t", "get", "GET"), operation("github://acme/one", "t", "a:b", "GET"),
		operation("github://acme/one", "t", strings.Repeat("n", 200), "GET"),
		operation("github://acme/one", "u", "get", "GET")}
	s := &sessionAPI{ops: ops, run: func(w http.ResponseWriter, r *http.Request) {
		body := must.Get(io.ReadAll(r.Body))(t)
		_, _ = fmt.Fprintf(w, "0 200 - response\n%s", body)
	}}
	cs := connect(t, s, nil)
	names := toolNames(t, cs)
	if len(names) != 7 || !slices.Contains(names, "one.t.get") || !slices.Contains(names, "u.get") ||
		!slices.Contains(names, "t.a_b") {
		t.Errorf("tools %q", names)
	}
	for _, name := range names {
		if len(name) > 128 {
			t.Errorf("%q has %d characters", name, len(name))
		}
	}
	if texts, _ := call(t, cs, "one.t.get", nil); !strings.Contains(texts[0], "github://acme/one") {
		t.Errorf("one.t.get called %s", texts)
	}
	slices.Reverse(ops)
	s.set(ops...)
	if again := toolNames(t, cs); !slices.Equal(names, again) {
		t.Errorf("in another order: %q, not %q", again, names)
	}
}

// The arguments reach the session byte by byte: it reads them.
func TestACallIsOneOfTheSession(t *testing.T) {
	var got atomic.Value
	s := &sessionAPI{ops: []api.ListedOperation{operation("github://acme/tracker", "tracker", "get", "GET")},
		run: func(w http.ResponseWriter, r *http.Request) {
			got.Store(r.Method + " " + r.URL.Path + " " + string(must.Get(io.ReadAll(r.Body))(t)))
			reply(http.StatusOK, `{"title":"x"}`)(w, r)
		}}
	cs := connect(t, s, nil)
	r := must.Get(cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "tracker.get",
		Arguments: json.RawMessage(`{"id":1,"id":2}`)}))(t)
	if text, ok := r.Content[0].(*mcp.TextContent); !ok || text.Text != `{"title":"x"}` || r.IsError {
		t.Errorf("content %v, error %v", r.Content[0], r.IsError)
	}
	if r.Meta["aileron/audit_id"] != "01ROW" || r.Meta["aileron/status"] != float64(200) {
		t.Errorf("_meta %v", r.Meta)
	}
	want := `POST /v1/connector-operations/run {"args":{"id":1,"id":2},"connector_fqn":"github://acme/tracker",` +
		`"operation":"get","tool":"tracker"}`
	if got.Load() != want {
		t.Errorf("the session was asked\n%s\nwant\n%s", got.Load(), want)
	}
}

func TestWhatGoesWrongIsAResult(t *testing.T) {
	for _, c := range []struct {
		name string
		run  func(http.ResponseWriter, *http.Request)
		want []string
	}{
		{"an error of the upstream", reply(http.StatusNotFound, `{"message":"gone"}`),
			[]string{"api.example responded with status 404 Not Found", `{"message":"gone"}`}},
		{"a denial", func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, "1 403 01ROW denial\nno credential is bound. Bind one.\n{\"error\":{}}")
		}, []string{"no credential is bound. Bind one.", `{"error":{}}`}},
		{"the API refuses", func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = io.WriteString(w, `{"error":{"message":"the token is another session's"}}`)
		}, []string{"the token is another session's"}},
		{"half a response", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			_, _ = io.WriteString(w, "0 200 01ROW response\nhal")
		}, []string{"the response of api.example broke off after 3 bytes: unexpected EOF; the call may have taken effect"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			ops := []api.ListedOperation{operation("github://a/b", "t", "get", "GET")}
			texts, isError := call(t, connect(t, &sessionAPI{ops: ops, run: c.run}, nil), "t.get", nil)
			if !isError || !slices.Equal(texts, c.want) {
				t.Errorf("error %v, %q; want %q", isError, texts, c.want)
			}
		})
	}
}

func TestTheClientLearnsOfOperationsThatChange(t *testing.T) {
	s := &sessionAPI{ops: []api.ListedOperation{operation("github://a/b", "t", "get", "GET")}}
	changed := make(chan struct{}, 9)
	cs := connect(t, s, &mcp.ClientOptions{ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) {
		changed <- struct{}{}
	}})
	if got := toolNames(t, cs); !slices.Equal(got, []string{"read_more", "t.get"}) {
		t.Errorf("tools %q", got)
	}
	s.set(operation("github://a/b", "t", "other", "GET"))
	<-changed
	if got := toolNames(t, cs); !slices.Equal(got, []string{"read_more", "t.other"}) {
		t.Errorf("after the change: tools %q", got)
	}
}

func TestASessionThatDoesNotAnswerIsNamed(t *testing.T) {
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	_, err := mcpserver.New(t.Context(), mcpserver.Session{URL: gone.URL + "/v1", Token: "x"}, mcpserver.Options{})
	if err == nil || !strings.Contains(err.Error(), "the session does not answer") {
		t.Errorf("New = %v", err)
	}
}
