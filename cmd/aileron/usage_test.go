package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/cmd/aileron/internal/cli"
	"github.com/ALRubinger/aileron/internal/console"
	"github.com/ALRubinger/aileron/internal/home"
)

// Each wrong call ends with 2 and with what would be right.
func TestAUsageErrorNamesWhatIsRight(t *testing.T) {
	c := newRunner(t)
	for _, w := range []struct{ call, want string }{
		{"nonsense", `"nonsense" is not a command of aileron` + "; hint: aileron --help\n"},
		{"help nonsense", `"nonsense" is not a command of aileron`},
		{"completion nonsense", `"nonsense" is not a command of aileron completion`},
		{"help audit nonsense", `"nonsense" is not a command of aileron audit`},
		{"audit list --log-level foo", `--log-level is "foo"; it must be debug, info, warn or error` +
			"; hint: aileron audit list --help\n"},
		{"audit list --limit many", `invalid argument "many" for "--limit" flag: it is not a whole number`},
		{"audit list --limit 99999999999999999999", `flag: it is out of range`},
		{"audit serve --idle 1d", `unknown unit "d" in duration "1d"; hint: a duration has no days: write 24h`},
		{"audit serve --idle soon", `invalid duration "soon"; hint: a duration is such as 90s, 30m or 8h`},
		{"audit list --json=maybe", `it is not true or false`},
		{"proxy --listen=", `--listen is ""; it is empty; hint: write 127.0.0.1:8080`},
		{"proxy --listen 8080", `--listen is "8080"; it has no address; hint: write 127.0.0.1:8080`},
		{"proxy --listen ::1", `--listen is "::1"; it has no port; hint: write [::1]:8080`},
		{"proxy --listen http://127.0.0.1:80", `it is a URL, and not an address with a port`},
		{"proxy --listen localhost", `it is not an address with a port; hint: write 127.0.0.1:8080`},
		{"proxy --listen 127.0.0.1:99999", `"99999" is not a port: they are numbers up to 65535; ` +
			`hint: write 127.0.0.1:8080`},
		{"audit list extra", "audit list takes no arguments; got 1 argument"},
		{"audit show", "audit show takes ID; got none"},
		{"spec validate", "spec validate takes FILE...; got none"},
		{"proxy extra words", "proxy takes no arguments; got 2 arguments"},
		{"demo --sandbox=foo", `--sandbox is "foo"; it must be auto, podman, docker or off`},
		{"sandbox prune --sandbox=foo", `--sandbox is "foo"; it must be auto, podman, docker or native`},
		{"sandbox build --sandbox=off", `--sandbox is "off"; it must be auto, podman or docker`},
		{"sandbox run --sandbox=off -- true", "use aileron run -- CMD"},
		{"sandbox run --sandbox-build=foo -- true", `--sandbox-build is "foo"; it must be auto, always or never`},
		{"launch opencode --sandbox=foo", `--sandbox is "foo"; it must be auto, podman, docker, native or off`},
		{"launch opencode --sandbox-proxy=foo", `--sandbox-proxy is "foo"; it must be auto, on or off`},
		{"launch emacs", "known: " +
			"claude, codex, goose, opencode, pi; hint: for any other command use: aileron sandbox run -- CMD"},
		{"launch --unattended --sandbox=off claude", "--unattended is for a sealed sandbox"},
		{"launch --unattended --sandbox-proxy=off claude", "--unattended is for a sealed sandbox"},
		{"sandbox run --unattended -- true", "--unattended is for agents that aileron knows"},
		{"launch claude --port 8080:x", `"x" is not a port; hint: ports are numbers from 1 to 65535`},
		{"launch claude --mount a:b:c", "it is not SRC[:DST][:ro]; hint: a mount is SRC[:DST][:ro], as in"},
		{"launch claude --env CI", `it is not K=V; hint: give the value too, as in CI=1`},
		{"allow 99999", "hint: if 99999 is a port, name the host too, as in example.com:8443"},
		{"allow docs.example.org/a", `"docs.example.org/a" has a path; name the host alone, as in "docs.example.org"`},
		{"vault unlock --for 8", `missing unit in duration "8"; hint: write 8h, 8m or 8s`},
		{"run --egress=foo -- true", `--egress is "foo"; it must be deny or passthrough`},
		{"binding setup ftp://tracker", "does not begin with github://"},
		{"gateway extra", "gateway takes no arguments"},
	} {
		out, errs, code := c.run(strings.Fields(w.call)...)
		if code != 2 || out != "" || !strings.Contains(errs, w.want) || !isFailure(errs) {
			t.Errorf("aileron %s ends with %d: %q, %q; want 2 and a failure with %q", w.call, code, out, errs, w.want)
		}
	}
}

