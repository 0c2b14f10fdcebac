package day

import (
	"encoding/xml"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
)

// step is a command as a person would type it, and what it printed; the flags that lead to
// the stand-ins are left out.
type step struct{ command, out string }

// show keeps a step for the recording.
func (p *person) show(command string, out ...string) {
	p.seen = append(p.seen, step{command, strings.TrimRight(strings.Join(out, ""), "\n")})
}

// record draws the steps into an SVG file, if AILERON_RECORDING names one.
func (p *person) record() {
	p.t.Helper()
	path := os.Getenv("AILERON_RECORDING")
	if path == "" {
		return
	}
	var lines []string
	for _, s := range p.seen {
		lines = append(lines, "$ "+s.command)
		lines = append(append(lines, readable(s.out)...), "")
	}
	must.Do(p.t, os.WriteFile(path, []byte(draw(lines[:len(lines)-1])), 0o644))
}

// showDay keeps the launch: the commands of the agent's shell, what the agent said, and the report at the end. Then it
// asks the log who pushed.
func (p *person) showDay(prompt string, r result) {
	p.t.Helper()
	var shell strings.Builder
	for line := range strings.Lines(readFile(p.t, filepath.Join(p.project, "work.log"))) {
		if rest, ok := strings.CutPrefix(line, "$ "); ok {
			shell.WriteString("● " + rest)
		} else if !strings.HasPrefix(line, `{"error"`) {
			shell.WriteString("  " + line)
		} else {
			shell.WriteString("  403 host_not_allowed\n")
		}
	}
	p.show("aileron launch --packages golang-go claude -- -p '"+prompt+"'", shell.String(), r.out, r.err)
	r = p.must("audit", "list", "--connector", "github", "--event", "connector.proxy.proxied")
	p.show("aileron audit list --connector github", r.out)
}

// showNext keeps the session that goes on with the conversation.
func (p *person) showNext(r result) {
	p.show("aileron launch --packages golang-go claude -- -p '"+next+"' --continue", r.out, r.err)
}

// What differs from one run to the next.
var (
	ids       = regexp.MustCompile(`\b01[0-9A-HJKMNP-TV-Z]{24}\b`)
	hashes    = regexp.MustCompile(`(sha256:[0-9a-f]{8})[0-9a-f]{56}`)
	listed    = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\S+ +\S+ +\S+ +(\S+ +\S+) +\S+ +\S+  `) // of audit list
	durations = regexp.MustCompile(`(after|in) [0-9.]+m?[0-9.]*s\b`)
	waits     = regexp.MustCompile(`^aileron: waiting for |^aileron: the sandbox may use |will be retired on `)
)

// readable returns the lines of an output with the same IDs and durations in each run, without what depends on the
// machine, and without the details of grants.
func readable(out string) []string {
	var lines []string
	skipped := false // the line before, which may be continued
	for line := range strings.Lines(out) {
		line = strings.TrimRight(ids.ReplaceAllString(line, "01JEXAMPLE"), " \n")
		line = listed.ReplaceAllString(hashes.ReplaceAllString(line, "$1…"), "$1  ")
		line = durations.ReplaceAllString(line, "$1 …s")
		skipped = skipped && continued.MatchString(line) || waits.MatchString(line) || details.MatchString(line) || line == ""
		if skipped {
			continue
		}
		for len(line) > columns && strings.Contains(line[:columns], ", ") {
			at := strings.LastIndex(line[:columns], ", ") + len(", ")
			lines, line = append(lines, line[:at]), strings.Repeat(" ", 16)+line[at:]
		}
		lines = append(lines, line)
	}
	return lines
}

// details are lines about what a connector allows, beside what it reads and writes; each may be continued.
var (
	details   = regexp.MustCompile(`^  (hosts|credential|placeholder|fields|any path|unsearched) `)
	continued = regexp.MustCompile(`^ {14}`)
)

// The size of the drawing.
const (
	columns     = 118
	left, above = 16, 30
	row         = 17
	width       = 2*left + columns*73/10
)

// draw returns an SVG of a terminal with these lines, which is readable on dark and on light pages.
func draw(lines []string) string {
	height := above + row*len(lines) + left/2
	var out strings.Builder
	fmt.Fprintf(&out, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" role="img">
<title>A day with aileron: made by just recording</title>
<style>
rect{fill:#f6f8fa;stroke:#d0d7de}
text{font:12px ui-monospace,Menlo,Consolas,monospace;fill:#24292f;white-space:pre}
.c{font-weight:bold;fill:#0550ae} .a{fill:#57606a}
@media (prefers-color-scheme:dark){
rect{fill:#161b22;stroke:#30363d} text{fill:#e6edf3} .c{fill:#79c0ff} .a{fill:#9da7b1}}
</style>
<rect x="0.5" y="0.5" width="%d" height="%d" rx="6"/>
`, width, height, width-1, height-1)
	for i, line := range lines {
		class := ""
		switch {
		case strings.HasPrefix(line, "$ "):
			class = ` class="c"`
		case strings.HasPrefix(line, "aileron: "):
			class = ` class="a"`
		}
		fmt.Fprintf(&out, `<text x="%d" y="%d"%s xml:space="preserve">%s</text>`+"\n", left, above+i*row, class,
			escaped(line))
	}
	out.WriteString("</svg>\n")
	return out.String()
}

func escaped(s string) string {
	var out strings.Builder
	if err := xml.EscapeText(&out, []byte(s)); err != nil {
		panic(err) // a builder takes everything
	}
	return out.String()
}

func TestARecordingIsTheSameInEachRun(t *testing.T) {
	const out = "aileron: waiting for podman to remove a container (2s; Ctrl-C ends it)\n" +
		"aileron: session 01M82S93JH88YBPG45DZFME4MF of claude ended after 2m40s, exit code 0\n" +
		"  hosts       github.com/{owner}\n  refused     1 × <a>\n"
	got := draw(readable(out))
	if strings.Contains(got, "waiting") || strings.Contains(got, "2m40s") || strings.Contains(got, "01M82") ||
		strings.Contains(got, "{owner}") || !strings.Contains(got, "  refused     1 × &lt;a&gt;") {
		t.Errorf("the drawing is\n%s", got)
	}
}
