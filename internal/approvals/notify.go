package approvals

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/ALRubinger/aileron/internal/termsafe"
	"github.com/ALRubinger/aileron/proxy/approval"
)

// notifyTimeout bounds the command that tells a person of a request that waits.
const notifyTimeout = 10 * time.Second

// notifyPause is the least time between two notifications.
const notifyPause = 5 * time.Second

// Notifier notifies a person of requests that begin to wait, and of budgets. No word of the text is one that the agent
// wrote.
type Notifier struct {
	Command []string // gets the text as one more argument; none: no command is run
	Environ *Environ // of the command, which is looked for on its PATH
	// Start starts the command. Nil: [exec.Cmd.Start].
	Start func(*exec.Cmd) error
	// Line prints the text for a person; nil: it is not printed.
	Line func(text string)
	// Warn reports that the command fails, the first time; nil: it is not reported.
	Warn func(error)

	opened chan string
}

// NewNotifier returns n, ready for use.
func NewNotifier(n Notifier) *Notifier {
	n.opened = make(chan string, approval.MaxOpen)
	return &n
}

// Opened notes a question. It never blocks: of more than can be open at a time, some are left out.
func (n *Notifier) Opened(q approval.Question) { n.Tell(notice(q)) }

// Tell notes a text of ours. It never blocks: of many at a time, some are left out.
func (n *Notifier) Tell(text string) {
	select {
	case n.opened <- text:
	default:
	}
}

// notice returns the text about a question: words of the connector and of the person, and the id.
func notice(q approval.Question) string {
	what := strings.TrimSpace(q.Tool + " " + q.Operation)
	if what == "" {
		what = "a request of no operation"
	}
	return termsafe.Line(fmt.Sprintf("%s of %s waits for your approval: aileron approval show %s", what, q.Agent, q.ID))
}

// Run notifies of questions until ctx ends, one at a time, and at most every five seconds: what comes meanwhile is
// counted.
func (n *Notifier) Run(ctx context.Context) {
	warned := false
	for {
		select {
		case <-ctx.Done():
			return
		case text := <-n.opened:
			if more := len(n.opened); more > 0 {
				for range more {
					<-n.opened
				}
				text += fmt.Sprintf(" (and %d more: aileron approval list, aileron audit list --event budget.reached)", more)
			}
			if n.Line != nil {
				n.Line(text)
			}
			if err := n.run(ctx, text); err != nil && !warned && ctx.Err() == nil && n.Warn != nil {
				warned = true
				n.Warn(fmt.Errorf("notify of an approval with %s: %w", n.Command[0], err))
			}
			select {
			case <-time.After(notifyPause):
			case <-ctx.Done():
				return
			}
		}
	}
}

// run runs the command, and ends what it started if that takes too long.
func (n *Notifier) run(ctx context.Context, text string) error {
	if len(n.Command) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, notifyTimeout)
	defer cancel()
	program, err := n.Environ.find(n.Command[0])
	if err != nil {
		return err
	}
	args := append(n.Command[1:len(n.Command):len(n.Command)], text)
	cmd := exec.CommandContext(ctx, program, args...) //nolint:gosec // the person's own, of config.toml
	cmd.Env, cmd.SysProcAttr = n.Environ.list(), &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	cmd.Dir = "/" // not the project, in which a relative path, or an interpreter, could find what an agent wrote
	start := n.Start
	if start == nil {
		start = (*exec.Cmd).Start
	}
	if err := start(cmd); err != nil {
		return err
	}
	return cmd.Wait()
}
