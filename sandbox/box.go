package sandbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/ALRubinger/aileron/sandbox/engine"
)

// File is one file, or directory, that is put into a box before it starts.
type File struct {
	Path string
	Mode fs.FileMode
	Data []byte
}

// Box is one command in a sealed box.
type Box struct {
	Session   string // names and labels the containers
	Image     Image
	Command   []string
	Needs     []string // commands that the image must have besides
	Env       []string
	AppendTo  []string // names of Env: ours is appended to the image's own value, after a space
	Dir       string   // the project; at Workspace in the box
	Hide      []string // directories below Dir that are empty in the box
	SocketDir string   // holds proxy.sock and redirect.sock; only the gateway sees it
	Binary    string   // a static aileron, for the gateway
	Files     []File
	Stdin     io.Reader // nil: none
	Stdout    io.Writer
	Stderr    io.Writer // with a TTY, Stdout has it all
	TTY       bool      // Stdin and Stdout are terminals
	Signals   <-chan os.Signal

	// Starting, when set, is called when the command is about to begin. From
	// then on Signals are passed on, and end a start that hangs (ErrInterrupted);
	// before, only ctx ends what is prepared.
	Starting func()
	// Began, when set, is called when the command has begun: from then on Run
	// returns the command's exit code when ctx ends.
	Began func()
	// Terminal, when set, is called when what restores the person's terminal
	// changes, before it does: a process that outlives this one can do it.
	Terminal func(TerminalState)
	// ReadOnly keeps the command from changing the image's files: it may write
	// to the project, its home, /tmp, /var/tmp and /run.
	ReadOnly bool
	// Limits bound what the box may use; the zero value is no bound.
	Limits Limits
	// Unenforced, when set, is called before the command has written anything
	// when the kernel does not enforce the limits that are named.
	Unenforced func(limits []string)
	// Exhausted, when set, is called at the end of a box that ran out of
	// something.
	Exhausted func(Exhaustion)
	// Unsealed gives the box the engine's own network instead of a gateway:
	// what it sends goes where it sends it. Its host finds this one by the
	// name HostAlias.
	Unsealed bool

	mounts string // the directory of the files that are mounted into the box
}

// ProjectError says that a project holds what a box must not have.
type ProjectError struct{ Dir, Holds string }

// ErrorClass and ErrorReason are for --json.
func (*ProjectError) ErrorClass() string  { return "invalid_request" }
func (*ProjectError) ErrorReason() string { return "project_not_allowed" }

func (e *ProjectError) Error() string {
	return fmt.Sprintf("use the project directory %s: it holds %s, which a box must not have", e.Dir, e.Holds)
}

// name is that of one of the box's containers.
func (b Box) name(role string) string { return namePrefix + b.Session + "-" + role }

// Run runs a box from its creation to its removal and gives the command's
// exit code, 128+N when signal N ended it. When ctx ends, the command is
// stopped. The error is about the box, never about the command's work: it says
// what ended the box when the command did not. It is ErrLeft when containers
// are left, which happens only where their engine went away.
func (e *Engine) Run(ctx context.Context, b Box) (code int, err error) {
	defer func() {
		if !errors.Is(err, ErrLeft) {
			engine.Unwrap(&err)
		}
	}()
	seccomp, err := e.Seccomp(b.SocketDir, seccompProfile)
	if err != nil {
		return 1, err
	}
	// Not the session's directory: a box can read where its mounts come from,
	// and where the vault is is no business of the agent's.
	if b.mounts, err = engine.MakeDir(); err != nil {
		return 1, fmt.Errorf("make a directory for the box's files: %w", err)
	}
	defer os.RemoveAll(b.mounts)
	if inside := e.forbiddenMount(b); inside != "" {
		return 1, &ProjectError{Dir: b.Dir, Holds: inside}
	}
	if b.Image, _, err = e.pin(ctx, b.Image); err != nil {
		return 1, err
	}
	var made []*engine.Container
	defer func() {
		engine.Unwrap(&err)
		if err != nil && ctx.Err() == nil && !errors.Is(err, ErrInterrupted) && !errors.As(err, new(*engine.WaitError)) {
			if why := e.WentAway(); why != "" {
				err = fmt.Errorf("run the box: %s, and without it the box cannot go on", why)
			}
		}
		if left := e.RemoveAll(ctx, made); left != nil {
			err = joined(err, left)
		}
	}()
	var gateway *engine.Container
	if !b.Unsealed {
		id, err := e.createGateway(ctx, b, seccomp)
		if err != nil {
			made = append(made, &engine.Container{ID: b.name("gw")}) // a call that was given up may still be done
			return 1, err
		}
		gateway = &engine.Container{ID: id}
		made = append(made, gateway)
		if err := e.startGateway(ctx, gateway); err != nil {
			return 1, err
		}
	}
	id, err := e.createBox(ctx, b, gateway, seccomp)
	box := &engine.Container{ID: cmp.Or(id, b.name("box"))}
	made = append(made, box)
	if err != nil {
		return 1, err
	}
	report, err := e.preflight(ctx, b, id)
	if len(report.Missing) > 0 {
		return 1, &ImageError{Image: b.Image.Ref, Missing: report.Missing}
	}
	if bad := (*CommandError)(nil); errors.As(err, &bad) {
		return bad.Code, err
	}
	if err != nil {
		return 1, err
	}
	if !b.ReadOnly { // a root that is read-only has them mounted
		if err := e.put(ctx, box.ID, b.Files); err != nil {
			return 1, err
		}
	}
	return e.runBox(ctx, b, box, gateway)
}

// joined is two errors in one line.
func joined(first, second error) error {
	if first == nil {
		return second
	}
	return fmt.Errorf("%w; %w", first, second)
}
