package grants

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/spec/catalog"
	"github.com/ALRubinger/aileron/spec/store"
	"github.com/ALRubinger/aileron/vault"
	"github.com/ALRubinger/aileron/vault/command"
)

const (
	testSecret  = "ghp_0123456789abcdefABCDEF"
	otherSecret = "ghp_ABCDEFabcdef9876543210"
	githubName  = "bearer/aileron-connector-github/default"
)

// fixture is a directory of grants, with a clock by which files have not changed just now.
type fixture struct {
	*Source
	dir      string
	ahead    time.Duration
	warnings []string
}

func newFixture(t *testing.T, document string) *fixture {
	t.Helper()
	f := &fixture{dir: t.TempDir(), ahead: time.Hour}
	f.write(t, File, document)
	var err error
	f.Source, err = Open(f.dir, Options{
		Now: func() time.Time { return time.Now().Add(f.ahead) },
		Warn: func(name string, err error) {
			if err != nil {
				f.warnings = append(f.warnings, name+": "+err.Error())
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func (f *fixture) write(t *testing.T, name, text string) {
	t.Helper()
	path := filepath.Join(f.dir, name)
	must.Do(t, os.MkdirAll(filepath.Dir(path), 0o700))
	must.Do(t, os.WriteFile(path, []byte(text), 0o600))
}

// secret returns what the binding for GitHub has now, or the error.
func (f *fixture) secret(t *testing.T) (string, error) {
	t.Helper()
	if _, faults := f.All(); len(faults) > 0 {
		return "", errors.Join(faults...)
	}
	c, err := f.Credential(githubName)
	return c.Secret.Reveal(), err
}

func githubHash(t *testing.T) string {
	t.Helper()
	e, ok := catalog.Find("github")
	if !ok {
		t.Fatal("the catalogue has no github")
	}
	return must.Get(store.ReadFS(e.Files))(t).Hash
}

func github(t *testing.T, more string) string {
	t.Helper()
	return fmt.Sprintf("[[connector]]\ncatalog = \"github\"\nhash = %q\n%s\n", githubHash(t), more)
}

func TestAPinnedConnectorIsGrantedWithItsSecret(t *testing.T) {
	f := newFixture(t, github(t, `secret.file = "token"`))
	f.write(t, "token", testSecret+"\n")
	all, faults := f.All()
	if len(all) != 1 || len(faults) != 0 || all[0].Hash != githubHash(t) {
		t.Fatalf("All = %v, %v", all, faults)
	}
	if got, err := f.secret(t); got != testSecret || err != nil {
		t.Errorf("the secret is %q, %v", got, err)
	}
	if list := must.Get(f.Bindings())(t); len(list) != 1 || list[0].Name != githubName {
		t.Errorf("Bindings = %+v", list)
	}
}

// A directory of a connector may be mounted from a ConfigMap, whose files are links to ..data.
func TestAConnectorOfAConfigMapIsRead(t *testing.T) {
	e, _ := catalog.Find("github")
	f := newFixture(t, "")
	for _, name := range []string{"manifest.toml", "aileron.connector.v1.json"} {
		raw := must.Get(e.Files.Open(name))(t)
		text := make([]byte, 1<<20)
		n := must.Get(raw.Read(text))(t)
		f.write(t, "..2026_01/github/"+name, string(text[:n]))
	}
	must.Do(t, os.Symlink("..2026_01", filepath.Join(f.dir, "..data")))
	must.Do(t, os.Symlink("..data/github", filepath.Join(f.dir, "github")))
	f.write(t, File, fmt.Sprintf("[[connector]]\ndir = \"github\"\nhash = %q\n", githubHash(t)))
	if all, faults := f.All(); len(all) != 1 || len(faults) != 0 {
		t.Errorf("All = %v, %v", all, faults)
	}
}

func TestWhatIsNotPinnedIsNotGranted(t *testing.T) {
	wrong := "sha256:" + strings.Repeat("0", 64)
	for name, c := range map[string]struct {
		document string
		want     string // in the fault; "" is none
	}{
		"no document":     {"", ""},
		"another hash":    {"[[connector]]\ncatalog = \"github\"\nhash = \"" + wrong + "\"", wrong},
		"no hash":         {"[[connector]]\ncatalog = \"github\"", "content hash"},
		"no directory":    {"[[connector]]\ndir = \"tracker\"\nhash = \"" + wrong + "\"", "missing"},
		"out of the dir":  {"[[connector]]\ndir = \"../x\"\nhash = \"" + wrong + "\"", "leads out"},
		"an unknown key":  {github(t, "secrets = 1"), "unknown"},
		"granted twice":   {github(t, "") + github(t, ""), "granted twice"},
		"file and exec":   {github(t, "secret.file = \"a\"\nsecret.exec = [\"b\"]"), "file and exec"},
		"a newer format":  {"format = 99", "format 99"},
		"no such entry":   {"[[connector]]\ncatalog = \"none\"\nhash = \"" + wrong + "\"", "no connector"},
		"a relative exec": {github(t, `secret.exec = ["./x"]`), "absolute path"},
		"half of a line":  {"[[connector]]\ncatalog = \"git", "line 2"},
	} {
		f := newFixture(t, c.document)
		f.write(t, "unpinned/manifest.toml", "x")
		all, faults := f.All()
		err := errors.Join(faults...)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: the faults are %v, want %q", name, err, c.want)
		}
		if name != "granted twice" && len(all) != 0 {
			t.Errorf("%s: %v is granted", name, all[0].FQN)
		}
	}
}

// A link of a connector's directory, or of a secret, does not choose another file of this host.
func TestALinkDoesNotLeadOut(t *testing.T) {
	outside := t.TempDir()
	must.Do(t, os.WriteFile(filepath.Join(outside, "key"), []byte(testSecret), 0o600))
	f := newFixture(t, github(t, `secret.file = "token"`))
	must.Do(t, os.Symlink(filepath.Join(outside, "key"), filepath.Join(f.dir, "token")))
	if got, err := f.secret(t); !errors.Is(err, vault.ErrNotBound) {
		t.Errorf("the secret is %q, %v; want ErrNotBound", got, err)
	}
	if !slices.ContainsFunc(f.warnings, func(w string) bool { return strings.Contains(w, "path escapes from parent") }) {
		t.Errorf("the warnings are %q", f.warnings)
	}
}

func TestASecretThatCannotBeUsedIsNotBound(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(path string) error
		want  string
	}{
		"none":      {func(string) error { return nil }, "no such file"},
		"empty":     {func(p string) error { return os.WriteFile(p, nil, 0o600) }, "fewer than 8"},
		"a MiB":     {func(p string) error { return os.WriteFile(p, make([]byte, 1<<20), 0o600) }, "larger than"},
		"a pipe":    {func(p string) error { return syscall.Mkfifo(p, 0o600) }, "not a regular file"},
		"a folder":  {func(p string) error { return os.Mkdir(p, 0o700) }, "not a regular file"},
		"two lines": {func(p string) error { return os.WriteFile(p, []byte(testSecret+"\nmore"), 0o600) }, "not printable"},
	} {
		f := newFixture(t, github(t, `secret.file = "token"`))
		must.Do(t, c.spoil(filepath.Join(f.dir, "token")))
		got, err := f.secret(t)
		if !errors.Is(err, vault.ErrNotBound) || got != "" {
			t.Errorf("%s: the secret is %q, %v", name, got, err)
		}
		if text := strings.Join(f.warnings, "\n"); !strings.Contains(text, c.want) || strings.Contains(text, testSecret) {
			t.Errorf("%s: the warnings are %q, want %q", name, text, c.want)
		}
	}
}

// A swap of ..data, as kubelet does it, is noticed, and the file that is vanished is no secret any more.
func TestASecretIsFollowed(t *testing.T) {
	f := newFixture(t, github(t, `secret.file = "mounted/token"`))
	f.write(t, "mounted/..1/token", testSecret)
	f.write(t, "mounted/..2/token", otherSecret)
	mounted := filepath.Join(f.dir, "mounted")
	must.Do(t, os.Symlink("..1", filepath.Join(mounted, "..data")))
	must.Do(t, os.Symlink("..data/token", filepath.Join(mounted, "token")))
	if got, err := f.secret(t); got != testSecret || err != nil {
		t.Fatalf("the secret is %q, %v", got, err)
	}
	before, digest := must.Get(f.Fingerprint())(t), must.Get(f.Digest(githubName))(t)
	must.Do(t, os.Symlink("..2", filepath.Join(mounted, "..tmp")))
	must.Do(t, os.Rename(filepath.Join(mounted, "..tmp"), filepath.Join(mounted, "..data")))
	if after := must.Get(f.Fingerprint())(t); after == before {
		t.Error("the swap does not change the fingerprint")
	}
	if got, err := f.secret(t); got != otherSecret || err != nil {
		t.Errorf("after the swap the secret is %q, %v", got, err)
	}
	if again := must.Get(f.Digest(githubName))(t); again == digest {
		t.Error("the swap does not change the digest")
	}
	must.Do(t, os.Remove(filepath.Join(mounted, "token")))
	if got, err := f.secret(t); !errors.Is(err, vault.ErrNotBound) {
		t.Errorf("without a file the secret is %q, %v", got, err)
	}
	dirs := f.Dirs()
	if dirs[0].Path != filepath.Dir(f.dir) || dirs[1].Path != f.dir || dirs[2].Path != mounted {
		t.Errorf("the directories are %v", dirs)
	}
}

// A file that is written in place is not read half: what was in use stays until the file rests.
func TestAHalfWrittenSecretIsNotUsed(t *testing.T) {
	f := newFixture(t, github(t, `secret.file = "token"`))
	f.write(t, "token", testSecret)
	if got, err := f.secret(t); got != testSecret || err != nil {
		t.Fatalf("the secret is %q, %v", got, err)
	}
	f.write(t, "token", otherSecret[:12])
	f.ahead = 0
	if got, err := f.secret(t); got != testSecret || err != nil {
		t.Errorf("while the file is written the secret is %q, %v", got, err)
	}
	if _, err := f.Fingerprint(); !errors.Is(err, errUnsettled) {
		t.Errorf("Fingerprint: %v, want that it is not known yet", err)
	}
	f.write(t, "token", otherSecret)
	f.ahead = time.Hour
	if got, err := f.secret(t); got != otherSecret || err != nil {
		t.Errorf("at rest the secret is %q, %v", got, err)
	}
}

// The example pins what this version has.
func TestTheExampleIsGranted(t *testing.T) {
	s := must.Get(Open("../../examples/compose/grants", Options{}))(t)
	if all, faults := s.All(); len(all) != 1 || len(faults) != 0 {
		t.Errorf("All = %v, %v", all, faults)
	}
}

// One file may be the secret of two connectors, each with a kind of its own.
func TestAFileOfTwoConnectorsIsEachOnes(t *testing.T) {
	e, _ := catalog.Find("anthropic")
	hash := must.Get(store.ReadFS(e.Files))(t).Hash
	f := newFixture(t, github(t, `secret.file = "token"`)+
		fmt.Sprintf("[[connector]]\ncatalog = \"anthropic\"\nhash = %q\nsecret.file = \"token\"\n", hash))
	f.write(t, "token", testSecret)
	for range 2 { // the second time the file has changed just now
		if _, faults := f.All(); len(faults) > 0 {
			t.Fatal(faults)
		}
		for _, b := range must.Get(f.Bindings())(t) {
			if c := must.Get(f.Credential(b.Name))(t); c.Kind != b.Kind || c.Secret.Reveal() != testSecret {
				t.Errorf("%s has the kind %s", b.Name, c.Kind)
			}
		}
		f.write(t, "token", otherSecret)
		f.ahead = 0
	}
}

func TestASecretOfAProgramIsItsCommand(t *testing.T) {
	f := newFixture(t, github(t, `secret.exec = ["op", "read", "op://x/y"]`))
	if _, faults := f.All(); len(faults) > 0 {
		t.Fatal(faults)
	}
	c, ok := command.Of(must.Get(f.Credential(githubName))(t))
	if !ok || !slices.Equal(c, []string{"op", "read", "op://x/y"}) {
		t.Errorf("the command is %q, %v", c, ok)
	}
}
