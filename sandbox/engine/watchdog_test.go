package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// forever is a call that the engine never answers.
func forever(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }

func TestAnEngineIsWaitedForAsLongAsItLives(t *testing.T) {
	answers := func(context.Context) error { return nil }
	silent := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	refuses := func(context.Context) error { return errors.New("connection refused") }
	for _, c := range []struct {
		name string
		ping func(context.Context) error
		p    Patience
		said string
		min  time.Duration // it is not given up before
		want string
	}{
		{"it answers", answers, Patience{}, "", DefaultLimit, "podman responds, but makes no progress: " +
			"waited 2m0s for it to make a container, and [sandbox] engine_timeout"},
		{"it answers, and little is allowed", answers, Patience{Limit: 7 * time.Second}, "", 7 * time.Second,
			"waited 7s for it to make a container"},
		{"it does not respond", silent, Patience{}, "", time.Minute, "podman does not respond: " +
			"waited 1m0s for it to make a container, and for 1m0s there was no sign of life"},
		{"it refuses connections", refuses, Patience{}, "", time.Minute,
			"no sign of life; its last error: connection refused"},
		{"it logged the cause", refuses, Patience{}, "no space left on device", time.Minute,
			"its last error: no space left on device"},
		{"it has not opened its socket, and is no process", nil, Patience{}, "", time.Minute, "no sign of life"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := &liveness{kind: "podman", patience: c.p, ping: c.ping, said: func() string { return c.said }}
				began := time.Now()
				err := p.await(t.Context(), "make a container", forever)
				if waited := (*WaitError)(nil); !errors.As(err, &waited) || !strings.Contains(err.Error(), c.want) {
					t.Errorf("await = %v, want a WaitError with %q", err, c.want)
				}
				if took := time.Since(began); took < c.min {
					t.Errorf("given up after %v, want at least %v", took, c.min)
				}
			})
		})
	}
}

func TestASignOfLifeNowAndThenIsEnough(t *testing.T) {
	slowly := func(ctx context.Context) error {
		select {
		case <-time.After(40 * time.Second):
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	synctest.Test(t, func(t *testing.T) {
		p := &liveness{kind: "docker", ping: slowly}
		err := p.await(t.Context(), "start a container", func(ctx context.Context) error {
			select {
			case <-time.After(DefaultLimit - 10*time.Second):
				return nil
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		})
		if err != nil {
			t.Errorf("await = %v, want the call's own end", err)
		}
	})
}

// A terminal that Ctrl-S holds up, as aileron that Ctrl-Z stops, sees nothing.
func TestATimeWithoutALookIsNoSilence(t *testing.T) {
	for range 32 { // of a look and a ping's answer that wait, either may come first
		synctest.Test(t, func(t *testing.T) {
			held := false
			report := func(w Wait) {
				if !held {
					held = true
					<-time.After(10 * time.Minute)
				}
			}
			p := &liveness{kind: "podman", patience: Patience{Report: report}, ping: func(context.Context) error { return nil }}
			err := p.await(t.Context(), "start a container", func(ctx context.Context) error {
				select {
				case <-time.After(11 * time.Minute):
					return nil
				case <-ctx.Done():
					return context.Cause(ctx)
				}
			})
			if err != nil {
				t.Fatalf("await = %v, want the call's own end", err)
			}
		})
	}
}

func TestAProcessThatStartsIsASignOfLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &liveness{kind: "podman", pid: os.Getpid(), patience: Patience{Silent: 3 * time.Second, Limit: time.Minute}}
		err := p.await(t.Context(), "start its service", forever)
		if waited := (*WaitError)(nil); !errors.As(err, &waited) || !waited.Lives || waited.Waited < time.Minute {
			t.Errorf("await = %v, want it to wait for the whole limit", err)
		}
	})
}

func TestAStoppedProcessIsNamed(t *testing.T) {
	cmd := exec.Command("sleep", "600")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	if err := cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	var status syscall.WaitStatus
	if _, err := syscall.Wait4(cmd.Process.Pid, &status, syscall.WUNTRACED, nil); err != nil || !status.Stopped() {
		t.Fatalf("the process is not stopped: %v, %v", status, err)
	}
	synctest.Test(t, func(t *testing.T) {
		p := &liveness{kind: "podman", pid: cmd.Process.Pid}
		err := p.await(t.Context(), "start its service", forever)
		want := fmt.Sprintf("its process %d is stopped (SIGSTOP)", cmd.Process.Pid)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("await = %v, want %q", err, want)
		}
	})
}

func TestALostEngineIsGivenUpSooner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dead := true
		p := &liveness{kind: "docker", ping: func(context.Context) error {
			if dead {
				return errors.New("no answer")
			}
			return nil
		}}
		waits := func() time.Duration {
			began := time.Now()
			_ = p.await(t.Context(), "remove a container", forever)
			return time.Since(began)
		}
		first, second := waits(), waits()
		dead = false
		if third := waits(); first < time.Minute || second > lostTime+time.Second || third < DefaultLimit {
			t.Errorf("waited %v, then %v, and %v once it answers again", first, second, third)
		}
	})
}

func TestAWaitIsReportedWhenItTakesLong(t *testing.T) {
	for _, c := range []struct {
		name  string
		takes time.Duration
		muted bool
		want  []string
	}{
		{"quick", 1500 * time.Millisecond, false, nil},
		{"long", 3500 * time.Millisecond, false, []string{"make a container 2s", "make a container 3s", "over"}},
		{"while a program has the terminal", 3500 * time.Millisecond, true, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var got []string
				report := func(w Wait) {
					line := fmt.Sprintf("%s %v", w.Step, w.For)
					if w.Over {
						line = "over"
					}
					got = append(got, line)
				}
				p := &liveness{kind: "podman", patience: Patience{Report: report}, ping: func(context.Context) error { return nil }}
				p.muted.Store(c.muted)
				call := func(context.Context) error { <-time.After(c.takes); return nil }
				if err := p.await(t.Context(), "make a container", call); err != nil {
					t.Fatal(err)
				}
				if !slices.Equal(got, c.want) {
					t.Errorf("reported %q, want %q", got, c.want)
				}
			})
		})
	}
}

func TestACancelledWaitEndsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		p := &liveness{kind: "podman", ping: func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }}
		began := time.Now()
		time.AfterFunc(2500*time.Millisecond, cancel)
		err := p.await(ctx, "make a container", forever)
		if !errors.Is(err, context.Canceled) || time.Since(began) != 2500*time.Millisecond {
			t.Errorf("await = %v after %v, want context.Canceled with the cancellation", err, time.Since(began))
		}
	})
}
