package imagefs

import (
	"bytes"
	"errors"
	"io/fs"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
)

func TestWhatIsKnownOfAnImageIsKept(t *testing.T) {
	etc := must.Get(ReadTree(archive(t, entry{name: "etc/"}, entry{name: "etc/passwd", data: "root:x:0:0"},
		entry{name: "etc/link", target: "passwd"})))(t)
	asked := 0
	source := Source{Lstat: func(name string) (Node, error) {
		asked++
		if name == "usr" {
			return Node{Mode: fs.ModeDir | 0o755}, nil
		}
		return Node{}, fs.ErrNotExist
	}}
	first := New(etc, source)
	_, _ = first.Stat("usr")
	if _, err := first.Ask("usr/bin/true"); !errors.Is(err, fs.ErrNotExist) || first.Known() != 2 {
		t.Fatalf("Ask = %v, and %d names are known", err, first.Known())
	}
	var file bytes.Buffer
	must.Do(t, first.Save(&file))
	damaged := bytes.Clone(file.Bytes()[:file.Len()/2])
	again := must.Get(Load(&file, source))(t)
	asked = 0
	data, err := again.ReadFile("etc/link")
	if err != nil || string(data) != "root:x:0:0" {
		t.Errorf("ReadFile = %q, %v", data, err)
	}
	if info, err := again.Stat("usr"); err != nil || !info.IsDir() {
		t.Errorf("Stat = %v, %v", info, err)
	}
	if _, err := again.Ask("usr/bin/true"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Ask = %v", err)
	}
	if entries, err := again.ReadDir("etc"); err != nil || len(entries) != 2 {
		t.Errorf("ReadDir = %v, %v", entries, err)
	}
	if asked != 0 {
		t.Errorf("the source was asked %d times for what is known", asked)
	}
	if _, err := again.With(source).Ask("usr/bin/false"); asked != 1 || err == nil {
		t.Errorf("the source was asked %d times for what is not known: %v", asked, err)
	}
	if _, err := Load(bytes.NewReader(damaged), source); err == nil {
		t.Error("a damaged file was read")
	}
}

// A failure of the engine is not the absence of a file.
func TestAFaultOfTheSourceIsNotKept(t *testing.T) {
	f := New(Tree{}, Source{Lstat: func(string) (Node, error) { return Node{}, errors.New("the engine went away") }})
	if _, err := f.Ask("usr"); err == nil || f.Known() != 0 {
		t.Errorf("Ask = %v, and %d names are known", err, f.Known())
	}
}
