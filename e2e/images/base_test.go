package images

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
)

// Debian's own slim image is 120 MB unpacked here; roots, curl and wget with
// their libraries are 20 MB more. Above that something was left behind.
const baseBound = 160 << 20

func TestTheBaseImageIsSmallAndHasNoSecret(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, engine string) {
		p := newPerson(t, engine)
		base := strings.TrimSpace(p.must("sandbox", "build", "--sandbox", engine, "--if-missing").out)
		var said []byte
		for _, args := range [][]string{{"image", "inspect", base}, {"history", "--no-trunc", base}} {
			out, err := tool(engine, args...)
			if err != nil {
				t.Fatalf("%s %s: %v\n%s", engine, strings.Join(args, " "), err, out)
			}
			said = append(said, out...)
		}
		var about []struct {
			Size   int64
			Config struct{ Env []string }
		}
		out, _ := tool(engine, "image", "inspect", base)
		if err := json.Unmarshal(out, &about); err != nil || len(about) != 1 {
			t.Fatalf("inspect: %v\n%s", err, out)
		}
		if about[0].Size > baseBound {
			t.Errorf("the base image has %d MB, want at most %d", about[0].Size>>20, int64(baseBound)>>20)
		}
		for _, pair := range about[0].Config.Env {
			if !strings.HasPrefix(pair, "PATH=/usr/local/sbin:") {
				t.Errorf("the image's environment has %s", pair)
			}
		}
		notSecret(t, "what the engine says of it", said)
		searchFiles(t, engine, base)
	})
}

// left is what a build leaves behind, and what people keep credentials in.
var left = regexp.MustCompile(`^(root|home/agent)/\.(ssh|netrc|npmrc|aws|config|docker|bash_history|git-credentials)|` +
	`^var/lib/apt/lists/.+_Packages|^var/cache/apt/.+bin$`)

// searchFiles looks into every file of an image, and at what must be there.
func searchFiles(t *testing.T, engine, image string) {
	t.Helper()
	out, err := tool(engine, "create", "--network", "none", image, "true")
	if err != nil {
		t.Fatalf("create: %v\n%s", err, out)
	}
	id := strings.TrimSpace(string(out))
	defer func() { _, _ = tool(engine, "rm", "--force", id) }()
	cmd := exec.Command(engine, "export", id)
	if engine == "podman" {
		cmd.Env = append(os.Environ(), "CONTAINERS_CONF="+conf)
	}
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	must.Do(t, cmd.Start())
	wanted := map[string]bool{"etc/ssl/certs/ca-certificates.crt": false, "usr/bin/curl": false, "usr/bin/wget": false,
		"usr/sbin/update-ca-certificates": false}
	tr := tar.NewReader(pipe)
	for {
		h, err := tr.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := wanted[h.Name]; ok {
			wanted[h.Name] = true
		}
		if left.MatchString(h.Name) {
			t.Errorf("the image has %s", h.Name)
		}
		if h.Typeflag == tar.TypeReg {
			data := must.Get(io.ReadAll(tr))(t)
			notSecret(t, h.Name, data)
		}
	}
	must.Do(t, cmd.Wait())
	for name, there := range wanted {
		if !there {
			t.Errorf("the image has no /%s", name)
		}
	}
}

// credentialInURL is a user and a password in front of a host.
var credentialInURL = regexp.MustCompile(`https?://[A-Za-z0-9._~%-]+:[A-Za-z0-9._~%-]+@[a-z]`)

// notSecret looks for what belongs to the machine that built the image: its
// environment's secrets, its paths, its name, and keys of any kind.
func notSecret(t *testing.T, what string, data []byte) {
	t.Helper()
	for _, mark := range machine() {
		if bytes.Contains(data, []byte(mark)) {
			t.Errorf("%s holds %q of this machine", what, mark)
		}
	}
	if bytes.HasPrefix(data, []byte("\x7fELF")) { // GnuTLS brings the keys of its self-test
		return
	}
	if bytes.Contains(data, []byte("PRIVATE KEY-----\nMII")) {
		t.Errorf("%s holds a private key", what)
	}
	if credentialInURL.Match(data) {
		t.Errorf("%s holds a URL with a password: %s", what, credentialInURL.Find(data))
	}
}

// machine are strings that only this machine knows: paths, its name, and the
// values of variables that are named like secrets.
var machine = sync.OnceValue(func() []string {
	var marks []string
	add := func(s string) {
		if len(s) >= 8 {
			marks = append(marks, s)
		}
	}
	add(binary)
	add(passphrase)
	if dir, err := os.Getwd(); err == nil {
		add(dir)
	}
	if name, err := os.Hostname(); err == nil && name != "localhost" {
		add(name)
	}
	secretive := regexp.MustCompile(`(?i)token|secret|passw|passphrase|api_?key|credential`)
	for _, pair := range os.Environ() {
		if name, value, _ := strings.Cut(pair, "="); secretive.MatchString(name) {
			add(value)
		}
	}
	return marks
})
