package shims_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
)

func TestFilesFollowTheCall(t *testing.T) {
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("there is no curl: scripts/prepare --tests installs it")
	}
	s := newSession(t, example(t))
	s.response = "0 200 01ID response\n"
	big := strings.Repeat("0123456789abcdef\r\n", 1<<14)
	odd := filepath.Join(s.dir, `-a "b" \c;type=x@é`)
	for path, content := range map[string]string{"one": "1\x00\n", "empty": "", "big": big} {
		must.Do(t, os.WriteFile(filepath.Join(s.dir, path), []byte(content), 0o600))
	}
	must.Do(t, os.WriteFile(odd, []byte("odd"), 0o600))
	must.Do(t, os.Symlink("one", filepath.Join(s.dir, "link")))
	const begin = `{"connector_fqn":"github://acme/tracker","tool":"tracker","operation":"issues.comment","args":`
	for _, shell := range shells(t) {
		for _, c := range []struct {
			args  []string
			stdin string
			want  string
		}{
			{[]string{"--file", "doc=" + s.dir + "/one"}, "",
				begin + `{},"files":[{"input":"doc","filename":"one","size":3}]}` + "\n1\x00\n"},
			{[]string{"--args", "{\"id\":\r\n1}", "--file=doc=" + s.dir + "/link", "--file", "b[]=" + s.dir + "/empty",
				"--file", "c=" + s.dir + "/big", "--file", "d=" + odd}, "",
				begin + `{"id":  1},"files":[{"input":"doc","filename":"link","size":3},` +
					`{"input":"b[]","filename":"empty","size":0},{"input":"c","filename":"big","size":294912},` +
					`{"input":"d","filename":"-a \"b\" \\c;type=x@é","size":3}]}` +
					"\n1\x00\n" + big + "odd"},
			{[]string{"--file", "doc=" + s.dir + "/one", "--file=doc=" + s.dir + "/empty"}, "",
				begin + `{},"files":[{"input":"doc","filename":"one","size":3},{"input":"doc","filename":"empty","size":0}]}` +
					"\n1\x00\n"},
			{[]string{"--file", "doc=" + s.dir + "/one", "--args", "-"}, "{\"id\":\n2}\n",
				begin + `{"id": 2} ,"files":[{"input":"doc","filename":"one","size":3}]}` + "\n1\x00\n"},
		} {
			got := s.run(shell, c.stdin, append([]string{"tracker", "issues.comment"}, c.args...)...)
			if got.code != 0 || got.err != "" || string(s.body) != c.want || s.method != "POST" || s.token != token ||
				s.kind != "application/vnd.aileron.call.v1" {
				t.Errorf("%s: %q: %+v\nthe session received %s %s %.400q\nwant %.400q", shell, c.args, got, s.method, s.kind,
					s.body, c.want)
			}
		}
	}
}

func TestFilesThatAreNotSent(t *testing.T) {
	s := newSession(t, example(t))
	must.Do(t, os.WriteFile(filepath.Join(s.dir, "file"), nil, 0o600))
	must.Do(t, os.WriteFile(filepath.Join(s.dir, "a\nb"), nil, 0o600))
	must.Do(t, os.Symlink("/elsewhere/on/the/host", filepath.Join(s.dir, "link")))
	must.Do(t, syscall.Mkfifo(filepath.Join(s.dir, "fifo"), 0o600))
	file := "=" + s.dir + "/file"
	for _, shell := range shells(t) {
		for _, c := range []struct{ args, err string }{
			{"tracker issues.comment --file", "--file has no value"},
			{"tracker issues.comment --file " + s.dir + "/file", "--file is not NAME=PATH"},
			{"tracker issues.comment --file " + file, "--file is not NAME=PATH"},
			{"tracker issues.comment --file $(id)" + file, "--file is not NAME=PATH"},
			{"tracker issues.comment --file doc=", "the file doc does not exist in this sandbox"},
			{"tracker issues.comment --file doc=" + s.dir, "the file doc is a directory"},
			{"tracker issues.comment --file doc=" + s.dir + "/none", "the file doc does not exist in this sandbox"},
			{"tracker issues.comment --file doc=" + s.dir + "/link", "the file doc does not exist in this sandbox"},
			{"tracker issues.comment --file doc=" + s.dir + "/fifo", "the file doc is not a regular file"},
			{"tracker issues.comment --file doc=/dev/zero", "the file doc is not a regular file"},
			{"tracker issues.comment --file doc=" + s.dir + "/a\nb", "has a control character or a line break"},
			{"tracker issues.comment" + strings.Repeat(" --file doc"+file, 5), "there are more than four files"},
			{"triage --file doc" + file, "an action takes no files"},
		} {
			s.request = request{}
			got := s.run(shell, "", strings.Split(c.args, " ")...)
			if got.code != 2 || !strings.Contains(got.err, c.err) || !strings.Contains(got.err, "\nhint: ") || s.method != "" {
				t.Errorf("%s: %q: %+v, want %q; the session received %q", shell, c.args, got, c.err, s.method)
			}
		}
	}
}
