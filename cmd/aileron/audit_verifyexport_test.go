package main

import (
	"encoding/base64"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/e2e/must"
)

// exportOf writes a log with signed heads and with whatever JSON escapes, and returns its home, the lines of its export
// and the head that was kept.
func exportOf(t *testing.T) (c runner, lines []string, kept string) {
	t.Helper()
	c = newRunner(t)
	for i := range 2 {
		rows := requests(4)
		rows[1].Path = "/a&b<c>\"d\\e/é\u2028\x7f\t\b\x01😀"
		rows[2].Fields = map[string]any{"zone": "z\n", "a": []string{"x", "<&>"}, "n": 12, "yes": true, "é": nil,
			"deep": map[string]any{"b": 1, "a": "=1+1"}}
		rows = append(rows, audit.Row{Event: audit.EventSessionEnded, Fields: map[string]any{"exit_code": i}})
		c.write(rows...)
	}
	kept = filepath.Join(c.Flag, "kept")
	must.Do(t, os.WriteFile(kept, []byte(c.ok("audit", "head")), 0o600))
	return c, strings.SplitAfter(strings.TrimSuffix(c.ok("audit", "export"), "\n"), "\n"), kept
}

// With --complete, an export must have every row up to its last one.
func TestACompleteExportLacksNoRow(t *testing.T) {
	c, lines, _ := exportOf(t)
	for _, w := range []struct {
		name  string
		lines []string
		want  string // "": nothing is found
	}{
		{"whole", lines, ""},
		{"up to row 7", lines[:7], ""},
		{"without row 1", lines[1:], "1 rows up to row 12 are not in it, the first of them row 1"},
		{"without rows 3 and 9", slices.Concat(lines[:2], lines[3:8], lines[9:]),
			"2 rows up to row 12 are not in it, the first of them row 3"},
	} {
		file := filepath.Join(t.TempDir(), "export.jsonl")
		must.Do(t, os.WriteFile(file, []byte(strings.Join(w.lines, "")), 0o600))
		out, errs, code := c.run("audit", "verify", file, "--complete")
		if (code == 0) != (w.want == "") || !strings.Contains(out, w.want) {
			t.Errorf("%s: audit verify --complete ends with %d: %q, %q; want %q", w.name, code, out, errs, w.want)
		}
		if _, errs, code := c.run("audit", "verify", file); code != 0 {
			t.Errorf("%s: audit verify ends with %d: %q", w.name, code, errs)
		}
	}
	if _, errs, code := c.run("audit", "verify", "--complete"); code != 2 ||
		!strings.Contains(errs, "--complete is for a file of audit export") {
		t.Errorf("without a file, audit verify --complete ends with %d: %q", code, errs)
	}
}

// The ts of an export is what the hash covers, to the digit. An export of an earlier version, without the zeros at its
// end, is verified too; no other time is.
func TestAnExportHasTheTimeThatTheHashCovers(t *testing.T) {
	c := newRunner(t)
	rows := requests(2)
	rows[0].TS = time.Date(2026, 1, 2, 3, 4, 5, 120_000_000, time.UTC)
	rows[1].TS = time.Date(2026, 1, 2, 3, 4, 6, 0, time.UTC)
	c.write(rows...)
	out := c.ok("audit", "export")
	for _, want := range []string{`"ts":"2026-01-02T03:04:05.120000000Z"`, `"ts":"2026-01-02T03:04:06.000000000Z"`} {
		if !strings.Contains(out, want) {
			t.Errorf("the export has no %s: %s", want, out)
		}
	}
	for _, w := range []struct {
		from, to string
		code     int
	}{
		{"", "", 0}, {".120000000Z", ".12Z", 0}, {".000000000Z", "Z", 0}, {".000000000Z", ".0Z", 1},
		{".120000000Z", ".120000001Z", 1}, {"05.120000000Z", "05.12+00:00", 1},
	} {
		file := filepath.Join(t.TempDir(), "export.jsonl")
		must.Do(t, os.WriteFile(file, []byte(strings.Replace(out, w.from, w.to, 1)), 0o600))
		if found, errs, code := c.run("audit", "verify", file); code != w.code {
			t.Errorf("with %s for %s, audit verify ends with %d: %s%s", w.to, w.from, code, found, errs)
		}
	}
}

