package sandbox

import (
	"bufio"
	"context"
	_ "embed" // the seccomp profile
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"
	"github.com/docker/docker/pkg/stdcopy"
	"github.com/docker/go-units"
)

// seccompProfile allows what programs need. Above all it leaves no socket
// family but UNIX, INET, INET6 and NETLINK: AF_VSOCK knows no network
// namespace, and engines' own profiles of some years let it through.
//
//go:embed seccomp.json
var seccompProfile string

// File is one file that is put into a box before it starts.
type File struct {
	Path string
	Mode fs.FileMode
	Data []byte
}

// Box is one command in a sealed box.
type Box struct {
	Session   string // names and labels the containers
	Image     string
	Command   []string
	Env       []string
	Dir       string // the project; at Workspace in the box
	SocketDir string // holds proxy.sock and redirect.sock; only the gateway sees it
	Binary    string // a static aileron, for the gateway
	Files     []File
	Stdin     io.Reader // nil: none
	Stdout    io.Writer
	Stderr    io.Writer // with a TTY, Stdout has it all
	TTY       bool      // Stdin and Stdout are terminals
	Signals   <-chan os.Signal
}

// stopGrace is how long a box has between SIGTERM and SIGKILL when ctx ends.
const stopGrace = 5 * time.Second

// cleanupTime bounds the removal of a run's containers.
const cleanupTime = 30 * time.Second

// Run runs a box from its creation to its removal and gives the command's
// exit code, 128+N when signal N ended it. When ctx ends, the command is
// stopped. The error is about the box, never about the command's work.
func (e *Engine) Run(ctx context.Context, b Box) (code int, err error) {
	resolv := filepath.Join(b.SocketDir, "resolv.conf")
	if err := os.WriteFile(resolv, []byte("nameserver 127.0.0.53\noptions ndots:1 timeout:2 attempts:1\n"), 0o644); err != nil { //nolint:gosec // the box's user reads it
		return 1, fmt.Errorf("write the box's resolv.conf: %w", err)
	}
	seccomp := seccompProfile
	if e.kind == "podman" { // each engine refuses the other's form
		seccomp = filepath.Join(b.SocketDir, "seccomp.json")
		if err := os.WriteFile(seccomp, []byte(seccompProfile), 0o644); err != nil { //nolint:gosec // not a secret
			return 1, fmt.Errorf("write the seccomp profile: %w", err)
		}
	}
	var made []string
	defer func() {
		clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTime)
		defer cancel()
		for i := len(made) - 1; i >= 0; i-- { // the box before its gateway
			if removeErr := e.remove(clean, made[i]); removeErr != nil {
				err = errors.Join(err, removeErr)
			}
		}
	}()
	gateway, err := e.createGateway(ctx, b, seccomp)
	if err != nil {
		return 1, err
	}
	made = append(made, gateway)
	if err := e.startGateway(ctx, gateway); err != nil {
		return 1, err
	}
	box, err := e.createBox(ctx, b, gateway, resolv, seccomp)
	if err != nil {
		return 1, err
	}
	made = append(made, box)
	files, err := archiveOf(b.Files)
	if err != nil {
		return 1, fmt.Errorf("pack the box's files: %w", err)
	}
	if err := e.cli.CopyToContainer(ctx, box, "/", files, container.CopyToContainerOptions{AllowOverwriteDirWithFile: false}); err != nil {
		return 1, fmt.Errorf("put the session's files into the box: %w", err)
	}
	return e.runBox(ctx, b, box, gateway)
}

func (b Box) labels(role string) map[string]string {
	return map[string]string{labelSession: b.Session, labelRole: role}
}

func ulimits() []*units.Ulimit {
	files, procs := hardLimits()
	return []*units.Ulimit{{Name: "nofile", Soft: files, Hard: files}, {Name: "nproc", Soft: procs, Hard: procs}}
}

