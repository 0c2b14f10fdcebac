package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/diff"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/ALRubinger/aileron/e2e/must"
)

var (
	updateGolden  = flag.Bool("update", false, "write testdata/json anew")
	goldenProgram = flag.String("program", "", "a directory with the aileron that testdata/json is written with")
)

// TestJSONIsWhatItWas holds the output that scripts read (CONTRACT section 1
// and 4): --json of every command that needs no engine, its exit code, and the
// class and reason of its errors. Each file of testdata/json is a session of a
// shell, recorded with the aileron of commit 3e32ea5; what differs from run to
// run, and messages for people, are replaced (see [plain]).
//
//	go test ./cmd/aileron -run JSONIsWhatItWas -update -program DIR-WITH-AN-AILERON
func TestJSONIsWhatItWas(t *testing.T) {
	files, err := filepath.Glob("testdata/json/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files: %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			t.Parallel()
			story := must.Get(txtar.ParseFile(file))(t)
			home := t.TempDir()
			must.Do(t, txtar.Write(story, home))
			got := transcript(t, home, string(story.Comment))
			if *updateGolden {
				story.Comment = []byte(got)
				must.Do(t, os.WriteFile(file, txtar.Format(story), 0o600))
				return
			}
			if want := string(story.Comment); got != want {
				t.Errorf("%s", diff.Diff("testdata", []byte(want), "now", []byte(got)))
			}
		})
	}
}

// transcript runs the lines of a session that begin with "$ " by a shell, each
// in dir, and returns the session with what they print now: stdout as it is,
// the JSON of stderr behind "! ", and the exit code where it is not 0.
func transcript(t *testing.T, dir, session string) string {
	t.Helper()
	var out strings.Builder
	out.WriteString(comments(session))
	for line := range strings.Lines(session) {
		call, isCall := strings.CutPrefix(line, "$ ")
		if !isCall {
			continue
		}
		cmd := exec.CommandContext(t.Context(), "sh", "-c", call)
		cmd.Dir = dir
		cmd.Env = []string{"PATH=" + *goldenProgram + ":" + os.Getenv("PATH"), "HOME=" + dir, "AILERON_HOME=" + dir + "/home",
			"TZ=UTC", "DBUS_SESSION_BUS_ADDRESS=", "XDG_RUNTIME_DIR=" + dir, "AILERON_VAULT_PASSPHRASE=" + testPassphrase,
			endAtOnce}
		var stdout, stderr bytes.Buffer
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		_ = cmd.Run() // its exit code is part of the transcript
		fmt.Fprintf(&out, "\n$ %s%s", call, plain(dir, stdout.String()))
		for text := range strings.Lines(plain(dir, stderr.String())) {
			if strings.HasPrefix(text, "{") { // the others are for people
				out.WriteString("! " + text)
			}
		}
		if code := cmd.ProcessState.ExitCode(); code != 0 {
			fmt.Fprintf(&out, "exit code %d\n", code)
		}
	}
	return out.String()
}

// comments returns the lines before the first call.
func comments(session string) string {
	head, _, _ := strings.Cut(session, "\n\n$ ")
	return strings.TrimSuffix(head, "\n") + "\n"
}

// plain replaces what differs from run to run: directories, ids and times of
// today (those of a story's own log are older), processes, ports, tokens, and
// hashes of audit rows. A message is for
// people, and may get better words; its class and its reason may not.
func plain(dir, text string) string {
	for _, r := range []struct{ pattern, with string }{
		{regexp.QuoteMeta(dir), "/story"},
		{`"(message|error)":"(\\.|[^"\\])+"`, `"$1":"…"`},
		{`\b01[J-Z][0-9A-HJKMNP-TV-Z]{23}\b`, "ID"},
		{`\b20[2-9]\d-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)`, "TIME"},
		{`"(pid|seconds|duration_us)":\d+`, `"$1":0`},
		{`"aileron":"[^"]*"`, `"aileron":"VERSION"`},
		{`"(hash|prev_hash|last_hash|head)":"[0-9a-f]{64}"`, `"$1":"…"`},
		{`"request_id":"[^"]+"`, `"request_id":"…"`},
		{`("?)("checkpoint"+:"+)[^"]+`, "$1$2…"},
		{`(,|hash |"expected":")[0-9a-f]{64}`, "$1…"}, // of a row behind a signed head
		{`127\.0\.0\.1:\d+`, "127.0.0.1:PORT"},
		{`aileron:[\w-]{43}@`, "aileron:TOKEN@"},
	} {
		text = regexp.MustCompile(r.pattern).ReplaceAllString(text, r.with)
	}
	return text
}
