package mcpserver_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/proxy/api"
)

func oneOperation(run func(http.ResponseWriter, *http.Request)) *sessionAPI {
	return &sessionAPI{ops: []api.ListedOperation{operation("github://a/b", "t", "get", "GET")}, run: run}
}

func TestALongResponseIsReadInPieces(t *testing.T) {
	body := strings.Repeat("0123456789abcde€", 20_000) // a character across each end of a piece
	cs := connect(t, oneOperation(reply(http.StatusOK, body)), nil)
	texts, _ := call(t, cs, "t.get", nil)
	all := texts[0]
	for n := 0; strings.Contains(texts[1], "for the next"); n++ {
		_, args, _ := strings.Cut(texts[1], "read_more with ")
		var isError bool
		texts, isError = call(t, cs, "read_more", json.RawMessage(strings.TrimSuffix(args, ")")))
		if isError || n > 9 {
			t.Fatalf("piece %d: %q", n, texts)
		}
		if len(texts[0]) > 64<<10 {
			t.Errorf("a piece of %d bytes", len(texts[0]))
		}
		all += texts[0]
	}
	if all != body || !strings.Contains(texts[1], "this is the end") {
		t.Errorf("%d bytes of %d, at last %q", len(all), len(body), texts[1])
	}
	for args, want := range map[string]string{
		`{"id":"1","offset":-1}`:         "args.offset: it must be from 0 to",
		`{"id":"1","offset":99999999}`:   "args.offset: it must be from 0 to",
		`{"id":"7","offset":0}`:          "args.id: no response is kept",
		`{"id":"1"}`:                     "args.offset: it is missing",
		`{"id":1,"offset":0}`:            "args.id: it is not a string",
		`{"id":"1","offset":0,"x":true}`: "args.x: there is no such input",
	} {
		texts, isError := call(t, cs, "read_more", json.RawMessage(args))
		if !isError || !strings.Contains(texts[0], want) {
			t.Errorf("%s: %q, want %q", args, texts, want)
		}
	}
}

func TestOfAHugeResponseTheBeginningIsRead(t *testing.T) {
	cs := connect(t, oneOperation(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "0 200 - response\n")
		for range 64 { // MiB, which no socket holds
			if _, err := io.WriteString(w, strings.Repeat("x", 1<<20)); err != nil {
				return // the server has read enough
			}
		}
		t.Error("all of it was read")
	}), nil)
	call(t, cs, "t.get", nil)
	texts, _ := call(t, cs, "read_more", map[string]any{"id": "1", "offset": 4<<20 - 1})
	if want := "of the response, the first 4194304 bytes were read"; texts[0] != "x" || !strings.Contains(texts[1], want) {
		t.Errorf("%q, want %q", texts, want)
	}
}

func TestOnlyTheNewestResponsesAreKept(t *testing.T) {
	cs := connect(t, oneOperation(reply(http.StatusOK, strings.Repeat("x", 3<<20))), nil)
	for range 3 {
		call(t, cs, "t.get", nil)
	}
	for id, want := range map[string]bool{"1": false, "2": true, "3": true} {
		if _, isError := call(t, cs, "read_more", map[string]any{"id": id, "offset": 5}); isError == want {
			t.Errorf("response %s: kept %v, want %v", id, !isError, want)
		}
	}
}

func TestABodyOfOtherThanTextIsNoText(t *testing.T) {
	png := "\x89PNG\r\n\x1a\n\x00\x00"
	for body, want := range map[string]string{
		png:                                 "*mcp.ImageContent",
		"\xff\xfe\x00binary":                "*mcp.EmbeddedResource",
		png + strings.Repeat("\x00", 1<<20): "*mcp.TextContent",
		"":                                  "*mcp.TextContent",
	} {
		cs := connect(t, oneOperation(reply(http.StatusOK, body)), nil)
		r := must.Get(cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "t.get"}))(t)
		if got := fmt.Sprintf("%T", r.Content[0]); len(r.Content) != 1 || got != want || r.IsError {
			t.Errorf("%.12q: %s, want %s", body, got, want)
		}
	}
}

