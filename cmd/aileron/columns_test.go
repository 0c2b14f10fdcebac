package main

import (
	"strings"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/internal/console"
	"github.com/ALRubinger/aileron/internal/review"
)

// Whatever the width of a terminal, no line is longer, and nothing that is asked for is missing.
func TestAnswersFitEveryTerminal(t *testing.T) {
	setZone(t, time.FixedZone("CET", 3600))
	c := newRunner(t)
	rows := seenRows()
	rows[1].Fields["agent"] = "エージェント\u202e\x1b[2Jagent"
	for i := range rows {
		rows[i].Path += "/日本語のとても長いパス/é" + strings.Repeat("/資料", 30)
	}
	c.write(rows...)
	for _, columns := range []uint16{40, 80, 120, 200} {
		for _, w := range []struct {
			command string
			want    []string
		}{
			{"audit summary", []string{"bearer/github/work", "user.get 2", "host_not_allowed 1", "claude", "verifies, all"}},
			{"audit stats --by host", []string{"api.github.com", "evil.example", "2026-11-23T01:00:00+01:00"}},
			{"audit used github", []string{"bearer/github/work", "01KAQ8ZC7FHX1M3V9T5R2N4B6D", "claude"}},
			{"audit list -v", []string{"bearer/github/work", "01KAQ8ZC7FHX claude", "210/12k", "host_not_allowed",
				"aileron allow evil.example"}},
			{"audit tail -n 2", []string{"proxied 200", "資料"}},
			{"session show 01KAQ8ZC7FHX1M3V9T5R2N4B6D", []string{"bearer/github/work"}},
		} {
			out := sgr.ReplaceAllString(c.onTerminal(columns, nil, strings.Fields(w.command)...), "")
			checkSafe(t, w.command, out)
			for line := range strings.Lines(out) {
				if n := console.DisplayWidth(strings.TrimSuffix(line, "\n")); n > int(columns) && !strings.HasPrefix(w.command,
					"session") {
					t.Errorf("%s: a line has %d columns, and the terminal %d: %q", w.command, n, columns, line)
				}
			}
			words := strings.Join(strings.Fields(out), " ")
			for _, want := range w.want {
				if !strings.Contains(words, want) {
					t.Errorf("%s, %d columns: there is no %q in\n%s", w.command, columns, want, out)
				}
			}
		}
	}
}

// Combining marks take no column, and wide characters two.
func TestWidthsAreThoseOfATerminal(t *testing.T) {
	for text, want := range map[string]int{"": 0, "abc": 3, "日本": 4, "e\u0301": 1, "é": 1, "…": 1, "ｱ": 1, "🦀": 2} {
		if got := console.DisplayWidth(text); got != want {
			t.Errorf("%q has %d columns, want %d", text, got, want)
		}
	}
	if got := review.Fit("日本語日本語", 8); console.DisplayWidth(got) != 8 || !strings.Contains(got, "…") {
		t.Errorf("fit = %q", got)
	}
	var out strings.Builder
	wide := console.Table{Heads: []string{"name", "n"}, Rows: [][]string{{"日本", "1"}, {"abcd", "2"}}}
	if err := wide.Print(&out, 0); err != nil || out.String() != "name  n\n日本  1\nabcd  2\n" {
		t.Errorf("the table is %q, %v", out.String(), err)
	}
}
