package sandbox_test

import (
	"os"
	"reflect"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/creack/pty"
	"golang.org/x/term"

	"github.com/ALRubinger/aileron/sandbox"
)

func TestATerminalHasItsSizeAndIsRestored(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, e *sandbox.Engine) {
		person, tty, err := pty.Open()
		if err != nil {
			t.Fatal(err)
		}
		defer person.Close()
		defer tty.Close()
		if err := pty.Setsize(tty, &pty.Winsize{Rows: 41, Cols: 121}); err != nil {
			t.Fatal(err)
		}
		before, err := term.GetState(int(tty.Fd()))
		if err != nil {
			t.Fatal(err)
		}
		seen := &screen{changed: make(chan struct{}, 1)}
		go func() {
			buf := make([]byte, 4096)
			for {
				n, err := person.Read(buf)
				if err != nil {
					return
				}
				seen.add(buf[:n])
			}
		}()
		// The size may come a moment after the program on Docker.
		b, _, _ := box(t, idleGateway, "sh", "-c", `
			until [ "$(stty size)" = "41 121" ]; do sleep 0.1; done; echo right size
			read line; echo "got $line"
			until [ "$(stty size)" = "30 90" ]; do sleep 0.1; done; echo new size; exit 3`)
		b.TTY, b.Stdin, b.Stdout, b.Stderr = true, tty, tty, tty
		go func() {
			seen.wait("right size")
			_, _ = person.WriteString("hello\r")
			seen.wait("got hello")
			_ = pty.Setsize(tty, &pty.Winsize{Rows: 30, Cols: 90})
			_ = syscall.Kill(os.Getpid(), syscall.SIGWINCH) // the kernel's, to those on the terminal
		}()
		if code, err := e.Run(t.Context(), b); code != 3 || err != nil {
			t.Errorf("Run = %d, %v; want 3\n%s", code, err, seen.text())
		}
		after, err := term.GetState(int(tty.Fd()))
		if err != nil || !reflect.DeepEqual(before, after) {
			t.Errorf("the terminal is %+v, was %+v, %v", after, before, err)
		}
	})
}

// screen is what a person sees.
type screen struct {
	mu      sync.Mutex
	said    strings.Builder
	changed chan struct{}
}

func (s *screen) add(p []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.said.Write(p)
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

func (s *screen) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.said.String()
}

func (s *screen) wait(word string) {
	for !strings.Contains(s.text(), word) {
		<-s.changed
	}
}

func TestASweepLeavesTheSandboxesOfALivingProcess(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, e *sandbox.Engine) {
		b, _, _ := box(t, idleGateway, "sh", "-c", "trap 'exit 5' USR1; echo up; while :; do sleep 0.1; done")
		signals, up := make(chan os.Signal, 1), &notice{word: "up", said: make(chan struct{})}
		b.Signals, b.Stdout = signals, up
		swept := make(chan struct{})
		go func() {
			defer close(swept)
			<-up.said
			sweep(t, e)
			signals <- syscall.SIGUSR1
		}()
		if code, err := e.Run(t.Context(), b); code != 5 || err != nil {
			t.Errorf("Run = %d, %v; want 5", code, err)
		}
		<-swept
	})
}
