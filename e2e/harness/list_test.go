package harness

import (
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

func TestAListThatFailsIsTriedAgain(t *testing.T) {
	const engine = `echo >>"$1"; [ $(wc -l <"$1") -le "$2" ] || { echo listed; exit; }; echo "it is gone" >&2; exit 125`
	for failures, want := range map[int]string{0: "", 2: "", 100: "exit status 125: it is gone"} {
		tries := filepath.Join(t.TempDir(), "tries")
		out, err := List(exec.Command("sh", "-c", engine, "-", tries, strconv.Itoa(failures)))
		if want == "" && (err != nil || out != "listed\n") ||
			want != "" && (err == nil || strings.TrimSpace(err.Error()) != want) {
			t.Errorf("after %d failures: %q, %v; want the error %q", failures, out, err, want)
		}
	}
	if _, err := List(exec.Command(filepath.Join(t.TempDir(), "none"))); err == nil {
		t.Error("a program that is not there lists something")
	}
}