func (e *Engine) createGateway(ctx context.Context, b Box, seccomp string) (string, error) {
	pids, memory := int64(512), int64(256<<20)
	host := &container.HostConfig{
		NetworkMode: "none", ReadonlyRootfs: true, CapDrop: []string{"ALL"},
		CapAdd:      []string{"NET_ADMIN", "SETUID", "SETGID", "SETPCAP"},
		SecurityOpt: []string{e.noNewPrivileges(), "seccomp=" + seccomp},
		Resources:   container.Resources{Ulimits: ulimits(), PidsLimit: &pids, Memory: memory},
		Mounts: []mount.Mount{
			{Type: mount.TypeBind, Source: b.SocketDir, Target: "/run/aileron", ReadOnly: true},
			{Type: mount.TypeBind, Source: b.Binary, Target: "/aileron", ReadOnly: true},
		},
	}
	c, err := e.cli.ContainerCreate(ctx, &container.Config{Image: b.Image, Entrypoint: []string{"/aileron"}, Cmd: []string{"gateway"}, User: "0:0",
		WorkingDir: "/", Env: []string{"PATH=/"}, Labels: b.labels("gateway"), StopSignal: "SIGTERM"}, host, nil, nil, "aileron-"+b.Session+"-gw")
	if err != nil {
		return "", fmt.Errorf("make the gateway: %w", err)
	}
	return c.ID, nil
}

func (e *Engine) noNewPrivileges() string {
	return "no-new-privileges"
}

