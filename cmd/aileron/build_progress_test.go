package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"

	"github.com/ALRubinger/aileron/cmd/aileron/internal/cli"
	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/internal/console"
	"github.com/ALRubinger/aileron/internal/home"
)

func TestABuildIsShownAsItIsWhereThereIsNoTerminal(t *testing.T) {
	var errs bytes.Buffer
	p := (cli.New(&console.Console{Stderr: &errs},
		&home.Dir{})).NewBuildProgress("")
	fmt.Fprintf(p, "aileron: building x\nSTEP 1\n")
	p.BuildEnded(errors.New("failed"))
	if got, want := errs.String(), "aileron: building x\nSTEP 1\n"; got != want {
		t.Errorf("stderr is %q, want %q", got, want)
	}
}

// screen returns what f writes to a terminal of 40 columns.
func screen(t *testing.T, f func(p *console.BuildProgress)) string {
	t.Helper()
	return screenWithLog(t, "", f)
}

// screenWithLog is screen, with the file that a failed build is kept in.
func screenWithLog(t *testing.T, log string, f func(p *console.BuildProgress)) string {
	t.Helper()
	controller, terminal, err := pty.Open()
	if err != nil {
		t.Skip("there are no terminals here: ", err)
	}
	defer controller.Close()
	must.Do(t, pty.Setsize(controller, &pty.Winsize{Rows: 10, Cols: 40}))
	a := cli.New(&console.Console{Stderr: terminal}, &home.Dir{Environ: func(string) string { return "xterm" }})
	a.Child.Stderr = terminal
	p := a.NewBuildProgress(log)
	start := time.Unix(0, 0)
	p.Now = func() time.Time { start = start.Add(time.Second); return start }
	f(p)
	fmt.Fprint(terminal, "END")
	var seen strings.Builder
	for buf := make([]byte, 4096); !strings.Contains(seen.String(), "END"); {
		n, err := controller.Read(buf)
		if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, os.ErrClosed) {
			t.Fatal(err)
		}
		seen.Write(buf[:n])
	}
	_ = terminal.Close()
	return seen.String()
}

// What a message would be written behind is cleared first, and no line is as wide as the terminal, which would wrap it.
func TestAStatusIsOneLineThatAMessageReplaces(t *testing.T) {
	got := screen(t, func(p *console.BuildProgress) {
		f := p.Console.Transfer("github://acme/" + strings.Repeat("x", 100))
		f.Notice("trying again")
		f.Progress(2<<20, 4<<20) // too soon to be shown
		p.Console.Infof("done")
	})
	want := "\r" + ("aileron: fetching github://acme/" + strings.Repeat("x", 100))[:39] + "\x1b[K" +
		"\r\x1b[Kaileron: trying again\r\ndone\r\nEND"
	if got != want {
		t.Errorf("the terminal shows %q, want %q", got, want)
	}
}

func TestAStatusIsSilentWhereThereIsNoTerminal(t *testing.T) {
	var errs bytes.Buffer
	a := cli.New(&console.Console{Stderr: &errs}, &home.Dir{})
	a.Child.Stderr = &errs
	f := a.Transfer("github://acme/tracker@1.0.0")
	f.Progress(1<<20, 2<<20)
	if err := a.ShowDuring(t.Context(), "aileron: working", func() error { return io.EOF }); !errors.Is(err, io.EOF) {
		t.Errorf("the error of the work is %v", err)
	}
	if errs.Len() > 0 {
		t.Errorf("stderr is %q", errs.String())
	}
}

func TestABuildIsOneLineOnATerminalAndItsEndStaysIfItFails(t *testing.T) {
	output := "aileron: building x with podman (once)\nSTEP 1\n"
	for i := range 50 {
		output += fmt.Sprintf("Unpacking %d %s\n", i, strings.Repeat("x", 100))
	}
	output += "\x1b[2Jbad escape\nE: Unable to locate"
	good := screen(t, func(p *console.BuildProgress) {
		_, _ = io.WriteString(p, output)
		p.BuildEnded(nil)
	})
	for line := range strings.SplitSeq(good, "\r") {
		if n := len(strings.ReplaceAll(line, "\x1b[K", "")); n > 40 {
			t.Errorf("a line has %d columns, and the terminal 40: %q", n, line)
		}
	}
	if !strings.Contains(good, "aileron: building (1s)") || strings.Contains(good, "\n") ||
		!strings.HasSuffix(good, "\r\x1b[KEND") || strings.Contains(good, "\x1b[2J") {
		t.Errorf("a build shows %q; want one line that is cleared", good)
	}
	bad := screen(t, func(p *console.BuildProgress) {
		_, _ = io.WriteString(p, output+" package nosuch\n")
		p.BuildEnded(errors.New("exit 100"))
	})
	if !strings.Contains(bad, "E: Unable to locate package nosuch\r\n") || strings.Contains(bad, "Unpacking 20 ") ||
		!strings.Contains(bad, "Unpacking 40 ") || strings.Contains(bad, "\x1b[2J") {
		t.Errorf("a failed build shows %q; want its last %d lines", bad, console.MaxBuildLines)
	}
}

// On a terminal the rest of the output of a build that failed is in a file, without escape sequences.
func TestTheOutputOfAFailedBuildIsKept(t *testing.T) {
	log := console.BuildLog(t.TempDir())
	build := func(text string, err error) string {
		return screenWithLog(t, log, func(p *console.BuildProgress) {
			_, _ = io.WriteString(p, text)
			p.BuildEnded(err)
		})
	}
	build("STEP 1\n", nil)
	if _, err := os.Stat(log); !os.IsNotExist(err) {
		t.Errorf("the output of a build that ended well is kept: %v", err)
	}
	first := "STEP 1\n" + strings.Repeat("line\n", 100) + "\x1b[2Jlast"
	shown := strings.ReplaceAll(build(first, errors.New("exit 1")), "\r\n", "")
	if got := string(must.Get(os.ReadFile(log))(t)); got != strings.ReplaceAll(first, "\x1b", `\u001b`) {
		t.Errorf("the file has %q", got)
	}
	if info := must.Get(os.Stat(log))(t); info.Mode().Perm() != 0o600 {
		t.Errorf("its mode is %v", info.Mode())
	}
	if !strings.Contains(strings.Join(strings.Fields(shown), ""), "thewholeoutputofthebuildisin") {
		t.Errorf("the terminal shows %q", shown)
	}
	// The end of it, if there is more.
	build(strings.Repeat(strings.Repeat("x", 1023)+"\n", 10<<10)+strings.Repeat("the end\n", 20), errors.New("exit 1"))
	if got := must.Get(os.ReadFile(log))(t); len(got) != 4<<20 || !strings.HasSuffix(string(got), "the end\n") {
		t.Errorf("the file of a long output has %d bytes, which end with %q", len(got), got[len(got)-20:])
	}
}
