package main

import (
	"io"
	"strings"
	"testing"

	"github.com/creack/pty"
	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/cmd/aileron/internal/cli"
	sessioncmd "github.com/ALRubinger/aileron/cmd/aileron/internal/session"
	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/internal/console"
	"github.com/ALRubinger/aileron/internal/home"
	"github.com/ALRubinger/aileron/internal/session"
)

// Lines end between words, below where they begin, and never within a command that fits on a line.
func TestAMessageFitsItsTerminal(t *testing.T) {
	for _, c := range []struct {
		line    string
		columns int
		want    string
	}{
		{"aileron: as long as it is", 0, "aileron: as long as it is"},
		{"aileron: short", 40, "aileron: short"},
		{"aileron: a message that is longer than its terminal", 40,
			"aileron: a message that is longer than\n  its terminal"},
		{"  refused     1 × POST registry.example/-/npm/bulk: operation_not_matched", 60,
			"  refused     1 × POST registry.example/-/npm/bulk:\n              operation_not_matched"},
		{"  credentials api_key/model/default: 3 requests (model messages.create 3)", 50,
			"  credentials api_key/model/default: 3 requests\n              (model messages.create 3)"},
		{"hint: see what there is with: aileron connector list --catalog", 40,
			"hint: see what there is with:\n  aileron connector list --catalog"},
		{"hint: aileron binding setup one two, and then run it", 36,
			"hint: aileron binding setup one two,\n  and then run it"},
		{"hint: aileron a command that is longer than the terminal", 30,
			"hint: aileron a command that\n  is longer than the terminal"},
		{"sha256:0123456789012345678901234567890123456789", 32, "sha256:0123456789012345678901234567890123456789"},
		{"一二三四五六七八九十 一二三四五六七八九十 一二", 44, "一二三四五六七八九十 一二三四五六七八九十\n  一二"},
	} {
		if got := console.Fitted(c.line, c.columns); got != c.want {
			t.Errorf("fitted(%q, %d) = %q, want %q", c.line, c.columns, got, c.want)
		}
	}
}

// The terminal of standard error decides, and a file gets one line.
func TestAnErrorFitsItsTerminal(t *testing.T) {
	controller, terminal, err := pty.Open()
	if err != nil {
		t.Skip("there are no terminals here: ", err)
	}
	defer controller.Close()
	must.Do(t, pty.Setsize(controller, &pty.Winsize{Rows: 24, Cols: 40}))
	seen := make(chan string)
	go func() {
		text, _ := io.ReadAll(controller) // fails when the terminal is closed
		seen <- string(text)
	}()
	a := cli.New(&console.Console{Stdin: strings.NewReader(""), Stdout: io.Discard, Stderr: terminal},
		&home.Dir{})
	code := Main(t.Context(), []string{"--home", t.TempDir(), "launch", "claud"}, a)
	_ = terminal.Close()
	const want = `aileron: there is no agent "claud"; known: claude, codex, goose, opencode, pi hint: did you mean claude?`
	got := <-seen
	for line := range strings.Lines(got) {
		if console.DisplayWidth(strings.TrimRight(line, "\r\n")) > 40 {
			t.Errorf("it prints a line of more than 40 columns: %q", line)
		}
	}
	if strings.Join(strings.Fields(got), " ") != want || code != 2 {
		t.Errorf("it ends with %d, and prints %q, want the words of %q", code, got, want)
	}
}

