package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/internal/hint"
)

// Podman reports the end of a container only when a further process has cleaned up behind it.
func TestTheEndOfAProcessIsTheContainersEnd(t *testing.T) {
	for name, c := range map[string]struct {
		statuses []string // what the engine reports, one after the other; the last from then on
		over     bool     // the process has ended
		want     Exit     // the code of the engine's own report is 3
	}{
		"at once": {[]string{"stopped"}, true, Exit{Code: 7, State: &State{OOMKilled: true}}},
		"a moment later": {[]string{"running", "stopping", "exited"}, true,
			Exit{Code: 7, State: &State{OOMKilled: true}}},
		"it is removed":         {[]string{"removing"}, true, Exit{Code: 3}},
		"its process is unseen": {[]string{"stopped"}, false, Exit{Code: 3}},
	} {
		t.Run(name, func(t *testing.T) {
			var asked atomic.Int32
			ended := make(chan struct{})
			mux := http.NewServeMux()
			mux.HandleFunc("GET /{version}/containers/it/json", func(w http.ResponseWriter, _ *http.Request) {
				i := min(int(asked.Add(1)), len(c.statuses)) - 1
				fmt.Fprintf(w, `{"State":{"Status":%q,"Running":%v,"ExitCode":7,"OOMKilled":true}}`, c.statuses[i],
					c.statuses[i] == "running")
			})
			mux.HandleFunc("POST /v4.0.0/libpod/containers/it/wait", func(w http.ResponseWriter, r *http.Request) {
				if c.want.State != nil { // it cleans up until the test is over
					select {
					case <-r.Context().Done():
					case <-ended:
					}
				}
				fmt.Fprint(w, "3")
			})
			e := respondingPodman(t, mux)
			defer close(ended)
			exits, faults := e.Wait(t.Context(), &Container{ID: "it", over: c.over})
			select {
			case got := <-exits:
				if got.Code != c.want.Code || (got.State == nil) != (c.want.State == nil) ||
					got.State != nil && !got.State.OOMKilled {
					t.Errorf("Wait = %+v, want %+v", got, c.want)
				}
			case err := <-faults:
				t.Errorf("Wait = %v, want %+v", err, c.want)
			}
		})
	}
}

// A command that has ended when its start responds is asked for once.
func TestAnEndThatTheHoldHasSeenIsKnown(t *testing.T) {
	var asked atomic.Int32
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{version}/containers/it/json", func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		fmt.Fprint(w, `{"State":{"Status":"stopped","ExitCode":7}}`)
	})
	mux.HandleFunc("POST /v4.0.0/libpod/containers/it/wait", func(_ http.ResponseWriter, r *http.Request) {
		<-r.Context().Done() // it cleans up for long
	})
	e, c := respondingPodman(t, mux), &Container{ID: "it"}
	if e.Hold(t.Context(), c) || c.Held() {
		t.Error("a container that has ended runs")
	}
	exits, faults := e.Wait(t.Context(), c)
	select {
	case got := <-exits:
		if got.Code != 7 || got.State == nil {
			t.Errorf("Wait = %+v, want code 7", got)
		}
	case err := <-faults:
		t.Error(err)
	}
	if n := asked.Load(); n != 1 {
		t.Errorf("Podman is asked %d times", n)
	}
}

