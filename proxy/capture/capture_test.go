package capture

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/audit/export"
	"github.com/ALRubinger/aileron/e2e/must"
)

// TestMain is also a process that captures until it is killed.
func TestMain(m *testing.M) {
	if path := os.Getenv("CAPTURE_UNTIL_KILLED"); path != "" {
		f, err := Open(path, Options{Version: "test"})
		if err != nil {
			panic(err)
		}
		fmt.Println("ready")
		for i := 0; ; i++ {
			record(f, i, 1<<(i%20))
		}
	}
	if dir := os.Getenv("CAPTURE_UNTIL_FULL"); dir != "" {
		if err := captureUntilFull(dir, os.Getenv("CAPTURE_MODE")); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

func record(f *File, i, size int) {
	r, _ := http.NewRequest(http.MethodGet, "https://x.example/", http.NoBody)
	r.RequestURI = fmt.Sprintf("/?n=%d", i)
	e := f.Begin(r)
	e.Respond(&http.Response{Status: "200 Fine", Header: http.Header{}})
	e.Received(bytes.Repeat([]byte("x"), size))
	e.End(Outcome{Row: audit.Row{Event: audit.EventProxyProxied, Host: "x.example", Status: 200}})
}

type document struct {
	Log struct {
		Entries []export.HAREntry
		Comment string
	}
}

func read(t *testing.T, path string) document {
	t.Helper()
	text := must.Get(os.ReadFile(path))(t)
	var d document
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatalf("%v at the end of %d bytes: …%q", err, len(text), text[max(0, len(text)-80):])
	}
	return d
}

func TestAKilledProcessLeavesACompleteDocument(t *testing.T) {
	most := 0
	for i := 0; i < 30 || most == 0 && i < 300; i++ { // later and later, on a machine where nothing was recorded yet
		path := filepath.Join(t.TempDir(), "x.har")
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "CAPTURE_UNTIL_KILLED="+path)
		out := must.Get(cmd.StdoutPipe())(t)
		must.Do(t, cmd.Start())
		_, _ = out.Read(make([]byte, 16))
		kill := time.NewTimer(time.Duration(1+7*i) * time.Millisecond)
		<-kill.C
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		most = max(most, len(read(t, path).Log.Entries))
	}
	if most == 0 {
		t.Error("no process recorded anything")
	}
}

func TestTheFieldsOfAResponseAreInItsEntry(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.har")
	f := must.Get(Open(path, Options{Version: "test"}))(t)
	for _, fields := range []http.Header{{}, {"Content-Type": {"text/plain"}, "Location": {"/elsewhere"}}} {
		r := must.Get(http.NewRequestWithContext(t.Context(), http.MethodGet, "https://x.example/", http.NoBody))(t)
		e := f.Begin(r)
		e.Respond(&http.Response{Status: "200 OK", Header: fields})
		e.End(Outcome{Row: audit.Row{Event: audit.EventProxyProxied, Host: "x.example", Status: 200}})
	}
	must.Do(t, f.Close())
	entries := read(t, path).Log.Entries
	if len(entries) != 2 {
		t.Fatalf("%d entries, want 2", len(entries))
	}
	// HAR 1.2: the list is required, and null is no list.
	if got := entries[0].Response.Headers; got == nil || len(got) != 0 {
		t.Errorf("without a field: %#v, want an empty list", got)
	}
	got := entries[1].Response
	if len(got.Headers) != 2 || got.RedirectURL != "/elsewhere" || got.Content.MimeType != "text/plain" {
		t.Errorf("with two fields: %+v", got)
	}
}

// RFC 6455 section 5.5: a control frame may come between the pieces of a message.
func TestControlFramesAreNotPartsOfMessages(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.har")
	f := must.Get(Open(path, Options{Version: "test"}))(t)
	e := f.Begin(must.Get(http.NewRequestWithContext(t.Context(), http.MethodGet, "https://x.example/", http.NoBody))(t))
	add := e.Messages()
	const text, binary, ping, closing = 1, 2, 9, 8
	add(true, text, []byte("one "), false)
	add(true, ping, []byte("ping"), true)
	add(true, 0, []byte("message"), true)
	add(false, binary, []byte("other"), true)
	add(false, closing, []byte("bye"), true)
	e.Respond(&http.Response{StatusCode: http.StatusSwitchingProtocols, Status: "101 Fine", Header: http.Header{}})
	e.End(Outcome{Row: audit.Row{Event: audit.EventProxyProxied, Host: "x.example", Status: 101}})
	must.Do(t, f.Close())
	var got []string
	for _, m := range read(t, path).Log.Entries[0].Messages {
		got = append(got, fmt.Sprint(m.Type, " ", m.Opcode, " ", m.Data))
	}
	if want := []string{"send 1 one message", "receive 2 b3RoZXI="}; !slices.Equal(got, want) {
		t.Errorf("the messages are %q, want %q", got, want)
	}
}

