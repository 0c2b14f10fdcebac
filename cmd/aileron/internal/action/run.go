package action

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os/signal"
	"strconv"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/cmd/aileron/internal/cli"
	launchcmd "github.com/ALRubinger/aileron/cmd/aileron/internal/launch"
	"github.com/ALRubinger/aileron/internal/console"
	"github.com/ALRubinger/aileron/internal/failure"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/internal/launch"
	"github.com/ALRubinger/aileron/internal/session"
	"github.com/ALRubinger/aileron/spec"
)

type actionRunOptions struct {
	cli.SessionOptions
	args string
}

func newActionRunCommand(a *cli.App) *cobra.Command {
	opts := &actionRunOptions{}
	cmd := &cobra.Command{
		Use:   "run NAME --args JSON",
		Short: "Run an action in a session of its own, and print the response",
		Long: "Run an action in a session of its own, which uses the connectors that the action\n" +
			"pins and no other. It prints the body of the response to the last call; with --json\n" +
			"an object with its status too. The exit code is 0, 1 if it is denied or the upstream\n" +
			"responds with an error, 2 for arguments that the action does not declare, and 75 if\n" +
			"an approval is pending. --args - reads the arguments from stdin.",
		Example: `  aileron action run file-followup --args '{"project": "ACME", "title": "Document it"}'`,
		Args:    cli.UsageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := opts.Check(); err != nil {
				return err
			}
			return opts.run(cmd.Context(), a, args[0])
		},
	}
	opts.Register(cmd)
	cmd.Flags().StringVar(&opts.args, "args", "{}", "the arguments, a JSON object; - reads them from stdin")
	return cmd
}

func (o *actionRunOptions) run(ctx context.Context, a *cli.App, name string) error {
	f, err := foundAction(a, name)
	if err != nil {
		return err
	}
	args, err := o.arguments(a)
	if err != nil {
		return err
	}
	if len(o.Connectors) == 0 && f.Action != nil {
		if o.Connectors, err = installedPins(a, f.Action.Requires); err != nil {
			return err
		}
	}
	ctx, stopSignals := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stopSignals()
	l, err := launchcmd.Launcher(a, &o.SessionOptions)
	if err != nil {
		return err
	}
	stop := session.NewStopRequest()
	host, err := l.OpenHost(ctx, launch.Host{Agent: "action " + name, Mode: "off", Listen: "127.0.0.1:0", Stop: stop})
	if err != nil {
		return err
	}
	request, cancel := stop.WithStop(ctx)
	code, err := callAction(request, a, host, name, args)
	cancel()
	cause := "the action ended"
	switch {
	case stop.Requested():
		code, cause, err = session.StoppedCode, session.StoppedCause, nil
	case ctx.Err() != nil:
		code, cause, err = 128+int(syscall.SIGINT), "interrupted", nil
	case err != nil:
		code = 1
	}
	if err = errors.Join(err, host.Close(context.WithoutCancel(ctx), code, cause)); err != nil || code == 0 {
		return err
	}
	return console.Exit(code)
}

// arguments returns the JSON of --args, checked for what would make it several things at once.
func (o *actionRunOptions) arguments(a *cli.App) ([]byte, error) {
	args := []byte(o.args)
	if o.args == "-" {
		var err error
		if args, err = io.ReadAll(io.LimitReader(a.Stdin, spec.MaxSize+1)); err != nil {
			return nil, fmt.Errorf("read the arguments from stdin: %w", err)
		}
	}
	if _, err := spec.ReadObject(args); err != nil {
		return nil, failure.Usagef("--args is no JSON object: %v", err)
	}
	return args, nil
}

// callAction runs an action through the API of a session, prints the response, and returns the exit code.
func callAction(ctx context.Context, a *cli.App, host *launch.HostSession, name string, args []byte) (int, error) {
	call, err := json.Marshal(map[string]any{"action": name, "args": json.RawMessage(args)})
	if err != nil {
		return 1, failure.Usagef("--args is no JSON object: %v", err)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, host.APIURL+"/actions/run", bytes.NewReader(call))
	if err != nil {
		return 1, err
	}
	r.Header.Set("Authorization", "Bearer "+host.Token())
	r.Header.Set("Accept", "application/vnd.aileron.shim.v1")
	if a.JSON {
		r.Header.Set("Accept", "application/vnd.aileron.shim.v1+json")
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}} // no proxy of the environment
	res, err := client.Do(r)
	if err != nil {
		return 1, fmt.Errorf("run the action %s: %w", name, err)
	}
	defer res.Body.Close()
	body := bufio.NewReader(res.Body)
	head, err := body.ReadString('\n')
	words := strings.Fields(head)
	if err != nil || len(words) != 4 {
		return 1, fmt.Errorf("run the action %s: the session's response has no first line", name)
	}
	code, err := strconv.Atoi(words[0])
	if err != nil {
		return 1, fmt.Errorf("run the action %s: the session's response has no exit code", name)
	}
	if words[3] == "denial" {
		return code, printDenial(a, body)
	}
	out := a.Stdout
	if !launch.IsTerminal(a.Child.Stdout) {
		out = a.Child.Stdout // the bytes as they are
	}
	if _, err = io.Copy(out, body); err != nil {
		return 1, hint.New(fmt.Errorf("print the response: %w", err), "the request was sent and may have taken effect")
	}
	if code != 0 {
		a.Infof("aileron: the upstream responded with status %s", words[1])
	}
	return code, nil
}

// printDenial prints a denial: its message, or with --json its object, to stderr as other errors.
func printDenial(a *cli.App, body *bufio.Reader) error {
	message, err := body.ReadString('\n')
	if err != nil {
		return fmt.Errorf("read the denial: %w", err)
	}
	if a.JSON {
		_, err = io.Copy(a.Stderr, body)
		return err
	}
	a.Infof("%s", strings.TrimSpace(message))
	return nil
}