// One list has the containers with a label and the files that have lost theirs; where it fails, there is another.
func TestPodmanListsContainersAndOrphanedFiles(t *testing.T) {
	var fails atomic.Bool
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v4.0.0/libpod/containers/json", func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Query().Get("external") == "":
			fmt.Fprint(w, `[{"Id":"ours","Labels":{"session":"1","role":"box"}}]`)
		case fails.Load():
			w.WriteHeader(http.StatusInternalServerError)
			fmt.Fprint(w, `{"message":"no such container"}`)
		default:
			fmt.Fprint(w, `[{"Id":"ours","Labels":{"session":"1","role":"box"}}, {"Id":"another's","Names":["aileron-x"]},
				{"Id":"orphan","State":"storage","Names":["aileron-old"],"Created":"2020-01-01T00:00:00Z"},
				{"Id":"another's files","State":"storage","Names":["buildah"],"Created":"2020-01-01T00:00:00Z"},
				{"Id":"just made","State":"storage","Names":["aileron-new"],"Created":"2999-01-01T00:00:00Z"}]`)
		}
	})
	e := respondingPodman(t, mux)
	for want, failing := range map[string]bool{"ours orphan": false, "ours": true} {
		fails.Store(failing)
		list, err := e.List(t.Context(),
			Filter{Label: "session", Role: "role", NamePrefix: "aileron-", OrphanGrace: time.Minute})
		var ids []string
		for _, c := range list {
			ids = append(ids, c.ID)
		}
		if got := strings.Join(ids, " "); err != nil || got != want {
			t.Errorf("List = %q, %v, want %q", got, err, want)
		}
	}
}

// While the process of a container runs that this machine sees, Podman is not asked for its end.
func TestPodmanIsNotAskedWhileAProcessRuns(t *testing.T) {
	for name, c := range map[string]struct {
		breaks bool // the connection, while the process runs
		code   string
		want   int
		err    string
	}{
		"it ends":                     {code: "3", want: 3},
		"it is removed":               {code: `{"message":"no such container"}`, err: "podman: no such container"},
		"Podman waits for no request": {breaks: true, code: "3", want: 3},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), "cat")
			in := must.Get(cmd.StdinPipe())(t)
			must.Do(t, cmd.Start())
			end := sync.OnceFunc(func() { _ = in.Close(); _ = cmd.Wait() })
			defer end()
			reads := make(chan read, 100)
			mux := http.NewServeMux()
			mux.HandleFunc("GET /{version}/containers/it/json", func(w http.ResponseWriter, _ *http.Request) {
				fmt.Fprint(w, `{"State":{"Status":"removing"}}`)
			})
			mux.HandleFunc("POST /v4.0.0/libpod/containers/it/wait", func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Query().Get("interval") != "50ms" || len(r.URL.Query()["condition"]) != 2 {
					t.Errorf("it is asked for %s", r.URL)
				}
				fmt.Fprint(w, c.code)
			})
			e := respondingPodman(t, mux, reads)
			fd := must.Get(unix.PidfdOpen(cmd.Process.Pid, 0))(t)
			box := &Container{ID: "it", process: &pidfd{fd}}
			defer box.process.release()
			exits, faults := e.Wait(t.Context(), box)
			var request read
			for !strings.HasSuffix(request.text, "\r\n") {
				more := <-reads
				request = read{more.conn, request.text + more.text}
			}
			if strings.HasSuffix(request.text, "\r\n\r\n") {
				t.Errorf("Podman is asked while the process runs: %q", request.text)
			}
			if c.breaks {
				_ = request.conn.Close()
			} else {
				end()
			}
			select {
			case got := <-exits:
				if got.Code != c.want || got.State != nil || c.err != "" {
					t.Errorf("Wait = %+v, want %d %s", got, c.want, c.err)
				}
			case err := <-faults:
				if c.err == "" || err.Error() != c.err {
					t.Errorf("Wait = %v, want %d %q", err, c.want, c.err)
				}
			}
		})
	}
}

// A process that is waited for keeps no thread, and its wait ends with its context.
func TestAWaitForAProcessEndsWithItsContext(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "cat")
	in := must.Get(cmd.StdinPipe())(t)
	must.Do(t, cmd.Start())
	fd := must.Get(unix.PidfdOpen(cmd.Process.Pid, 0))(t)
	must.Do(t, unix.SetNonblock(fd, true))
	f := os.NewFile(uintptr(fd), "pidfd")
	defer f.Close()
	ctx, cancel := context.WithCancel(t.Context())
	results := make(chan bool)
	go func() { results <- waitReadable(ctx, f) }()
	cancel()
	if <-results {
		t.Error("a process that runs is said to have ended")
	}
	must.Do(t, f.SetReadDeadline(time.Time{}))
	go func() { results <- waitReadable(t.Context(), f) }()
	_ = in.Close()
	if !<-results {
		t.Error("the end of a process is not seen")
	}
	_ = cmd.Wait()
}

