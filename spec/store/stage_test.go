package store

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
)

// A stage outlasts the installations of other processes, and no longer than its own.
func TestAStageIsKeptWhileItsProcessLives(t *testing.T) {
	s := open(t)
	stage := must.Get(s.Stage())(t)
	left := filepath.Join(s.dir, "tmp", stagePrefix+"of-a-killed-process")
	must.Do(t, os.Mkdir(left, 0o700))
	install(t, s, source(t, "1.2.0", nil)) // it removes what was left
	if _, err := os.Stat(stage.Archive.Name()); err != nil {
		t.Errorf("the stage is gone: %v", err)
	}
	if _, err := os.Stat(left); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("what was left is there: %v", err)
	}
	if err := stage.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(stage.dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the stage outlasts its end: %v", err)
	}
}

// The signature that was checked is installed, even if the source has another one by then.
func TestTheCheckedSignatureIsInstalled(t *testing.T) {
	s := open(t)
	src := source(t, "1.2.0", map[string]string{signatureFile: "of the source"})
	add := func(sig []byte) Installed {
		t.Helper()
		all := must.Get(s.InstallAll(t.Context(), []Source{{Src: src, Checked: true, Signature: sig}}, nil))(t)
		return all[0]
	}
	for _, c := range []struct{ sig, want string }{
		{"checked", "checked"}, {"another", "another"}, {"", "another"}, // an unsigned copy takes no signature away
	} {
		var sig []byte
		if c.sig != "" {
			sig = []byte(c.sig)
		}
		in := add(sig)
		got, err := s.Signature(in.Connector.Hash)
		if err != nil || !bytes.Equal(got, []byte(c.want)) {
			t.Errorf("with %q, the store has %q: %v", c.sig, got, err)
		}
	}
}