// A short name selects the events of a connector that is not installed any more.
func TestTheLogKnowsConnectorsThatWereRemoved(t *testing.T) {
	c := newRunner(t)
	rows := requests(3)
	rows[0].ConnectorFQN, rows[1].ConnectorFQN = "github://acme/gone", "github://acme/several"
	rows[2].ConnectorFQN = "github://other/several"
	c.write(rows...)
	if out := c.ok("audit", "list", "--connector", "gone", "--json"); strings.Count(out, "\n") != 1 ||
		!strings.Contains(out, "github://acme/gone") {
		t.Errorf("audit list --connector gone prints %q", out)
	}
	for name, want := range map[string]string{"several": "can be github://acme/several or github://other/several",
		"never": "find the connector never"} {
		if _, errs, code := c.run("audit", "list", "--connector", name); code == 0 || !strings.Contains(errs, want) {
			t.Errorf("audit list --connector %s ends with %d: %q; want %q", name, code, errs, want)
		}
	}
}

// What audit verify FILE finds in an export without its home, and what the 70 lines of Python find that share nothing
// with this program.
func TestAnExportIsVerifiedWithoutItsHome(t *testing.T) {
	python, err := exec.LookPath("python3")
	must.Do(t, err)
	c, lines, kept := exportOf(t)
	key := strings.TrimSpace(c.ok("audit", "head", "--public-key"))
	other := strings.TrimSpace(newRunner(t).ok("audit", "head", "--public-key"))
	if len(lines) != 12 {
		t.Fatalf("the export has %d rows", len(lines))
	}
	edit := func(n int, from, to string) func([]string) []string {
		return func(all []string) []string {
			if !strings.Contains(all[n], from) {
				t.Fatalf("line %d has no %s: %s", n, from, all[n])
			}
			all[n] = strings.Replace(all[n], from, to, 1)
			return all
		}
	}
	signature := regexp.MustCompile(`[0-9A-Za-z+/]{8}=\\n"`) // the end of it; its first letter stands for whole bits
	for _, w := range []struct {
		name           string
		change         func([]string) []string
		key            string
		want, inPython string // "": nothing is found
	}{
		{"whole", func(all []string) []string { return all }, key, "", ""},
		{"whole, without a key", func(all []string) []string { return all }, "", "", ""},
		{"of another key", func(all []string) []string { return all }, other, "is signed by another key",
			"line 6: it is signed by another key"},
		{"a filter", func(all []string) []string { return append(all[1:3:3], all[7], all[11]) }, key, "", ""},
		{"a filter without signed heads", func(all []string) []string { return all[1:3:3] }, key,
			"no row of the export has a signed head", "no row has a signed head"},
		{"a filter without signed heads or a key", func(all []string) []string { return all[1:3:3] }, "", "", ""},
		{"a column edited", edit(1, `"status":201`, `"status":200`), key, "row 2", "line 2: its content does not have"},
		{"a field edited", edit(2, `"deep":{"a":"=1+1"`, `"deep":{"a":"=1+2"`), key, "row 3", "line 3: its content"},
		{"a time edited", edit(1, `"ts":"20`, `"ts":"21`), key, "row 2", "line 2: its content"},
		{"a field added", edit(1, `"status":201`, `"status":201,"note":"x"`), key, "line 2 is not a row",
			"line 2: its content"},
		{"a column twice", edit(1, `"status":201`, `"status":403,"status":201`), key,
			"a name is missing, twice or in another order", ""},
		{"a column removed", edit(1, `"status":201,`, ""), key, "a name is missing, twice or in another order",
			"line 2: its content"},
		{"two rows swapped", func(all []string) []string { all[1], all[2] = all[2], all[1]; return all }, key,
			"it comes behind row 3", "line 3: it comes behind row 3"},
		{"a row twice", func(all []string) []string { return append(all[:2:2], all[1:]...) }, key,
			"it comes behind row 2", "line 3: it comes behind row 2"},
		{"a signature edited", func(all []string) []string {
			at := signature.FindStringIndex(all[5])
			if at == nil {
				t.Fatalf("line 6 has no signature: %s", all[5])
			}
			other := "A"
			if all[5][at[0]] == 'A' {
				other = "B"
			}
			all[5] = all[5][:at[0]] + other + all[5][at[0]+1:]
			return all
		}, key, "row 6", "line 6: its content"},
		{"no row", func([]string) []string { return []string{"hello\n"} }, key, "line 1 is not a row", "line 1: "},
	} {
		t.Run(w.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "export.jsonl")
			text := strings.Join(w.change(append([]string(nil), lines...)), "")
			must.Do(t, os.WriteFile(file, []byte(text), 0o600))
			args := []string{"audit", "verify", file}
			if w.key != "" {
				args = append(args, "--key", w.key)
			}
			out, errs, code := newRunner(t).run(args...)
			if (code == 0) != (w.want == "") || (code == 0) != strings.HasPrefix(out, "ok  ") ||
				!strings.Contains(out, w.want) {
				t.Errorf("audit verify ends with %d: %q, %q; want %q", code, out, errs, w.want)
			}
			checker := exec.CommandContext(t.Context(), python, "../../examples/verify_audit.py", file, w.key)
			found, err := checker.CombinedOutput()
			if (err == nil) != (w.inPython == "") || !strings.Contains(string(found), w.inPython) ||
				(err == nil) != strings.HasPrefix(string(found), "ok  ") {
				t.Errorf("the checker finds %s%v; want %q", found, err, w.inPython)
			}
		})
	}
	cut := filepath.Join(t.TempDir(), "cut.jsonl")
	must.Do(t, os.WriteFile(cut, []byte(strings.Join(lines[:9], "")), 0o600))
	const want = "the export does not have row 12 of the kept head"
	out, errs, code := newRunner(t).run("audit", "verify", cut, "--head", kept)
	if code != 1 || !strings.Contains(out, want) {
		t.Errorf("a cut export with the kept head ends with %d: %q, %q", code, out, errs)
	}
	must.Do(t, os.WriteFile(cut, []byte(strings.Join(lines[2:4], "")), 0o600))
	_, errs, _ = newRunner(t).run("audit", "verify", cut)
	if want := "2 rows up to row 4 are not in the export, in 1 gaps"; !strings.Contains(errs, want) {
		t.Errorf("a part of an export: %q; want %q", errs, want)
	}
}

// A signature that fits another text is found although all hashes fit: the row was chained again.
func TestTheCheckerVerifiesSignatures(t *testing.T) {
	_, lines, _ := exportOf(t)
	key := strings.TrimSpace(newRunner(t).ok("audit", "head", "--public-key"))
	row := decode[audit.Row](t, lines[5])
	name, _, _ := strings.Cut(fmt.Sprint(row.Fields["checkpoint"]), "\n")
	// The name and the fingerprint are those of the log, and the key is another one.
	_, rest, _ := strings.Cut(key, "+")
	_, public, _ := strings.Cut(rest, "+")
	signature := strings.Fields(fmt.Sprint(row.Fields["checkpoint"]))
	raw := must.Get(base64.StdEncoding.DecodeString(signature[len(signature)-1]))(t)
	file := filepath.Join(t.TempDir(), "export.jsonl")
	must.Do(t, os.WriteFile(file, []byte(strings.Join(lines, "")), 0o600))
	cmd := exec.CommandContext(t.Context(), "python3", "../../examples/verify_audit.py", file,
		fmt.Sprintf("%s+%x+%s", name, raw[:4], public))
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "line 6: its signature does not fit") {
		t.Errorf("the checker finds %s%v", out, err)
	}
}
