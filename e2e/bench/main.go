// Command bench measures aileron beside other proxies on this machine: a direct client, a plain CONNECT tunnel,
// vanilla goproxy, martian and mitmproxy, and `light`, a hand-written MITM proxy without policy, to which goals are
// relative. All of them run at the same time, as processes of their own, with the origin in one more and the load in
// this one; what is compared was measured in turns, minutes apart at most.
//
//	go run ./e2e/bench                      # all scenarios
//	go run ./e2e/bench --quick --scenario A1,D --markdown out.md
//
// It refuses to measure a path that it has not checked: each subject must first respond correctly in every scenario;
// and through aileron the origin must have seen the credential, the client never, and every request must have its
// events in the audit log.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

func main() {
	// A connection that its peer has closed raises SIGPIPE too, so the signal itself must not end the bench.
	signal.Ignore(syscall.SIGPIPE)
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	err := command(ctx, os.Args[1:])
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// command runs the bench, or, when it has started itself, one part of it.
func command(ctx context.Context, args []string) error {
	if len(args) > 0 {
		if serve, ok := parts[args[0]]; ok {
			return runPart(ctx, serve, args[1:])
		}
	}
	var opts options
	var only, subjects string
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	f.StringVar(&opts.aileron, "aileron", "bin/aileron", "the binary to measure (just build)")
	f.StringVar(&opts.markdown, "markdown", "", "file to write the table to, as Markdown")
	f.StringVar(&opts.plot, "plot", "", "file to draw every goal and every subject to, as SVG")
	f.BoolVar(&opts.docs, "docs", false, "write docs/performance.md, docs/performance.svg and the figures of README.md")
	f.StringVar(&opts.profile, "profile", "",
		"directory for CPU profiles of aileron; its figures are then not those of bin/aileron")
	f.BoolVar(&opts.quick, "quick", false, "fewer and shorter turns: two minutes instead of eight")
	f.StringVar(&only, "scenario", "", "which scenarios, with commas between (default all)")
	f.StringVar(&subjects, "subject", "", "which subjects, with commas between (default all; light is always there)")
	f.IntVar(&opts.turns, "turns", 0, "turns of each subject in each scenario (default 5, quick 3)")
	f.DurationVar(&opts.window, "window", 0, "how long one turn measures (default 700ms, quick 250ms)")
	f.StringVar(&opts.ship, "ship", "", "aileron's [audit] ship: a URL as of aileron audit ship (default none)")
	f.StringVar(&opts.durability, "durability", "", "aileron's [audit] durability (default its own: normal)")
	if err := f.Parse(args); err != nil {
		return err
	}
	if f.NArg() > 0 {
		return fmt.Errorf("%q is not a part of the bench", f.Arg(0))
	}
	opts.scenarios, opts.subjects = list(only), list(subjects)
	opts.settle()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	return measure(ctx, &opts, untilClosed{os.Stdout, stop}, untilClosed{os.Stderr, stop})
}

// untilClosed is an output that ends the bench when its reader has gone: `just bench | head` leaves no process behind.
type untilClosed struct {
	io.Writer
	stop func()
}

func (u untilClosed) Write(p []byte) (int, error) {
	n, err := u.Writer.Write(p)
	if err != nil {
		u.stop()
	}
	return n, err
}

type options struct {
	aileron             string
	markdown, plot      string
	docs                bool // write the repository's documents
	profile             string
	durability, ship    string
	quick               bool
	share               int // see turn
	scenarios, subjects []string
	turns               int
	window              time.Duration
}

// audit returns the part [audit] of config.toml, "" if it is aileron's own.
func (o *options) audit() string {
	config := ""
	if o.durability != "" {
		config += fmt.Sprintf("durability = %q\n", o.durability)
	}
	if o.ship != "" {
		config += fmt.Sprintf("ship = %q\n", o.ship)
	}
	if config != "" {
		config = "[audit]\n" + config
	}
	return config
}

func (o *options) settle() {
	turns, window := 5, 700*time.Millisecond
	if o.quick {
		turns, window = 3, 250*time.Millisecond
		o.share = 3
	}
	if o.turns == 0 {
		o.turns = turns
	}
	if o.window == 0 {
		o.window = window
	}
}

func list(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool { return r == ',' || r == ' ' })
}

// part serves one process of the bench until its context ends. It calls ready
// once, when it can be used.
type part func(ctx context.Context, cfg partConfig, ready func(announcement) error) error

// parts are the processes that the bench starts itself.
var parts = map[string]part{
	"origin":  serveOrigin,
	"connect": serveConnect,
	"goproxy": serveGoproxy,
	"martian": serveMartian,
	"light": func(ctx context.Context, c partConfig, r func(announcement) error) error {
		return serveLight(ctx, c, r, "light", false)
	},
	"lighth2": func(ctx context.Context, c partConfig, r func(announcement) error) error {
		return serveLight(ctx, c, r, "lighth2", true)
	},
}

// runPart runs one part until standard input ends: the bench holds the other
// end, so that no part outlives it, however it ends.
func runPart(ctx context.Context, serve part, args []string) error {
	var cfg partConfig
	f := flag.NewFlagSet("part", flag.ContinueOnError)
	f.StringVar(&cfg.dir, "dir", "", "directory for certificates")
	f.StringVar(&cfg.origin, "origin", "", "address of the origin")
	if err := f.Parse(args); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() { _, _ = io.Copy(io.Discard, os.Stdin); cancel() }()
	err := serve(ctx, cfg, func(a announcement) error { return a.print(os.Stdout) })
	if ctx.Err() != nil {
		return nil // whatever its error, it was asked to end
	}
	return err
}