// A container may end between the moment in which Podman looks at it and the one in which it is killed.
func TestAContainerThatEndsMeanwhileIsRemoved(t *testing.T) {
	for name, remove := range map[string]func(*Engine, context.Context, string) error{
		"Remove": (*Engine).Remove, "RemoveOnce, as a sweep does": (*Engine).RemoveOnce,
	} {
		t.Run(name, func(t *testing.T) {
			var asked atomic.Int32
			mux := http.NewServeMux()
			mux.HandleFunc("DELETE /{version}/containers/it", func(w http.ResponseWriter, _ *http.Request) {
				if asked.Add(1) == 1 {
					w.WriteHeader(http.StatusInternalServerError)
					fmt.Fprint(w, `{"message":"cannot remove container it as it could not be stopped: `+
						`sending SIGKILL to container it: container state improper: stopped"}`)
					return
				}
				w.WriteHeader(http.StatusNoContent)
			})
			if err := remove(respondingPodman(t, mux), t.Context(), "it"); err != nil || asked.Load() != 2 {
				t.Errorf("it returns %v after %d calls, want none after the second", err, asked.Load())
			}
		})
	}
}

// read is what a server has read from a connection.
type read struct {
	conn net.Conn
	text string
}

// readConn is a connection that reports what is read.
type readConn struct {
	net.Conn
	reads chan<- read
}

func (c readConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 {
		c.reads <- read{c.Conn, string(p[:n])}
	}
	return n, err
}

// readListener accepts connections that report what is read.
type readListener struct {
	net.Listener
	reads chan<- read
}

func (l readListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return readConn{conn, l.reads}, nil
}

// respondingPodman returns a Podman that responds as mux does. reads, if there is one, gets what it reads.
func respondingPodman(t *testing.T, mux http.Handler, reads ...chan<- read) *Engine {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "s")
	l := must.Get(net.Listen("unix", socket))(t)
	if len(reads) > 0 {
		l = readListener{l, reads[0]}
	}
	server := &httptest.Server{Listener: l, Config: &http.Server{Handler: mux}}
	server.Start()
	t.Cleanup(server.Close)
	cli, p, err := dial("podman", "unix://"+socket, Patience{})
	if err != nil {
		t.Fatal(err)
	}
	e := &Engine{dialect: podman{}, cli: cli, liveness: p}
	t.Cleanup(e.Close)
	return e
}

// A connection that breaks is named as the engine's end only where the engine
// has ended.
func TestAnEngineThatHasEndedIsNamed(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	cli, p, err := dial("docker", "tcp://"+strings.TrimPrefix(server.URL, "http://"), Patience{})
	if err != nil {
		t.Fatal(err)
	}
	e := &Engine{dialect: docker{}, cli: cli, liveness: p}
	defer e.Close()
	broken := []error{io.EOF, io.ErrUnexpectedEOF, syscall.ECONNRESET, syscall.EPIPE}
	for _, cause := range broken {
		err := fmt.Errorf("make a container: %w", cause)
		if e.Explain(&err); !errors.Is(err, cause) {
			t.Errorf("the engine lives, and %v became %v", cause, err)
		}
	}
	server.Close()
	for _, cause := range broken {
		err := fmt.Errorf("make a container: %w", cause)
		const want = "prepare the sandbox: docker does not respond on its socket any more"
		if e.Explain(&err); !errors.Is(err, ErrEngine) || err.Error() != want || hint.Of(err) != "start docker again" {
			t.Errorf("the engine has ended, and %v became %v (hint: %s)", cause, err, hint.Of(err))
		}
	}
	other := errors.New("no such image")
	err = other
	if e.Explain(&err); err != other {
		t.Errorf("an error of another kind became %v", err)
	}
}
