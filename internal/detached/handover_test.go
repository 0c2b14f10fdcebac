package detached

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/e2e/harness"
	"github.com/ALRubinger/aileron/e2e/must"
)

// exactReader fails when more is asked of it than what is read next: the line byte by byte, then the key.
type exactReader struct {
	in  *bytes.Reader
	key int
}

func (r *exactReader) Read(p []byte) (int, error) {
	if r.in.Len() > r.key && len(p) > 1 || len(p) > r.key {
		return 0, errors.New("it reads ahead")
	}
	return r.in.Read(p)
}

func TestAHandoverIsNotReadAhead(t *testing.T) {
	const head, key = `{"Size":{"Height":24,"Width":80},"KeyLength":6}` + "\n", "secret"
	r := &exactReader{in: bytes.NewReader([]byte(head + key)), key: len(key)}
	h, got, err := ReadHandover(r)
	if err != nil || string(got) != key || h.Size.Width != 80 {
		t.Errorf("got %+v, %q, %v", h, got, err)
	}
	for _, text := range []string{"", "x\n", `{"KeyLength":-1}` + "\n", `{"KeyLength":5000}` + "\n",
		`{"KeyLength":9}` + "\nshort"} {
		if _, _, err := ReadHandover(bytes.NewReader([]byte(text))); err == nil {
			t.Errorf("%q is a handover", text)
		}
	}
	if _, _, err := ReadHandover(io.MultiReader(bytes.NewReader(bytes.Repeat([]byte("x"), 1<<20)))); err == nil {
		t.Error("a line without an end is a handover")
	}
}

// The report of a session is written when it has ended: who follows the output must not leave before.
func TestAProcessThatWritesItsLastWordsIsWaitedFor(t *testing.T) {
	for _, file := range []string{"messages", segmentName(0)} {
		home := t.TempDir()
		path := filepath.Join(Dir(home, "01SESSION"), file)
		must.Do(t, os.MkdirAll(filepath.Dir(path), 0o700))
		cmd := exec.CommandContext(t.Context(), os.Args[0])
		cmd.Env = append(os.Environ(), "DETACHED_TEST_MESSAGES="+path)
		in := must.Get(cmd.StdinPipe())(t)
		must.Do(t, cmd.Start())
		written := harness.Poll(patience, time.Millisecond, func() bool { return IsWritten(home, "01SESSION") })
		must.Do(t, in.Close())
		must.Do(t, cmd.Wait())
		text, err := os.ReadFile(path)
		if !written || IsWritten(home, "01SESSION") || err != nil || string(text) != "the report\n" {
			t.Errorf("%s: written %v, then %v; it has %q, %v", file, written, IsWritten(home, "01SESSION"), text, err)
		}
	}
}
