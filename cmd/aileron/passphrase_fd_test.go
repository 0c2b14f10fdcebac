package main

import (
	"os"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
)

// A script hands the passphrase over in a pipe: it is in no file, no argument and no variable.
func TestAPassphraseComesThroughADescriptor(t *testing.T) {
	o := newOwner(t)
	o.env = map[string]string{}
	piped := func(passphrase string, args ...string) (string, error) {
		t.Helper()
		r, w, err := os.Pipe()
		must.Do(t, err)
		defer r.Close()
		must.Get(w.WriteString(passphrase + "\n"))(t)
		must.Do(t, w.Close())
		cmd := o.program(args...)
		cmd.ExtraFiles = []*os.File{r} // descriptor 3
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	for _, args := range [][]string{
		{"setup", "claude", "--yes", "--sandbox=off", "--passphrase-fd", "3", "--key-file", o.file("key", anthropicKey)},
		{"vault", "unlock", "--passphrase-fd=3"},
		{"run", "--passphrase-fd", "3", "--", "true"},
	} {
		if out, err := piped(testPassphrase, args...); err != nil {
			t.Errorf("aileron %q: %v: %s", args, err, out)
		}
	}
	o.holds(map[string]string{anthropicBinding: anthropicKey})
	for passphrase, want := range map[string]string{"another one": "--passphrase-file", "": "--passphrase-file"} {
		if out, err := piped(passphrase, "vault", "unlock", "--passphrase-fd", "3"); err == nil ||
			!strings.Contains(out, want) {
			t.Errorf("with %q it ends with %v: %s", passphrase, err, out)
		}
	}
	// The command of run, or any other child, does not get the descriptor.
	if out, err := piped(testPassphrase, "run", "--passphrase-fd", "3", "--", "sh", "-c", "cat <&3"); err == nil {
		t.Errorf("a child reads %q", out)
	}
	o.fails("it is not the number of a descriptor", "vault", "unlock", "--passphrase-fd", "three")
	o.fails("it is not the number of a descriptor", "vault", "unlock", "--passphrase-fd", "-1")
	o.fails("no such file", "vault", "unlock", "--passphrase-fd", "987")
}
