package format

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
)

func TestOnlyANewerFormatIsRefused(t *testing.T) {
	for text, newer := range map[string]string{
		"1\n": "", "1": "", "0": "", "": "", "2\n": "2", "17": "17", "1.1": "1.1", "two": "two",
	} {
		dir := t.TempDir()
		must.Do(t, os.WriteFile(filepath.Join(dir, Name), []byte(text), 0o600))
		check(t, text, Check(dir, First), dir, newer)
	}
	check(t, "no file", Check(t.TempDir(), First), "", "")
	for text, newer := range map[string]string{
		`{}`: "", `{"format":1}`: "", `{"format":2,"later":{}}`: "2", `{"format":"b"}`: `"b"`, `[]`: "", `{"format":`: "",
	} {
		check(t, text, CheckJSON([]byte(text), "x.json", First), "x.json", newer)
	}
}

// check wants an Error that names the format newer, or none.
func check(t *testing.T, what string, err error, path, newer string) {
	t.Helper()
	var e *Error
	switch {
	case newer == "" && err != nil:
		t.Errorf("%q: %v", what, err)
	case newer != "" && (!errors.As(err, &e) || e.Format != newer || e.Path != path || e.Known != First):
		t.Errorf("%q: %v, want the format %s of %s", what, err, newer, path)
	}
}
