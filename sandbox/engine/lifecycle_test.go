package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
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

// respondingPodman returns a Podman that responds as mux does.
func respondingPodman(t *testing.T, mux http.Handler) *Engine {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "s")
	l := must.Get(net.Listen("unix", socket))(t)
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
		if e.Explain(&err); !errors.Is(err, ErrEngine) || err.Error() != want {
			t.Errorf("the engine has ended, and %v became %v", cause, err)
		}
	}
	other := errors.New("no such image")
	err = other
	if e.Explain(&err); err != other {
		t.Errorf("an error of another kind became %v", err)
	}
}
