package mcpserver

import (
	"context"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/ALRubinger/aileron/internal/launch"
)

// Command serves a client on the streams of a process, until the client has gone, a signal comes, or the session is
// stopped. It returns the exit code.
type Command struct {
	Options
	Getenv func(string) string
	In     io.Reader
	Out    io.Writer
	// Launcher opens the session of a command that has none in its environment.
	Launcher func() (*launch.Launcher, error)
}

// Run serves the session of the environment, or one of its own.
func (c Command) Run(ctx context.Context) (code int, err error) {
	signal.Ignore(syscall.SIGPIPE) // of a client that has died: it would end the process, and leave the session unclean
	ctx, stopSignals := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stopSignals()
	at, inherited, err := SessionOf(c.Getenv)
	if err != nil {
		return 1, err
	}
	if inherited {
		return 0, Run(ctx, at, c.Options, c.In, c.Out)
	}
	l, err := c.Launcher()
	if err != nil {
		return 1, err
	}
	return l.During(ctx, launch.Host{Agent: "mcp", Mode: "off", Listen: "127.0.0.1:0"}, "the client ended",
		func(ctx context.Context, host *launch.HostSession) (int, error) {
			shrink()
			return 0, Run(ctx, Session{URL: host.APIURL, Token: host.Token()}, c.Options, c.In, c.Out)
		})
}