// blocked is an API whose calls wait until it is released, and counts them.
type blocked struct {
	sessionAPI
	now, most, all atomic.Int64
	release        chan struct{}
	came           chan struct{} // gets a value for each call
	gone           chan struct{} // gets a value for each call whose client went away
}

func newBlocked() *blocked {
	b := &blocked{release: make(chan struct{}), came: make(chan struct{}, 1000), gone: make(chan struct{}, 1000)}
	b.ops = []api.ListedOperation{operation("github://a/b", "t", "get", "GET")}
	b.run = func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // the end of the client is noticed after that
		b.all.Add(1)
		for n := b.now.Add(1); ; {
			if most := b.most.Load(); n <= most || b.most.CompareAndSwap(most, n) {
				break
			}
		}
		defer b.now.Add(-1)
		b.came <- struct{}{}
		select {
		case <-b.release:
			reply(http.StatusOK, "done")(w, r)
		case <-r.Context().Done():
			b.gone <- struct{}{}
		}
	}
	return b
}

func TestHundredsOfCallsAtOnceAreBounded(t *testing.T) {
	b := newBlocked()
	cs := connect(t, &b.sessionAPI, nil)
	const calls = 300
	var wg sync.WaitGroup
	var done, refused atomic.Int64
	for range calls {
		wg.Go(func() {
			texts, isError := call(t, cs, "t.get", nil)
			switch {
			case !isError && texts[0] == "done":
				done.Add(1)
			case isError && strings.Contains(texts[0], "256 calls are waiting already"):
				if refused.Add(1) == calls-256 {
					close(b.release)
				}
			default:
				t.Errorf("%v %q", isError, texts)
			}
		})
	}
	wg.Wait()
	if done.Load() != 256 || refused.Load() != calls-256 || b.most.Load() != 16 {
		t.Errorf("%d done, %d refused, at most %d at once; want 256, 44, 16", done.Load(), refused.Load(), b.most.Load())
	}
}

func TestACallThatIsCancelledEnds(t *testing.T) {
	b := newBlocked()
	cs := connect(t, &b.sessionAPI, nil)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-b.came
		cancel()
	}()
	if _, err := cs.CallTool(ctx, &mcp.CallToolParams{Name: "t.get"}); !errors.Is(err, context.Canceled) {
		t.Errorf("CallTool = %v", err)
	}
	<-b.gone
}

const hello = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18",` +
	`"capabilities":{},"clientInfo":{"name":"t","version":"1"}}}` + "\n" +
	`{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n"

// lines returns what a server writes for what it reads, a line each, sorted.
func lines(t *testing.T, s *sessionAPI, in string) []string {
	t.Helper()
	var out strings.Builder
	must.Do(t, serverOf(t, s).Serve(t.Context(), strings.NewReader(in), &out))
	all := strings.Split(strings.TrimSpace(out.String()), "\n")
	slices.Sort(all)
	for _, line := range all {
		if !json.Valid([]byte(line)) {
			t.Errorf("a line that is no message: %q", line)
		}
	}
	return all
}

// Garbage is answered, and what follows it is served; the requests before the end of stdin are answered too.
func TestGarbageIsAnsweredAndTheNextMessageServed(t *testing.T) {
	get := func(id int) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"t.get"}}`, id) + "\n"
	}
	in := hello + "no JSON\n\n\r\n\xff\xfe\n" + `[{"jsonrpc":"2.0","id":5,"method":"ping"}]` + "\n" +
		`{"jsonrpc":"1.0","id":6,"method":"ping"}` + "\n{}\n\"text\"\n" +
		`{"jsonrpc":"2.0","id":7,"x":"` + strings.Repeat("x", 2<<20) + `"}` + "\n" +
		`{"jsonrpc":"2.0","id":8,"method":"no/such"}` + "\n" + get(9) + strings.TrimSpace(get(10)) // without a line end
	got := strings.Join(lines(t, oneOperation(reply(http.StatusOK, "the body")), in), "\n")
	for want, times := range map[string]int{
		`"the line is no JSON; a message is one line"},"id":null`:               2,
		`batches are not part of the protocol"},"id":null`:                      2, // the array, and the text
		`"the object is no message of JSON-RPC 2.0"},"id":6`:                    1,
		`"the object is no message of JSON-RPC 2.0"},"id":null`:                 1,
		`"the message has more than 1114112 bytes"},"id":null`:                  1,
		`"id":8,"error":{"code":-32601`:                                         1,
		`"id":1,"result"`:                                                       1,
		`"id":9,"result":{"_meta":{"aileron/audit_id":"01ROW","aileron/status"`: 1,
		`"text":"the body"`:                                                     2,
	} {
		if n := strings.Count(got, want); n != times {
			t.Errorf("%s: %d times, want %d, in\n%s", want, n, times, got)
		}
	}
}