// With --json every error is the object of CONTRACT section 4, alone, on stderr: testdata/json has the others.
func TestErrorsAreObjectsWithJSON(t *testing.T) {
	c := newRunner(t)
	for _, w := range []struct{ call, class, reason string }{
		{"binding setup --json " + githubFQN, "invalid_request", "not_found"},
		{"action show --json none", "invalid_request", "not_found"},
		{"action run --json none", "invalid_request", "not_found"},
		{"action remove --json none", "invalid_request", "not_found"},
	} {
		out, errs, code := c.run(strings.Fields(w.call)...)
		if code == 0 || out != "" {
			t.Errorf("aileron %s ends with %d and prints %q", w.call, code, out)
		}
		e := decode[struct {
			Error struct {
				Class, Message, Requested string
				AuditID                   *string `json:"audit_id"`
				Granted                   []string
				Retriable                 *bool
				Details                   struct{ Reason string }
			}
		}](t, errs).Error
		if e.Class != w.class || e.Details.Reason != w.reason || e.Message == "" || e.Granted == nil || e.AuditID == nil ||
			e.Retriable == nil {
			t.Errorf("aileron %s says %s", w.call, errs)
		}
	}
	if _, errs, _ := c.run("run", "--nonsense", "--", "true", "--json"); !strings.HasPrefix(errs, "aileron: ") {
		t.Errorf("the --json of the command was taken for ours: %s", errs)
	}
}

// Help shows a command that someone would really type, and every verb has it.
func TestEveryVerbHasHelp(t *testing.T) {
	c := newRunner(t)
	var walk func(cmd *cobra.Command)
	walk = func(cmd *cobra.Command) {
		args := strings.Fields(cmd.CommandPath())[1:]
		long, errs, code := c.run(append(args, "--help")...)
		if code != 0 || errs != "" || !strings.Contains(long, "Usage:") {
			t.Errorf("%s --help ends with %d: %q", cmd.CommandPath(), code, errs)
		}
		if help, _, code := c.run(append([]string{"help"}, args...)...); code != 0 || help != long {
			t.Errorf("help %s ends with %d and differs from --help: %q", cmd.CommandPath(), code, help)
		}
		if cobras := strings.Contains(cmd.CommandPath(), "completion") || cmd.Name() == "help"; !cobras && !cmd.Hidden &&
			!cmd.HasSubCommands() && (cmd.Example == "" || !strings.Contains(long, "aileron "+strings.Join(args, " "))) {
			t.Errorf("%s has no example", cmd.CommandPath())
		}
		for _, sub := range cmd.Commands() {
			walk(sub)
		}
	}
	walk(newRootCommand(cli.New(&console.Console{}, &home.Dir{})))
}

// A command line makes the command that it begins with, and no other, unless it asks about others.
func TestACommandLineMakesItsOwnCommandAlone(t *testing.T) {
	app := cli.New(&console.Console{}, &home.Dir{})
	names := func(args ...string) (all []string) {
		for _, cmd := range newRootCommand(app, args...).Commands() {
			all = append(all, cmd.Name())
		}
		return all
	}
	for _, c := range commands {
		want := []string{c.name}
		if c.name == manCommand {
			want = names()
		}
		if got := names(c.name, "--help"); !slices.Equal(got, want) {
			t.Errorf("aileron %s makes %q, not %q", c.name, got, want)
		}
	}
	for _, word := range []string{"help", "__complete", "--json", "sandboxes", ""} {
		if got := names(word, "sandbox"); len(got) <= len(commands) {
			t.Errorf("aileron %q makes %q alone", word, got)
		}
	}
}

// Mistakes of a first day have a hint that leads on. The agent's own arguments follow "--".
func TestFirstMistakesAreExplained(t *testing.T) {
	c := newRunner(t)
	for _, x := range []struct {
		args string
		want string
	}{
		{"launch claude -p hi", "hint: arguments of claude follow --: aileron launch claude -- ARG…"},
		{"launch claude --continue", "hint: arguments of claude follow --: aileron launch claude -- ARG…"},
		{"launch claude --alow x",
			"hint: did you mean --allow? arguments of claude follow --: aileron launch claude -- ARG…"},
		{"launch --alow x claude", "hint: did you mean --allow?"},
		{"launch claud -p", "hint: aileron launch --help"},
		{"doctor -x", "hint: aileron doctor --help"},
		{"setup cluade", "hint: did you mean claude?"},
		{"vault unlock --for 8", "hint: write 8h, 8m or 8s for hours, minutes or seconds"},
	} {
		_, errs, code := c.run(strings.Fields(x.args)...)
		if code != 2 || !strings.HasSuffix(strings.TrimSpace(errs), "; "+x.want) {
			t.Errorf("aileron %s ends with %d: %s, want %q", x.args, code, errs, x.want)
		}
	}
}