// A write that was cut short is never in the file that has the name.
func TestAHalfWrittenEntryIsNotShown(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.har")
	f := must.Get(Open(path, Options{Version: "test"}))(t)
	defer f.Close()
	record(f, 1, 10)
	waitFor(t, func() bool { return len(read(t, path).Log.Entries) == 1 })
	hidden := must.Get(os.OpenFile(f.disk.next, os.O_WRONLY|os.O_APPEND, 0))(t)
	_, _ = hidden.WriteString(`,{"startedDate`)
	_ = hidden.Close()
	read(t, path)
}

func waitFor(t *testing.T, done func() bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-tick.C:
		case <-t.Context().Done():
			t.Fatal("it did not happen")
		}
	}
}

func TestACaptureIsANewFileOfItsOwner(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "x.har")
	must.Do(t, os.WriteFile(filepath.Join(dir, ".x.har.next"), []byte("stale"), 0o600))
	f := must.Get(Open(path, Options{Version: "test", writeWait: 5 * time.Minute}))(t)
	if info, err := os.Stat(path); err != nil || info.Mode() != 0o600 {
		t.Errorf("the file is %v, %v", info.Mode(), err)
	}
	if _, err := Open(path, Options{}); err == nil || !strings.Contains(err.Error(), "exists") {
		t.Errorf("a second capture to the file: %v", err)
	}
	if d := read(t, path); len(d.Log.Entries) != 0 {
		t.Errorf("an empty capture is %+v", d)
	}
	for i := range 300 {
		record(f, i, 100)
	}
	must.Do(t, f.Close())
	d := read(t, path)
	if len(d.Log.Entries) != 300 {
		t.Fatalf("%d entries", len(d.Log.Entries))
	}
	for i, e := range d.Log.Entries {
		if want := fmt.Sprintf("https://x.example/?n=%d", i); e.Request.URL != want || e.Response.StatusText != "Fine" {
			t.Fatalf("entry %d is of %s", i, e.Request.URL)
		}
	}
	if names, _ := os.ReadDir(dir); len(names) != 1 {
		t.Errorf("%d files are left", len(names))
	}
	if f.held.Load() != 0 {
		t.Errorf("%d bytes are held", f.held.Load())
	}
}

func TestACaptureEndsAtItsSizeWithAWarning(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.har")
	warned := make(chan error, 10)
	f, err := Open(path, Options{Version: "test", maxFile: 4 << 20, Warn: func(err error) { warned <- err }})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 100 {
		record(f, i, 100<<10)
	}
	must.Do(t, f.Close())
	d := read(t, path)
	if n := len(d.Log.Entries); n == 0 || n > 40 || !strings.Contains(d.Log.Comment, "ended at 4 MiB") {
		t.Errorf("%d entries, and the comment %q", n, d.Log.Comment)
	}
	if err := <-warned; !errors.Is(err, errFull) || len(warned) > 0 {
		t.Errorf("warned of %v, and %d times more", err, len(warned))
	}
	if f.Begin(&http.Request{}) != nil {
		t.Error("a capture that has ended begins another exchange")
	}
}

func TestAFailedWriteEndsTheCaptureOnly(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.har")
	warned := make(chan error, 10)
	f := must.Get(Open(path, Options{Version: "test", Warn: func(err error) { warned <- err }}))(t)
	record(f, 1, 10)
	waitFor(t, func() bool { return len(read(t, path).Log.Entries) == 1 })
	if err := os.Remove(f.disk.next); err != nil { // the names cannot be exchanged any more
		t.Fatal(err)
	}
	for i := range 20 {
		record(f, i, 10)
	}
	_ = f.Close()
	if len(read(t, path).Log.Entries) != 1 || len(warned) != 1 {
		t.Errorf("%d warnings", len(warned))
	}
}

// Exchanges that hold much are cut, and never wait.
func TestMemoryIsBounded(t *testing.T) {
	f := must.Get(Open(filepath.Join(t.TempDir(), "x.har"), Options{Version: "test"}))(t)
	defer f.Close()
	var open []*Exchange
	for range 100 {
		e := f.Begin(&http.Request{})
		e.Received(make([]byte, MaxBody+1))
		open = append(open, e)
	}
	if f.held.Load() > maxHeld {
		t.Errorf("%d bytes are held", f.held.Load())
	}
	if last := &open[99].down; last.cut == "" || last.kept != 0 {
		t.Errorf("the last one holds %d bytes, cut %q", last.kept, last.cut)
	}
}

func TestNoCaptureCostsNothing(t *testing.T) {
	var f *File
	r := &http.Request{}
	n := testing.AllocsPerRun(100, func() {
		e := f.Begin(r)
		e.Received(nil)
		e.Respond(nil)
		e.End(Outcome{})
	})
	if n != 0 {
		t.Errorf("%v allocations", n)
	}
}
