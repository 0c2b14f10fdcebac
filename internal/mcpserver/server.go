// Package mcpserver serves the operations of a session as tools of the Model Context Protocol, on two streams:
//
//	err := mcpserver.Run(ctx, session, mcpserver.Options{Version: "1.2.0"}, os.Stdin, os.Stdout)
//
// A call of a tool is a call of the session's API (package api), as a command of a connector makes it: it is matched,
// given its credential, redacted and recorded there, and nowhere else. The session holds the arguments to their
// declaration, so that a mistake is recorded too; the SDK's Server.AddTool does not hold them to the schema.
//
// tools.go makes tools of operations, catalog.go has the tools that stand in for many of them, result.go makes results
// of responses, kept.go keeps what is too long for one, session.go calls the API, and stdio.go is the transport.
package mcpserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ALRubinger/aileron/proxy/api"
)

const (
	// maxTools is how many operations have a tool each. More of them would fill a model's context before it begins.
	maxTools = 40
	// maxCalls is how many calls and searches are under way; maxWaiting is how many more may wait.
	maxCalls   = 16
	maxWaiting = 240
	// followEvery is how often the server looks whether the session's operations have changed.
	followEvery = 2 * time.Second
	// endGrace is how long calls may take that are under way when the client has closed its end.
	endGrace = 10 * time.Second
	// maxListed is how many operations a session lists at once.
	maxListed = 1000
)

// Options describe a server.
type Options struct {
	Version string // of aileron
}

// Server serves one client.
type Server struct {
	client *client
	sdk    *mcp.Server
	kept   kept

	slots   chan struct{} // of calls under way
	waiting atomic.Int64  // calls, those under way included
	served  chan struct{} // closed when the client is gone, or Serve was cancelled

	refreshing sync.Mutex // one refresh at a time
	generation int64
	tools      []string // that the SDK has
}

// instructions tell a model what the tools are.
const instructions = "These tools are requests that Aileron allows, each to one HTTPS API. Aileron adds the " +
	"credential of a request itself, redacts it from the response and records the call: never ask for a key or a " +
	"token. An error says what was refused, why, and what to do; sending the same call again does not help."

// Run serves the operations of a session until the client closes in, or cannot be written to, or ctx ends. The error is
// that the session does not answer.
func Run(ctx context.Context, session Session, o Options, in io.Reader, out io.Writer) error {
	s, err := New(ctx, session, o)
	if err != nil {
		return err
	}
	return s.Serve(ctx, in, out)
}

// New returns a server for the operations of a session. The error is that the session does not answer.
func New(ctx context.Context, session Session, o Options) (*Server, error) {
	s := &Server{client: newClient(session), slots: make(chan struct{}, maxCalls), generation: -1,
		served: make(chan struct{})}
	s.sdk = mcp.NewServer(&mcp.Implementation{Name: "aileron", Title: "Aileron", Version: o.Version}, &mcp.ServerOptions{
		Instructions: instructions, Logger: slog.New(slog.DiscardHandler), // every end is an error to it
		Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{ListChanged: true}},
	})
	s.sdk.AddReceivingMiddleware(s.refreshFirst)
	if err := s.refresh(ctx); err != nil {
		return nil, err
	}
	return s, nil
}

// Serve serves a client until it closes in, or cannot be written to, or ctx ends. Calls that are under way when in ends
// have ten seconds. It must be called once.
func (s *Server) Serve(ctx context.Context, in io.Reader, out io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	// The SDK waits for calls under way, whatever becomes of ctx.
	context.AfterFunc(ctx, func() { close(s.served) })
	var following sync.WaitGroup
	following.Go(func() { s.follow(ctx) })
	defer func() { cancel(); following.Wait() }()
	err := s.sdk.Run(ctx, &stdio{in: in, out: out, broken: cancel, ended: ctx.Done()})
	if errors.Is(err, io.EOF) || ctx.Err() != nil {
		return nil
	}
	return err
}

// whileServed returns a context that ends with the server's client, too.
func (s *Server) whileServed(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		select {
		case <-s.served:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}

// follow refreshes the tools while the server serves, which notifies the client.
func (s *Server) follow(ctx context.Context) {
	tick := time.NewTicker(followEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			_ = s.refresh(ctx) // the next call has the error
		}
	}
}

// refreshFirst makes a list of tools that of the session's operations at this moment.
func (s *Server) refreshFirst(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, r mcp.Request) (mcp.Result, error) {
		if method == "tools/list" {
			if err := s.refresh(ctx); err != nil {
				return nil, errors.New(textOf(err))
			}
		}
		return next(ctx, method, r)
	}
}

// refresh makes the tools those of the session's operations, if these have changed.
func (s *Server) refresh(ctx context.Context) error {
	s.refreshing.Lock()
	defer s.refreshing.Unlock()
	now, err := s.client.operations(ctx, "", "", 0)
	if err != nil || now.Generation == s.generation {
		return err
	}
	limit := now.Total
	if now.Callable > maxTools || now.Total > maxListed {
		limit = 0
	}
	list, err := s.client.operations(ctx, "", "", limit)
	if err != nil {
		return err
	}
	var names []string
	if limit == 0 && now.Total > 0 {
		names = s.addCatalog(now.Callable)
	} else {
		names = s.addTools(list.Operations)
	}
	names = append(names, s.addKept())
	s.sdk.RemoveTools(slices.DeleteFunc(s.tools, func(name string) bool { return slices.Contains(names, name) })...)
	s.tools, s.generation = names, list.Generation
	return nil
}

// addTools adds a tool for each operation that can be called by name, and returns their names.
func (s *Server) addTools(ops []api.ListedOperation) []string {
	ops = slices.DeleteFunc(slices.Clone(ops), func(op api.ListedOperation) bool { return !op.Callable })
	names := namesOf(ops)
	for i, op := range ops {
		call := func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return s.inTurn(ctx, func(ctx context.Context) *mcp.CallToolResult {
				return s.call(ctx, op, r.Params.Arguments)
			}), nil
		}
		s.sdk.AddTool(toolOf(names[i], op), call)
	}
	return names
}

// inTurn does what asks the session for something, a call or a search, when it has a slot.
func (s *Server) inTurn(ctx context.Context, do func(context.Context) *mcp.CallToolResult) *mcp.CallToolResult {
	ctx, cancel := s.whileServed(ctx)
	defer cancel()
	defer s.waiting.Add(-1)
	if s.waiting.Add(1) > maxCalls+maxWaiting {
		return failed(fmt.Sprintf("%d calls are waiting already; call again when some have ended", maxCalls+maxWaiting))
	}
	select {
	case s.slots <- struct{}{}:
		defer func() { <-s.slots }()
	case <-ctx.Done():
		return failed("the call was cancelled before it was sent")
	}
	return do(ctx)
}

// call calls an operation. What goes wrong is a result, so that the model reads it.
func (s *Server) call(ctx context.Context, op api.ListedOperation, args []byte) *mcp.CallToolResult {
	got, err := s.client.run(ctx, op, args)
	if err != nil {
		return failed(textOf(err))
	}
	defer got.body.Close()
	return s.result(op, got)
}
