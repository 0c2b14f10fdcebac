package shims

import (
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/e2e/harness"
	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/e2e/stub"
)

const files = "api.files.example"

// filesService reports what it is sent, and how long it was said to be. It reads a file that is called "slow" when the
// sandbox has made the one beside it that is called "changed".
func filesService(project string) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/files", func(w http.ResponseWriter, r *http.Request) {
		parts, err := r.MultipartReader()
		for err == nil {
			part, next := parts.NextPart()
			if err = next; err != nil {
				break
			}
			if part.FileName() == "slow" {
				harness.Poll(harness.Patience, 20*time.Millisecond, func() bool {
					_, err := os.Stat(filepath.Join(project, "changed"))
					return err == nil
				})
			}
			sum := sha256.New()
			var n int64
			n, err = io.Copy(sum, part)
			fmt.Fprintf(w, "<%s %q %s %d %x>", part.FormName(), part.FileName(), part.Header.Get("Content-Type"), n,
				sum.Sum(nil)[:4])
		}
		fmt.Fprintf(w, "<%v, of a known length: %v>\n", err, r.ContentLength > 0)
	})
	mux.HandleFunc("PUT /v1/files", func(w http.ResponseWriter, r *http.Request) {
		n, err := io.Copy(io.Discard, r.Body)
		fmt.Fprintf(w, "<%s %d of %d, %v>\n", r.Header.Get("Content-Type"), n, r.ContentLength, err)
	})
	return mux
}

// installFiles installs a connector of that service.
func (p *person) installFiles() {
	p.t.Helper()
	p.origin = stub.Start(p.t, stub.Script{Token: secret, Streams: true,
		Services: map[string]http.Handler{stub.GitHub: service(), files: filesService(p.project)}})
	dir := p.t.TempDir()
	for name, text := range map[string]string{
		"manifest.toml": "[connector]\nname = \"github://acme/files\"\nversion = \"1.0.0\"\n" +
			"[capabilities.network]\nhosts = [\"" + files + ":443\"]\n",
		"aileron.connector.v1.json": `{"schema_version":"aileron.connector.v1","connector":{
			"fqn":"github://acme/files","version":"1.0.0"},"tools":[{"name":"files","operations":[
			{"name":"upload","method":"POST","path":"/v1/files","hosts":["` + files + `"],"body":"multipart","inputs":[
			 {"name":"doc","type":"file","required":true},{"name":"note","type":"string"},{"name":"more","type":"file"}]},
			{"name":"put","method":"PUT","path":"/v1/files","hosts":["` + files + `"],"body":"raw","inputs":[
			 {"name":"content","type":"file","required":true}]},
			{"name":"held","method":"POST","path":"/v1/held","hosts":["` + files + `"],"body":"raw","approval":"required",
			 "inputs":[{"name":"content","type":"file","required":true}]}]}]}`,
	} {
		must.Do(p.t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	if r := p.aileron("connector", "install", dir, "--yes"); r.code != 0 {
		p.t.Fatalf("install: %s", r.err)
	}
}

// upload sends files.
const upload = `
printf 'abc' >'a "b".png'; truncate -s 20M zeros; truncate -s 65M huge
call() { printf '<%s>' "$1"; shift; "$@" 2>/tmp/err; printf '<exit %s><' "$?"; cat /tmp/err; echo '>'; }
call small files upload --file 'doc=a "b".png' --args '{"note":"n"}'
call two files upload --file doc=zeros --file 'more=a "b".png'
call raw files put --file content=zeros
call held files held --file content=zeros
call host files put --file content=$HOST_FILE
call huge files put --file content=huge
truncate -s 60M slow; { sleep 1; : >slow; : >changed; } & call shrinks files upload --file doc=slow
ls -A /tmp | grep aileron`

func TestFilesFromASandbox(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]contents{
		"BusyBox's wget": {}, "curl": curl, "GNU wget": gnuWget,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPerson(t, "podman")
			p.installFiles()
			beside := filepath.Join(p.home, "beside")
			must.Do(t, os.WriteFile(beside, []byte("of the host"), 0o644))
			must.Do(t, os.Symlink(beside, filepath.Join(p.project, "link")))
			r := p.box(busybox(t, "podman", c), "HOST_FILE=link\n"+upload, "--resolve", files+":443:"+p.origin.Addr)
			const zeros = "20971520 "
			want := []string{
				`<small><note ""  1 1b16b1df><doc "a %22b%22.png" image/png 3 ba7816bf><EOF, of a known length: true>` +
					"\n<exit 0><>",
				`<two><doc "zeros" application/octet-stream ` + zeros,
				`<more "a %22b%22.png" image/png 3 ba7816bf><EOF, of a known`,
				"<raw><application/octet-stream 20971520 of 20971520, <nil>>\n<exit 0><>",
				"<held><exit 75><files held: aileron: ", "<host><exit 2><files: the file content does not exist in this sandbox",
			}
			if name == "BusyBox's wget" {
				want = append(want, "<huge><exit 1><files: the files have more than 64 MiB, which the wget of this image")
			} else {
				want = append(want, "<huge><application/octet-stream 68157440 of 68157440, <nil>>\n<exit 0><>")
			}
			if name == "curl" {
				want = append(want, "<shrinks><exit 1><files upload: aileron: a file has changed while it was sent: doc is")
			}
			for _, text := range want {
				if !strings.Contains(r.out, text) {
					t.Errorf("the output has no %q", text)
				}
			}
			if strings.Contains(r.out, ".aileron-") {
				t.Error("a file is left over")
			}
			if t.Failed() {
				t.Logf("exit %d\n%s%s", r.code, r.out, r.err)
			}
		})
	}
}