// startGateway starts the gateway and waits for its word that it is ready.
func (e *Engine) startGateway(ctx context.Context, id string) error {
	if err := e.cli.ContainerStart(ctx, id, container.StartOptions{}); err != nil {
		return fmt.Errorf("start the gateway: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	logs, err := e.cli.ContainerLogs(ctx, id, container.LogsOptions{ShowStdout: true, ShowStderr: true, Follow: true})
	if err != nil {
		return fmt.Errorf("listen to the gateway: %w", err)
	}
	defer logs.Close()
	pr, pw := io.Pipe()
	said := &tail{}
	go func() {
		_, err := stdcopy.StdCopy(pw, said, logs)
		_ = pw.CloseWithError(errors.Join(err, io.EOF))
	}()
	defer pr.Close()
	lines := bufio.NewScanner(pr)
	for lines.Scan() {
		if strings.TrimSpace(lines.Text()) == "ready" {
			return nil
		}
		_, _ = said.Write(lines.Bytes())
	}
	return fmt.Errorf("start the gateway: it did not get ready: %s", said)
}

func (e *Engine) createBox(ctx context.Context, b Box, gateway, resolv, seccomp string) (string, error) {
	user, ownHome, err := e.boxUser(ctx, b)
	if err != nil {
		return "", err
	}
	pids := int64(4096)
	host := &container.HostConfig{
		NetworkMode: container.NetworkMode("container:" + gateway), CapDrop: []string{"ALL"},
		SecurityOpt: []string{e.noNewPrivileges(), "seccomp=" + seccomp},
		Resources:   container.Resources{Ulimits: ulimits(), PidsLimit: &pids},
		Mounts: []mount.Mount{
			{Type: mount.TypeBind, Source: b.Dir, Target: Workspace},
			{Type: mount.TypeBind, Source: resolv, Target: "/etc/resolv.conf", ReadOnly: true},
		},
	}
	env := append([]string{"HOME=/home/agent"}, b.Env...)
	if ownHome {
		host.Tmpfs = map[string]string{"/home/agent": "rw,exec,mode=1777"}
	}
	if b.TTY {
		if t := os.Getenv("TERM"); t != "" {
			env = append(env, "TERM="+t)
		}
	}
	// Process 1 ignores signals that it has no handler for: an init makes
	// Ctrl-C work for every command. Podman's is a program of its own, which
	// hosts may not have; there a second Ctrl-C kills.
	init := e.kind == "docker"
	for _, path := range []string{"/usr/libexec/podman/catatonit", "/usr/bin/catatonit"} {
		if _, err := os.Stat(path); err == nil {
			init = true
		}
	}
	host.Init = &init
	c, err := e.cli.ContainerCreate(ctx, &container.Config{Image: b.Image, Entrypoint: []string{}, Cmd: b.Command, User: user, Env: env,
		WorkingDir: Workspace, Tty: b.TTY, OpenStdin: b.Stdin != nil, StdinOnce: true, AttachStdin: b.Stdin != nil, AttachStdout: true, AttachStderr: true,
		Labels: b.labels("box")}, host, nil, nil, "aileron-"+b.Session+"-box")
	if err != nil {
		return "", fmt.Errorf("make the box: %w", err)
	}
	return c.ID, nil
}

// boxUser decides who the command is. The image's own user is kept where it
// can write to the project. Where it cannot, the command runs as the
// project's owner, and gets a home of its own: without capabilities even
// user 0 is only the owner of its files. On a rootless engine user 0 is the
// person who runs it.
func (e *Engine) boxUser(ctx context.Context, b Box) (user string, ownHome bool, err error) {
	if e.kind == "podman" && os.Geteuid() != 0 {
		return "0:0", true, nil
	}
	img, err := e.cli.ImageInspect(ctx, b.Image)
	if err != nil {
		return "", false, fmt.Errorf("look at the image %s: %w", b.Image, err)
	}
	image := ""
	if img.Config != nil {
		image = img.Config.User
	}
	info, err := os.Stat(b.Dir)
	if err != nil {
		return "", false, fmt.Errorf("look at the project: %w", err)
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok || info.Mode().Perm()&0o002 != 0 {
		return image, false, nil
	}
	owner := strconv.Itoa(int(st.Uid))
	uid, _, _ := strings.Cut(image, ":")
	if uid == owner || uid == "agent" && owner == "1000" || (uid == "" || uid == "root") && owner == "0" {
		return image, uid == "" || uid == "root", nil
	}
	return owner + ":" + strconv.Itoa(int(st.Gid)), true, nil
}

// runBox attaches, starts and waits.
func (e *Engine) runBox(ctx context.Context, b Box, box, gateway string) (int, error) {
	// The box outlives ctx by its grace.
	live, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	attach, attachErr := e.cli.ContainerAttach(live, box, container.AttachOptions{Stream: true, Stdin: b.Stdin != nil, Stdout: true, Stderr: true, DetachKeys: "ctrl-@,ctrl-@,ctrl-@"})
	if attachErr != nil {
		// Podman makes the process here; only its start tells what is wrong.
		if err := e.cli.ContainerStart(ctx, box, container.StartOptions{}); err != nil {
			return 127, startError(b, err)
		}
		return 1, fmt.Errorf("attach to the box: %w", attachErr)
	}
	defer attach.Close()
	term, err := openTerminal(b)
	if err != nil {
		return 1, err
	}
	defer term.restore()
	resize := func() {
		if h, w, ok := term.size(); ok {
			_ = e.cli.ContainerResize(live, box, container.ResizeOptions{Height: h, Width: w})
		}
	}
	if e.kind == "podman" {
		resize()
	}
	exited, waitErrs := e.cli.ContainerWait(live, box, container.WaitConditionNextExit)
	gone, goneErrs := e.cli.ContainerWait(live, gateway, container.WaitConditionNotRunning)
	if err := e.cli.ContainerStart(ctx, box, container.StartOptions{}); err != nil {
		return 127, startError(b, err)
	}
	resize()
	output := make(chan error, 1)
	go func() { output <- copyOutput(b, attach.Reader) }()
	if b.Stdin != nil {
		go func() {
			_, _ = io.Copy(attach.Conn, b.Stdin)
			_ = attach.CloseWrite()
		}()
	}
	stopped, kill, ends := ctx.Done(), (<-chan time.Time)(nil), 0
	for {
		select {
		case res := <-exited:
			select {
			case <-output:
			case <-time.After(5 * time.Second): // a grandchild may hold the stream open
			}
			if ctx.Err() != nil {
				return int(res.StatusCode), ctx.Err()
			}
			return int(res.StatusCode), nil
		case err := <-waitErrs:
			return 1, fmt.Errorf("wait for the box: the engine went away: %w", err)
		case <-gone:
			_ = e.cli.ContainerKill(live, box, "SIGKILL")
			return 1, errors.New("run the box: its gateway ended, so the box was ended too")
		case <-goneErrs:
			goneErrs = nil
		case sig := <-b.Signals:
			if s, ok := sig.(syscall.Signal); ok {
				if ends++; ends > 1 {
					s = syscall.SIGKILL // asked twice
				}
				_ = e.cli.ContainerKill(live, box, strconv.Itoa(int(s)))
			}
		case <-term.resized():
			resize()
		case <-stopped:
			stopped = nil
			_ = e.cli.ContainerKill(live, box, "SIGTERM")
			kill = time.After(stopGrace)
		case <-kill:
			_ = e.cli.ContainerKill(live, box, "SIGKILL")
		}
	}
}

func startError(b Box, err error) error {
	text := err.Error()
	if strings.Contains(text, "executable file") || strings.Contains(text, "no such file or directory") || strings.Contains(text, "not found") {
		return fmt.Errorf("run %s in the box: the image %s has no such command", b.Command[0], b.Image)
	}
	return fmt.Errorf("start the box: %w", err)
}

func copyOutput(b Box, from *bufio.Reader) error {
	if b.TTY {
		_, err := io.Copy(b.Stdout, from)
		return err
	}
	_, err := stdcopy.StdCopy(b.Stdout, b.Stderr, from)
	return err
}
