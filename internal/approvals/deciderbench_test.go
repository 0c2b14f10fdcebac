package approvals

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/proxy/approval"
)

// bench is a queue with a decider, and what became of its questions.
type bench struct {
	*approval.Queue
	t   *testing.T
	by  *Decider
	dir string

	mu    sync.Mutex
	rows  []string
	asked chan string // why each question is the owner's
	warns []string
}

// newBench returns a bench whose decider is a shell script, which finds its directory in $dir.
func newBench(t *testing.T, script string) *bench {
	t.Helper()
	b := &bench{t: t, dir: t.TempDir(), asked: make(chan string, 100)}
	program := filepath.Join(b.dir, "decide")
	must.Do(t, os.WriteFile(program, []byte("#!/bin/sh\n"+script+"\n"), 0o700))
	b.by = NewDecider(&Decider{Command: []string{program, "word"},
		Environ: NewEnviron([]string{"dir=" + b.dir, "PATH=/usr/bin:/bin"}),
		Ask:     func(_ approval.Question, why string) { b.asked <- why },
		Warn: func(err error) {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.warns = append(b.warns, err.Error())
		}})
	b.by.timeout = must.Patience(time.Minute)
	b.Queue = approval.New(approval.Options{Session: "S", Agent: "a", Opened: b.by.Opened,
		Record: func(_ context.Context, event audit.Event, _ *approval.Question, fields map[string]any) error {
			b.mu.Lock()
			defer b.mu.Unlock()
			text := strings.TrimPrefix(string(event), "approval.")
			for _, name := range []string{"surface", "for", "decider_reason"} {
				if v, ok := fields[name]; ok {
					text += fmt.Sprintf(" %s=%v", name, v)
				}
			}
			b.rows = append(b.rows, text)
			return nil
		}})
	return b
}

// run runs the decider until the test ends.
func (b *bench) run() {
	ctx, stop := context.WithCancel(b.t.Context())
	var all sync.WaitGroup
	all.Go(func() { b.by.Run(ctx, b.Queue) })
	b.t.Cleanup(func() { stop(); all.Wait() })
}

// post returns a request with a body.
func post(path, body string) approval.Request {
	return approval.Request{Subject: approval.Subject{Connector: "github://acme/x", Hash: "sha256:0", Tool: "x",
		Operation: "merge", Binding: "bearer/x/me"}, Method: "POST", Scheme: "https", Host: "x.example", Port: 443,
		Path: path, Body: []byte(body), BodyBytes: int64(len(body)), BodySHA256: approval.Digest([]byte(body))}
}

func (b *bench) ask(r approval.Request) *approval.Ticket {
	b.t.Helper()
	return must.Get(b.Ask(b.t.Context(), r))(b.t)
}

// decided waits until the decider has decided about a request, and returns the state then. It is pending if the
// question is the owner's.
func (b *bench) decided(ticket *approval.Ticket) approval.State {
	for until := time.Now().Add(must.Patience(time.Minute)); len(b.asked) == 0 && time.Now().Before(until); {
		if got := ticket.Wait(b.t.Context(), time.Now().Add(20*time.Millisecond)); got != approval.Pending {
			return got
		}
	}
	return ticket.Wait(b.t.Context(), time.Time{})
}

// left waits until a question is the owner's, and returns why. Its request is not decided.
func (b *bench) left(ticket *approval.Ticket) string {
	b.t.Helper()
	if got := b.decided(ticket); got != approval.Pending {
		b.t.Fatalf("it is %s", got)
	}
	select {
	case why := <-b.asked:
		return why
	default:
		b.t.Fatal("the owner is not asked")
		return ""
	}
}

// file waits for a file of the script's.
func (b *bench) file(name string) string {
	b.t.Helper()
	for until := time.Now().Add(must.Patience(time.Minute)); time.Now().Before(until); {
		if text, err := os.ReadFile(filepath.Join(b.dir, name)); err == nil && bytes.HasSuffix(text, []byte("\n")) {
			return strings.TrimSpace(string(text))
		}
		<-time.After(5 * time.Millisecond)
	}
	b.t.Fatalf("the decider wrote no %s", name)
	return ""
}

// ends waits until a process has ended.
func (b *bench) ends(pid string) {
	b.t.Helper()
	n := must.Get(strconv.Atoi(pid))(b.t)
	for until := time.Now().Add(must.Patience(time.Minute)); time.Now().Before(until); {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", n))
		if errors.Is(syscall.Kill(n, 0), syscall.ESRCH) || err != nil || bytes.Contains(stat, []byte(") Z ")) {
			return
		}
		<-time.After(5 * time.Millisecond)
	}
	b.t.Errorf("the process %d still runs", n)
}

func (b *bench) log(want ...string) {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	if got := strings.Join(b.rows, "; "); got != strings.Join(want, "; ") {
		b.t.Errorf("the rows are %q, want %q", got, want)
	}
}