// The help of every command fits a terminal of 80 columns, but for commands that are longer, which stay whole.
func TestHelpFitsATerminal(t *testing.T) {
	c := runner{t: t, Flag: t.TempDir()}
	var check func(cmd *cobra.Command)
	check = func(cmd *cobra.Command) {
		args := append(strings.Fields(cmd.CommandPath())[1:], "--help")
		text := c.onTerminal(80, nil, args...)
		for line := range strings.Lines(text) {
			isCommand := strings.HasPrefix(strings.TrimSpace(strings.TrimLeft(line, " ")), "aileron ") &&
				!strings.Contains(line, "  #")
			if console.DisplayWidth(strings.TrimSuffix(line, "\n")) > 80 && !isCommand {
				t.Errorf("aileron %s prints %q", strings.Join(args, " "), line)
			}
		}
		for _, example := range strings.Split(cmd.Example, "\n") {
			command, _, _ := strings.Cut(example, "  #")
			if !strings.Contains(text, strings.TrimRight(command, " ")) {
				t.Errorf("aileron %s lacks the example %q:\n%s", strings.Join(args, " "), command, text)
			}
		}
		if words := strings.Fields(cmd.Long); !strings.Contains(strings.Join(strings.Fields(text), " "),
			strings.Join(words, " ")) {
			t.Errorf("aileron %s does not print all of\n%s\n%s", strings.Join(args, " "), cmd.Long, text)
		}
		for _, sub := range cmd.Commands() {
			if sub.IsAvailableCommand() {
				check(sub)
			}
		}
	}
	check(newRootCommand(cli.New(&console.Console{Stdout: io.Discard, Stderr: io.Discard}, &home.Dir{})))
}

// What a connector grants fits a terminal of 80 columns, and says all that it says elsewhere.
func TestAConnectorFitsATerminal(t *testing.T) {
	c := newRunner(t)
	c.ok("connector", "install", "github", "--yes")
	text := c.onTerminal(80, nil, "connector", "show", "github")
	for line := range strings.Lines(text) {
		if console.DisplayWidth(strings.TrimSuffix(line, "\n")) > 80 && strings.Contains(strings.TrimSpace(line), " ") {
			t.Errorf("it prints a line of more than 80 columns: %q", line)
		}
	}
	narrow := strings.Join(strings.Fields(text), " ")
	for _, field := range strings.Fields(c.ok("connector", "show", "github")) {
		if !strings.Contains(narrow, field) {
			t.Errorf("it lacks %q:\n%s", field, text)
		}
	}
}

// The list of sessions has a line for each where the terminal is wide enough, and else lines that fit.
func TestTheListOfSessionsFitsATerminal(t *testing.T) {
	all := []session.State{
		{ID: "01M84VZ8SB3R36BXK1C5H4QX3Y", State: "ended", Mode: "podman", Agent: "opencode"},
		{ID: "01M84WGTFQKXGKN2W24GV36ZP8", State: "running", Mode: "docker", Agent: "a\x1bgent", Detached: true},
	}
	for columns, lines := range map[int]int{120: 3, 80: 5} {
		var out strings.Builder
		must.Do(t, sessioncmd.PrintSessions(&out, all, columns))
		text := out.String()
		if got := strings.Count(text, "\n"); got != lines || strings.Contains(text, "\x1b") {
			t.Errorf("in %d columns it has %d lines, want %d: %q", columns, got, lines, text)
		}
		for line := range strings.Lines(text) {
			if console.DisplayWidth(strings.TrimRight(line, "\n")) > columns {
				t.Errorf("a line has more than %d columns: %q", columns, line)
			}
		}
		for _, want := range []string{all[0].ID, all[1].ID, "ended", "running", "opencode", "note"} {
			if !strings.Contains(text, want) {
				t.Errorf("in %d columns it lacks %q: %q", columns, want, text)
			}
		}
	}
}

// A table that is written in pieces fits its terminal too, as do a check of doctor and its continuation.
func TestWhatIsWrittenInPiecesFits(t *testing.T) {
	var out strings.Builder
	f := &console.LineFitter{Out: &out, Columns: 40}
	for _, piece := range []string{"ok    keyring     this host has ", "none: sessions ask", " for it\nok    ",
		"home  \n"} {
		if _, err := f.Write([]byte(piece)); err != nil {
			t.Fatal(err)
		}
	}
	const want = "ok    keyring     this host has none:\n                  sessions ask for it\nok    home\n"
	if out.String() != want {
		t.Errorf("it is %q, want %q", out.String(), want)
	}
}