// Neither a nest that is too deep for the SDK, nor the id of a request under way, nor a response to nothing.
func TestHostileMessagesEndNothing(t *testing.T) {
	deep := `{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"t.get","arguments":{"a":` +
		strings.Repeat("[", 5000) + strings.Repeat("]", 5000) + `}}}` + "\n"
	same := `{"jsonrpc":"2.0","id":4,"method":"ping"}` + "\n"
	got := strings.Join(lines(t, oneOperation(reply(http.StatusOK, "the body")), hello+deep+same+same+
		`{"jsonrpc":"2.0","id":99,"result":{}}`+"\n"+ // of no request
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":77}}`+"\n"+
		`{"jsonrpc":"2.0","id":6,"method":"tools/call","params":{"name":"t.get"}}`+"\n"), "\n")
	if !strings.Contains(got, `"id":6,"result"`) ||
		!strings.Contains(got, `no message of JSON-RPC 2.0"},"id":3`) || !strings.Contains(got, `"id":4,"result"`) {
		t.Errorf("responses:\n%s", got)
	}
}

// A client that died neither keeps the server nor its calls.
func TestAClientThatDiesEndsItsCalls(t *testing.T) {
	b := newBlocked()
	server := serverOf(t, &b.sessionAPI)
	in, toServer := io.Pipe()
	fromServer, out := io.Pipe()
	served := make(chan error)
	go func() { served <- server.Serve(t.Context(), in, out) }()
	must.Get(io.WriteString(toServer, hello))(t)
	must.Get(bufio.NewReader(fromServer).ReadString('\n'))(t)
	for id := range 20 {
		const call = `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"t.get"}}` + "\n"
		_, err := fmt.Fprintf(toServer, call, id+2)
		must.Do(t, err)
	}
	for range 16 {
		<-b.came
	}
	_ = fromServer.Close()
	// A request whose response cannot be written.
	must.Get(io.WriteString(toServer, `{"jsonrpc":"2.0","id":50,"method":"ping"}`+"\n"))(t)
	if err := <-served; err != nil {
		t.Errorf("Serve = %v", err)
	}
	for range 16 {
		<-b.gone
	}
	if b.all.Load() != 16 {
		t.Errorf("%d calls reached the session, want 16: those that waited were not sent", b.all.Load())
	}
}

// A client that sends and never reads keeps neither a server that is stopped nor one whose stdin ends.
func TestAClientThatReadsNothingKeepsNoServer(t *testing.T) {
	for name, end := range map[string]func(stop, in func()){
		"the server is stopped": func(stop, _ func()) { stop() },
		"its stdin ends":        func(_, in func()) { in() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // the second one takes the ten seconds of calls that are under way
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			server := serverOf(t, oneOperation(reply(http.StatusOK, "the body")))
			in, toServer := io.Pipe()
			_, out := io.Pipe() // whose other end is not read
			served := make(chan error)
			go func() { served <- server.Serve(ctx, in, out) }()
			must.Get(io.WriteString(toServer, hello))(t)
			for id := range 100 {
				_, err := fmt.Fprintf(toServer, `{"jsonrpc":"2.0","id":%d,"method":"ping"}`+"\n", id+2)
				must.Do(t, err)
			}
			end(cancel, func() { _ = toServer.Close() })
			select {
			case err := <-served:
				if err != nil {
					t.Errorf("Serve = %v", err)
				}
			case <-time.After(must.Patience(time.Minute)):
				t.Fatal("it still serves")
			}
		})
	}
}
